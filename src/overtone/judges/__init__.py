"""Judges: metrics that ask a model. A rubric says what is judged, a contract what may be answered, a policy how often.

`rubrics/` holds the definitions as data. To add a rubric, add a file there or name your own file.
"""
