"""Exchanges as records, in lists, shards and packs, and as the sequences a model reads and says."""
