"""EmoBank: how does a reader, and how does the writer, of a sentence feel? Valence, arousal and dominance."""
