"""Sentences of findings, and which rows they are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from overtone.stats import minimums
from overtone.stats.minimums import Minimum


class Sentence(Struct, frozen=True):
    """A statement in plain words. `key` is that of its row, which leads to the cases behind it.

    A sentence with a `condition` is only about replies or questions under it: if one condition represents a run,
    sentences on the others are not shown.
    """

    text: str
    key: str = ""
    condition: str = ""


def shortfall(minimum: Minimum, lacking: Iterable[tuple[str, int]]) -> list[Sentence]:
    """Return the sentence on subjects that have too little data, given as (subject, how much it has); an empty list
    without any. It has no key because it mentions no number of a row."""
    text = minimums.shortfall(minimum, lacking)
    return [Sentence(text)] if text else []


class _Row(Protocol):
    @property
    def by(self) -> str: ...

    @property
    def basis(self) -> str: ...


Row = TypeVar("Row", bound=_Row)


def headline(rows: Sequence[Row]) -> list[Row]:
    """Return the overall rows of validated or unmarked cues; without any, all overall rows."""
    overall = [row for row in rows if row.by == "overall"]
    sure = [row for row in overall if row.basis != "unvalidated"]
    return sure or overall
