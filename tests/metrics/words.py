"""What the reference libraries say of 1,500 pairs of replies and references; make_words.py wrote it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

Pair = tuple[str, str, float, float, float, float, float]


class Words(msgspec.Struct, frozen=True):
    """The file. A pair is a reply, its reference, and the values `columns` names; a corpus is start, size, value."""

    made_with: dict[str, str]
    columns: tuple[str, ...]
    pairs: list[Pair]
    corpora: list[tuple[int, int, float]]
    tokens: dict[str, list[str]]
    stems: dict[str, str]
    synonyms: dict[str, list[str]]

    def values(self, metric: str) -> list[tuple[str, str, float]]:
        """Reply, reference and expected value of each pair that has a reference."""
        at = self.columns.index(metric)
        return [(str(p[0]), str(p[1]), float(p[at])) for p in self.pairs if str(p[1]).strip()]


@cache
def words() -> Words:
    return msgspec.json.decode(Path(__file__).with_name("words.json").read_bytes(), type=Words)
