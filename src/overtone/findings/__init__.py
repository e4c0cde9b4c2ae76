"""Findings: questions put to one or more runs, one folder each. They read runs and never write them."""
