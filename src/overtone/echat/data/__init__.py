"""Exchanges as records (in lists, shards and packs), and as the token sequences of a model."""
