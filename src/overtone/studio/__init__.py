"""The studio: people listen to replies in a browser, rate them or vote, and their answers become labels of the runs.

study        the study file: read, checked, written
creation     a new study from runs, with its cost and precision
designs/     one file per design: what is asked, and how answers become labels
fields       the controls that a design can use, and how their answers are checked
replies      spoken replies of runs, from which designs make units
"""
