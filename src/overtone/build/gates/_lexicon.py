"""Read our own small lexicon (lexicon.toml): words that colour a sentence, and words that reveal a cue."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path


@functools.cache
def _table(name: str) -> dict[str, re.Pattern[str]]:
    tree = tomllib.loads((Path(__file__).parent / "lexicon.toml").read_text(encoding="utf-8"))
    return {key: re.compile(rf"(?<![\w'])(?:{pattern})(?!\w)", re.I) for key, pattern in tree[name].items()}


def tones() -> dict[str, re.Pattern[str]]:
    """Return the patterns of colouring words by kind (positive, negative, kind, harsh, hedge, …)."""
    return _table("tone")


def tells() -> dict[str, re.Pattern[str]]:
    """Return the patterns of revealing words by the slug of the cue that they reveal."""
    return _table("cue")
