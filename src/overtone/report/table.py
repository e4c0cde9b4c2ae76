"""A table as plain values: what stands in which row and column, for the terminal, a page and a paper alike."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from overtone.analysis.measures import Estimate


class Cell(Struct, frozen=True):
    """One number of a table. A `number` has no percent sign to think of; `points` are a difference of percentages.

    `text` is shown instead of the estimate where both are given.
    """

    estimate: Estimate | None = None
    kind: Literal["percent", "number", "points", "text"] = "percent"
    text: str = ""
    small: str = ""  # stands below
    digits: int = 2  # of a bare number
    title: str = ""  # how it was measured, on demand
    key: str = ""  # of a finding's number: what to ask for the cases under it
    notes: tuple[str, ...] = ()  # what a reader must know beside it: footnotes

    @property
    def told(self) -> tuple[str, ...]:
        """All footnotes: its own, then that of its estimate."""
        return (*self.notes, *((self.estimate.note,) if self.estimate is not None and self.estimate.note else ()))


class Line(Struct, frozen=True):
    """A row: whose, under which condition, over what, and its cells."""

    run: int | None  # position among the runs given; None where a row is of no run or of all
    condition: str
    names: tuple[str, ...]
    cells: tuple[Cell, ...]


class PartTable(Struct, frozen=True):
    """A table with the words that explain it. Without runs or conditions in its lines it has no such columns."""

    key: str
    title: str
    hint: str
    names: tuple[str, ...]  # heads of the columns that name a row
    heads: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def of_runs(self) -> bool:
        return any(line.run is not None for line in self.lines)

    @property
    def of_conditions(self) -> bool:
        return any(line.condition for line in self.lines)
