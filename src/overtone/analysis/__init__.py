"""Findings: what a run's stored scores say, level by level and case by case. Reads runs, never writes them."""
