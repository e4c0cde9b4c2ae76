"""A trained checkpoint in conversation: as a model of a run, and behind an OpenAI-compatible server."""
