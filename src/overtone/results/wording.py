"""Sentences of findings, each with the key of the row that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from overtone.stats import minimums
from overtone.stats.minimums import Minimum


class Sentence(Struct, frozen=True):
    """A statement in plain words. `key` is the key of the row it is about, with which its cases can be looked up.

    A sentence with a `condition` is only about replies or questions under this condition. If one condition represents a
    run, sentences on other conditions are not shown.
    """

    text: str
    key: str = ""
    condition: str = ""


def shortfall(minimum: Minimum, lacking: Iterable[tuple[str, int]]) -> list[Sentence]:
    """Return one sentence on the subjects with too little data, given as (subject, amount of data); an empty list
    without such subjects. The sentence has no key, because it mentions no number of a row."""
    text = minimums.shortfall(minimum, lacking)
    return [Sentence(text)] if text else []


class _Row(Protocol):
    @property
    def by(self) -> str: ...

    @property
    def basis(self) -> str: ...


Row = TypeVar("Row", bound=_Row)


def headline(rows: Sequence[Row]) -> list[Row]:
    """Return the overall rows over validated or unmarked cues; without such rows, all overall rows."""
    overall = [row for row in rows if row.by == "overall"]
    sure = [row for row in overall if row.basis != "unvalidated"]
    return sure or overall
