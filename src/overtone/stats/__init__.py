"""Arrays in, numbers out: the statistics of the findings. Knows nothing of speech."""
