"""Ask a model about held-out records, and score its answers."""
