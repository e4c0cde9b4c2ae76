"""Answer requests with a trained checkpoint: as a model of a run, or behind an OpenAI-compatible server."""
