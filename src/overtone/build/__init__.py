"""Build spoken test sets from scripts: voices, deliveries, scenes, and questions about the clips."""
