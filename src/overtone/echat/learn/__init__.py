"""Training: the three stages, preferences and text only; batches, the loop, checkpoints and the report."""
