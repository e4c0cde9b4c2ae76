"""The three stages, preferences and text alone: what is drawn, the loop, its checkpoints and its report."""
