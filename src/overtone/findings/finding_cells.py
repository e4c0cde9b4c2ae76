"""Helpers for the tables of findings: cells with keys, breakdowns, and the number format of each measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from overtone.display.table_data import BASES, Cell, PartTable, text_cell, without_column, without_unmarked_cues
from overtone.findings.finding import FindingResult, Settings
from overtone.results.measure_names import about, is_percent, short
from overtone.results.measures import Estimate
from overtone.results.significance import p_number
from overtone.results.summary import LABELS
from overtone.text import NONE

Kind = Literal["percent", "number", "points", "text"]
ALL = "all"
DEFAULT = Settings()
HOLM = (
    "p by sign flips of scripts, corrected by Holm’s method over all overall rows, and over the rows of a breakdown "
    "for each measure. Significant: at most 0.05 after correction. Intervals apply to each row alone."
)
FIRST = ("enhance", "basic", "zero")  # a run is represented by the first of these prompts that it has


class _Row(Protocol):
    @property
    def by(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def basis(self) -> str: ...


Row = TypeVar("Row", bound=_Row)


def chosen(rows: Sequence[Row], by: str) -> list[Row]:
    """Return the rows of the breakdown `by` and the overall rows."""
    return [row for row in rows if by == ALL or row.by in ("overall", by)]


def representing(conditions: Iterable[str], by: str, settings: Settings) -> set[str]:
    """Return the conditions that represent a run: those of its questions, and one prompt for its replies.

    All have the input that the settings name. With `by="all"`, or if no condition has this input, every condition is
    returned.
    """
    asked = set(conditions)
    given = {c for c in asked if c.partition("/")[2] == settings.input}
    if by == ALL or not given:
        return asked
    questions = given & {f"task/{settings.input}"}
    order = (settings.prompt,) if settings.prompt else FIRST
    replies = [c for prompt in order if (c := f"{prompt}/{settings.input}") in given]
    return questions | (set(replies[:1]) or given)


def over(row: _Row) -> str:
    """Return the cases that a row counts, in words: all cases, or the row's name."""
    if row.by == "overall" or not row.name:
        return ALL
    if row.by == "category":
        return LABELS.get(row.name, row.name)
    return row.name


def basis(name: str) -> str:
    """Return the display name of a basis, the group of cues that a number counts."""
    return BASES.get(name, name)


def named(table: PartTable) -> PartTable:
    """Drop the column "Over" if every row counts all cases, and "Cues" if no cue is marked as validated or not."""
    table = without_column(table, "Over", lambda names: names != {ALL})
    return without_unmarked_cues(table)


def cell(
    result: FindingResult[Any] | None,
    e: Estimate | None,
    key: str,
    kind: Kind = "percent",
    *,
    digits: int = 2,
    small: str = "",
) -> Cell:
    """Make a cell for an estimate with its full key; for None, make an empty cell."""
    if e is None:
        return Cell()
    bare = msgspec.structs.replace(e, best=None, worst=None)  # missing replies are often missing on purpose here
    return Cell(bare, kind, small=small, digits=digits, key=_full(result, key))


def measure_cell(
    result: FindingResult[Any], measure: str, e: Estimate | None, key: str, *, difference: bool = False, small: str = ""
) -> Cell:
    """Make a cell for a measure's value, or for a difference of two values, with the measure's scale and decimals."""
    return cell(result, e, key, kind_of(measure, difference=difference), digits=about(measure).digits, small=small)


def text(result: FindingResult[Any], words: str, key: str) -> Cell:
    """Make a cell of text, such as a count."""
    return text_cell(words, _full(result, key))


def p_cell(result: FindingResult[Any], p: float | None, of: Estimate, key: str) -> Cell:
    """Make a cell for a p-value, with the number of cases of the tested difference `of`."""
    if p is None:
        return text_cell(NONE, _full(result, key))
    return Cell(Estimate(p, None, None, of.scored, of.asked), "text", p_number(p), key=_full(result, key))


def _full(result: FindingResult[Any] | None, key: str) -> str:
    return "" if result is None else result.prefix + key  # a published number has no cases


# ── measures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def kind_of(measure: str, *, difference: bool = False) -> Kind:
    """Return a measure's number format: percent for shares, points for differences of shares, else its own scale."""
    if not is_percent(measure):
        return "number"
    return "points" if difference else "percent"


def digits_of(measure: str) -> int:
    """Return the number of decimals shown for a measure."""
    return about(measure).digits


def head(measure: str) -> str:
    """Return the column heading of a measure."""
    arrow = {"higher": " ↑", "lower": " ↓"}.get(about(measure).better, "")
    return f"{short(measure)}{arrow}" + (" · %" if is_percent(measure) else "")
