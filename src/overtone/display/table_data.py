"""A table as plain values, independent of its format: terminal, HTML, Markdown, LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from overtone.results.measures import Estimate
from overtone.text import by_kind, number

NOT_VALIDATED = "cues not validated"
BASES = {"validated": "validated cues", "unvalidated": NOT_VALIDATED, "": "all cues"}  # as tables name them


class Cell(Struct, frozen=True):
    """One cell of a table. A cell of kind `points` is a difference of percentages; one of kind `number` has its own
    scale.

    If a cell has both `text` and an estimate, the text is shown.
    """

    estimate: Estimate | None = None
    kind: Literal["percent", "number", "points", "text"] = "percent"
    text: str = ""
    small: str = ""  # shown below
    digits: int = 2  # decimals of a "number"
    title: str = ""  # the tooltip: how it was measured
    key: str = ""  # leads to the cases behind the number
    notes: tuple[str, ...] = ()  # footnotes

    @property
    def all_notes(self) -> tuple[str, ...]:
        """All footnotes: its own, then that of its estimate."""
        return (*self.notes, *((self.estimate.note,) if self.estimate is not None and self.estimate.note else ()))


def text_cell(text: str, key: str = "", small: str = "") -> Cell:
    """Make a cell of text, such as a count."""
    return Cell(kind="text", text=text, small=small, key=key)


def chance_note(rate: float | None, digits: int = 0) -> str:
    """Format the rate of blind guessing for the small print below a rate: `chance 25`."""
    return "" if rate is None else f"chance {number(100 * rate, digits)}"


def counted(e: Estimate | None) -> str:
    """Format the number of scored replies: `38 of 40`."""
    return "" if e is None else f"{e.scored:,} of {e.asked:,}"


def bounds(e: Estimate | None, kind: str = "percent", digits: int = 2) -> str:
    """Format the worst and the best possible value, given that replies are missing; "" if no reply is missing."""
    if e is None or not e.missing or e.best is None or e.worst is None:
        return ""
    low, high = sorted((e.best, e.worst))
    return f"{by_kind(low, kind, digits)} to {by_kind(high, kind, digits)}"


class Line(Struct, frozen=True):
    """A row: its run, its condition, its names and its cells."""

    run: int | None  # the position of its run; None for a row about no run or all runs
    condition: str
    names: tuple[str, ...]
    cells: tuple[Cell, ...]


class PartTable(Struct, frozen=True):
    """A table with a title and a hint. If no line has a run or a condition, the table has no such column."""

    key: str
    title: str
    hint: str
    names: tuple[str, ...]  # heads of the columns that name a row
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    run_head: str = ""  # the head of the column of runs, which is then written for a single run as well
    short: Mapping[str, str] = {}  # head → abbreviation in print, which the caption explains

    @property
    def of_runs(self) -> bool:
        return any(line.run is not None for line in self.lines)

    @property
    def of_conditions(self) -> bool:
        return any(line.condition for line in self.lines)


def without_column(table: PartTable, name: str, keep: Callable[[set[str]], bool]) -> PartTable:
    """Drop the column `name` of a table's row names unless `keep`, given the column's values, returns True."""
    if name not in table.names:
        return table
    at = table.names.index(name)
    if keep({line.names[at] for line in table.lines}):
        return table
    lines = tuple(
        Line(line.run, line.condition, line.names[:at] + line.names[at + 1 :], line.cells) for line in table.lines
    )
    return replace(table, names=table.names[:at] + table.names[at + 1 :], lines=lines)


def without_unmarked_cues(table: PartTable) -> PartTable:
    """Drop the column "Cues" if the benchmark does not mark cues as validated."""
    return without_column(table, "Cues", lambda bases: bases != {BASES[""]})
