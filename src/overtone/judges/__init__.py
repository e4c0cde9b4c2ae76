"""Judges: metrics that ask a model. A rubric says what is judged, a contract what may be answered, a policy how often.

`rubrics/` holds the definitions as data; adding a rubric is adding a file there, or naming one's own.
"""
