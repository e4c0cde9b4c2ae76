"""Corpora of people's recordings: one adapter per corpus turns its publisher's layout into recordings with labels.

    from overtone import corpora

    kind, folder = corpora.parse("ravdess:/data/RAVDESS")
    reading = corpora.read(kind, folder)
    reading.recordings[0].emotion

A file with a `CORPUS` is an adapter; its name is the file's with "-" for "_".
"""

from __future__ import annotations

from overtone.corpora.corpus_files import Corpus
from overtone.corpora.open_licences import is_open
from overtone.corpora.reading import Reading, adapter, detect, find, kinds, parse, read, sound
from overtone.corpora.recording import AGE_GROUPS, EMOTIONS, INTENSITIES, SEXES, Recording, basic

__all__ = [
    "AGE_GROUPS",
    "EMOTIONS",
    "INTENSITIES",
    "SEXES",
    "Corpus",
    "Reading",
    "Recording",
    "adapter",
    "basic",
    "detect",
    "find",
    "is_open",
    "kinds",
    "parse",
    "read",
    "sound",
]
