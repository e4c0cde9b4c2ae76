"""The studio: people listen to replies in a browser, rate them or vote, and their answers become labels of the runs.

study        the study file: its settings, read and checked (study_checks) and written (study_file)
creation     a new study from runs, with its cost and precision
server/      pages and sounds over HTTP: the API as records, the application
contents     what a study asks: units, fields, screens
precision    time, pay and precision of a study, predicted from assumed variances
designs/     one file per design: what is asked, and how answers become labels
fields       the controls that a design can use, and how their answers are checked
replies      spoken replies of runs, from which designs make units
user_clips   what users said, from runs and built sets
script_parts     scripts as speakers get them, with their deliveries
take_checks      checks of recordings, made in a separate process (take_checker)
recorded_voice   kept recordings as a voice of a build
review_verdicts  what reviewers said, as a review of scripts reads it
"""
