"""Fit the embedded ear to recordings of people: clips and labels, features, folds of speakers, heads, and a report."""
