"""Output for people: terminal tables, other formats, and one self-contained HTML file."""
