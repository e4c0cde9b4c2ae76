"""Judges: metrics that ask a model. A rubric has the questions, a contract the allowed answers, a policy the repeats.

`rubrics/` holds the definitions as data. To add a rubric, add a file there or name your own file.
"""
