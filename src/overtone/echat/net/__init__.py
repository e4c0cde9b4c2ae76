"""The model: configuration, parts, weights, checkpoints and decoding."""
