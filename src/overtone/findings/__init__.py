"""Findings: questions about one or more runs, one module or package for each. Findings never write to a run."""
