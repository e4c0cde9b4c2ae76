"""Statistics on arrays, used by the findings. Independent of speech."""
