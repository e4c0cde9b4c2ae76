"""A table as text, ready to be written: columns that name each row, and cells with a value, an interval and small
print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from overtone.display.table_data import Cell, Line, PartTable, bounds, counted
from overtone.results.measures import Estimate
from overtone.text import NONE, by_kind, interval, value_of

MARKS = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")


@dataclass(frozen=True)
class Words:
    """A cell as text: its value (`61.2`), its interval (`[55.0 to 67.1]`), the lines below, and the numbers of its
    footnotes."""

    value: str
    between: str = ""
    below: tuple[str, ...] = ()
    notes: tuple[int, ...] = ()
    bold: bool = False

    @property
    def mark(self) -> str:
        """The footnote numbers as superscript digits."""
        return ",".join(map(str, self.notes)).translate(MARKS)

    @property
    def line(self) -> str:
        """Value, mark and interval."""
        return " ".join(filter(None, (self.value + self.mark, self.between)))

    @property
    def all(self) -> str:
        """Everything in one line: `61.2 [55.0 to 67.1], 40 of 40`."""
        return ", ".join(filter(None, (self.line, *self.below)))


@dataclass(frozen=True)
class Look:
    """How cells are written.

    A compact cell is `61.2 ±5.6`: the value and half the width of the interval. The numbers of cases are then in the
    hint. With `bold_best`, the best value of each column whose head has an arrow is bold.
    """

    compact: bool = False
    bold_best: bool = False


FULL = Look()
IN_BRACKETS = "In brackets the 95 % interval by script."  # in a hint; compact cells have no brackets


@dataclass
class Grid:
    """A table as text. `left` has the heads of the columns that name a row. Each row has its names and its cells."""

    title: str
    hint: str
    left: list[str]
    heads: list[str]
    rows: list[tuple[list[str], list[Words]]]
    notes: list[str] = field(default_factory=list)


def grid(table: PartTable, labels: Sequence[str] = (), look: Look = FULL) -> Grid:
    """Return a table as text. If all cells of a row have the same number of cases, it is written once, before them."""
    runs = table.of_runs and (len(labels) > 1 or bool(table.run_head and labels))
    conditions = table.of_conditions
    left = [*([table.run_head or "run"] if runs else []), *(["condition"] if conditions else []), *table.names]
    once = not look.compact and _counted_once(table)
    best = _best(table) if look.bold_best else set()
    notes: dict[str, int] = {}
    rows = []
    for at, line in enumerate(table.lines):
        names = [labels[line.run] if line.run is not None and line.run < len(labels) else ""] if runs else []
        names += [line.condition] if conditions else []
        cells = [_compact(cell, notes) if look.compact else _words(cell, notes, not once) for cell in line.cells]
        cells = [replace(cell, bold=(at, column) in best) for column, cell in enumerate(cells)]
        if once:
            cells.insert(0, Words(next((counted(e) for e in _estimates(line)), "")))
        rows.append(([*names, *line.names], cells))
    heads = [*(["n"] if once else []), *table.heads]
    hint = table.hint
    if look.compact:
        hint = " ".join(filter(None, (hint.replace(f"{IN_BRACKETS} ", ""), *_compact_hint(table))))
    return Grid(table.title, hint, left, heads, rows, list(notes))


def better_of(head: str) -> str:
    """Return the better direction of a column by the arrow in its head: "higher", "lower", or "" without one."""
    return "higher" if "↑" in head else "lower" if "↓" in head else ""


def _best(table: PartTable) -> set[tuple[int, int]]:
    """Return the (line, column) of each best value.

    If the table has several runs, runs are compared under the same condition and with the same row names. Otherwise all
    lines are compared. Values that are equal after rounding are equally good.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for at, line in enumerate(table.lines):
        groups.setdefault((line.condition, *line.names) if table.of_runs else (), []).append(at)
    best: set[tuple[int, int]] = set()
    for column, head in enumerate(table.heads):
        better = better_of(head)
        for lines in groups.values():
            values = {at: x for at in lines if (x := _shown_value(table.lines[at].cells[column])) is not None}
            if better and len(values) > 1:
                top = max(values.values()) if better == "higher" else min(values.values())
                best |= {(at, column) for at, value in values.items() if value == top}
    return best


def _shown_value(cell: Cell) -> float | None:
    """Return the number as it is written, rounded; None if the cell has none."""
    text = cell.text or (value_of(cell.estimate, cell.kind, cell.digits) if cell.estimate is not None else "")
    try:
        return float(text.replace("−", "-").replace(",", ""))
    except ValueError:
        return None


def _compact(cell: Cell, notes: dict[str, int]) -> Words:
    """Write a cell as `61.2 ±5.6`."""
    full = _words(cell, notes, False)
    e = cell.estimate
    if cell.kind == "text" or cell.text or e is None or e.value is None or e.low is None or e.high is None:
        return replace(full, below=())
    return replace(full, between=f"±{by_kind((e.high - e.low) / 2, cell.kind, cell.digits)}", below=())


def _compact_hint(table: PartTable) -> Iterator[str]:
    """Yield sentences on what compact cells leave out: the meaning of ±, and the number of cases by column."""
    yield "± is half the width of the 95 % interval by script."
    columns: dict[str, list[str]] = {}
    missing = False
    for column, head in enumerate(table.heads):
        counts = [e for line in table.lines for e in _estimates(line, column) if e.asked]
        missing = missing or any(e.missing for e in counts)
        if counts:
            low, high = min(e.scored for e in counts), max(e.scored for e in counts)
            columns.setdefault(f"{low:,}" if low == high else f"{low:,}–{high:,}", []).append(_bare(head))
    if len(columns) == 1:
        yield f"n = {next(iter(columns))}."
    elif columns:
        yield "n: " + "; ".join(f"{', '.join(heads)} {n}" for n, heads in columns.items()) + "."
    if missing:
        yield "Some replies are missing; the full table has their bounds."


def _bare(head: str) -> str:
    return head.replace("\u00a0", " ").rstrip(" ↑↓")


def _estimates(line: Line, column: int | None = None) -> list[Estimate]:
    """Return the estimates of a line, or of one of its columns, whose numbers of cases are shown."""
    cells = line.cells if column is None else line.cells[column : column + 1]
    return [cell.estimate for cell in cells if cell.estimate is not None and not cell.text]


def _counted_once(table: PartTable) -> bool:
    counts = [{(e.scored, e.asked) for e in _estimates(line)} for line in table.lines]
    return max(map(len, counts), default=0) == 1 and len(table.heads) > 1


def _words(cell: Cell, notes: dict[str, int], with_count: bool) -> Words:
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
