"""Held-out records put to a model, and what its answers are worth."""
