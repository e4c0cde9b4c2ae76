"""A table in words, ready to write: columns that name a row, and cells as value, interval and small print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from overtone.display.table_data import Cell, Line, PartTable, bounds, counted
from overtone.results.measures import Estimate
from overtone.text import NONE, interval, value_of

MARKS = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")


@dataclass(frozen=True)
class Words:
    """A cell in words: `61.2`, `[55.0 to 67.1]`, the lines below, and the numbers of its footnotes."""

    value: str
    between: str = ""
    below: tuple[str, ...] = ()
    notes: tuple[int, ...] = ()

    @property
    def mark(self) -> str:
        """The footnote numbers in superscript."""
        return ",".join(map(str, self.notes)).translate(MARKS)

    @property
    def line(self) -> str:
        """Value, mark and interval."""
        return " ".join(filter(None, (self.value + self.mark, self.between)))

    @property
    def all(self) -> str:
        """Everything in one line: `61.2 [55.0 to 67.1], 40 of 40`."""
        return ", ".join(filter(None, (self.line, *self.below)))


@dataclass
class Grid:
    """`left` are the heads of the columns that name a row; each row is its names and its cells."""

    title: str
    hint: str
    left: list[str]
    heads: list[str]
    rows: list[tuple[list[str], list[Words]]]
    notes: list[str] = field(default_factory=list)


def grid(table: PartTable, labels: Sequence[str] = ()) -> Grid:
    """Return a table in words. A number of cases that all cells of a row share is written once, before them."""
    runs = table.of_runs and len(labels) > 1
    conditions = table.of_conditions
    left = [*(["run"] if runs else []), *(["condition"] if conditions else []), *table.names]
    once = _counted_once(table)
    notes: dict[str, int] = {}
    rows = []
    for line in table.lines:
        names = [labels[line.run] if line.run is not None and line.run < len(labels) else ""] if runs else []
        names += [line.condition] if conditions else []
        cells = [_words(cell, notes, with_count=not once) for cell in line.cells]
        if once:
            cells.insert(0, Words(next((counted(e) for e in _estimates(line)), "")))
        rows.append(([*names, *line.names], cells))
    heads = [*(["n"] if once else []), *table.heads]
    return Grid(table.title, table.hint, left, heads, rows, list(notes))


def _estimates(line: Line) -> list[Estimate]:
    """Return the estimates whose numbers of cases are shown."""
    return [cell.estimate for cell in line.cells if cell.estimate is not None and not cell.text]


def _counted_once(table: PartTable) -> bool:
    counts = [{(e.scored, e.asked) for e in _estimates(line)} for line in table.lines]
    return max(map(len, counts), default=0) == 1 and len(table.heads) > 1


def _words(cell: Cell, notes: dict[str, int], *, with_count: bool) -> Words:
    e = cell.estimate
    numbers = tuple(sorted({notes.setdefault(note, len(notes) + 1) for note in cell.all_notes}))
    small = tuple(part for part in cell.small.split(" · ") if part)
    if cell.kind == "text" or cell.text:
        return Words(cell.text, "", small, numbers)
    if e is None:
        return Words(NONE, "", small, numbers)
    ends = interval(e, cell.kind, cell.digits) if e.value is not None else ""
    missing = bounds(e, cell.kind, cell.digits) if e.value is not None else ""
    below = ([counted(e)] if with_count and e.asked else []) + ([f"bounds {missing}"] if missing else [])
    return Words(value_of(e, cell.kind, cell.digits), f"[{ends}]" if ends else "", (*below, *small), numbers)
