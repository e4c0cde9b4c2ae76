"""Plan, engine, limiter, store and cassette: the only room that does I/O with models."""
