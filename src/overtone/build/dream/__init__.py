"""DREAM's dialogues: its files, the voices of its speakers, and the spoken set that `overtone build dream` makes."""
