"""The model: its configuration, its parts and weights, and how it says one token after the other."""
