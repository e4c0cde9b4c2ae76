"""Write tables for a terminal, as Markdown and as CSV; `latex_tables` writes LaTeX.

Names of runs, judges and cues are untrusted text: each writer escapes it for its format.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from overtone.display.grid import FULL, Grid, Look, Words, grid
from overtone.display.table_data import Cell, PartTable
from overtone.paths import shown
from overtone.runs.export_rows import cell as harmless

GAP = 2  # between columns
WIDE = 160  # of a log
WIDEST = 44  # a column of text; longer ones fold
ENDS = str.maketrans({"\u00a0": " "})


# ── the terminal ────────────────────────────────────────────────────────────────────────────────────────────────────


def make_console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """Return a console that writes escape codes only to a terminal. A log file gets long lines without wrapping, or
    the width in COLUMNS."""
    console = Console(file=file, highlight=False, emoji=False, width=width)
    if not console.is_terminal and width is None:
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isascii() and columns.isdigit() and int(columns) > 0 else WIDE
        console = Console(file=file, highlight=False, emoji=False, width=width, color_system=None)
    return console


def safe(text: str) -> str:
    """Return untrusted text as one line, without control characters and without markup."""
    return escape(shown(text.translate(ENDS)))


def to_terminal(
    console: Console, tables: Iterable[PartTable], labels: Sequence[str] = (), *, hints: bool = False, look: Look = FULL
) -> None:
    """Print tables that fit the width of the console. Intervals that do not fit beside their values are printed
    below them, and columns that still do not fit are printed further down.

    `hints` adds how to read each table.
    """
    for table in (t for t in tables if t.lines):
        console.print()
        g = grid(table, labels, look)
        _draw(console, g)
        if hints and g.hint:
            console.print(safe(g.hint), style="dim")


def _draw(console: Console, g: Grid) -> None:
    title, g = _hoisted(g)
    headings = 0  # this many columns of names are printed above their rows, because there is no room beside them
    left, widths, room = _measured(g, 0, console.width, below=False)
    if _span(widths) > room:
        headings = _repeating(g)
        left, widths, room = _measured(g, headings, console.width, below=False)
    if below := _span(widths) > room:
        left, widths, room = _measured(g, headings, console.width, below=True)
    console.print(safe(title), style="bold")
    for number, part in enumerate(_pieces(widths, room)):
        if number:
            console.print()
        heads = [*zip(g.left[headings:], left, strict=True)]
        numbers = [(g.heads[at], widths[at]) for at in part]
        group: list[str] | None = None
        table = _rich(heads, numbers, header=True)
        previous: list[str] = []
        for names, cells in g.rows:
            if headings and names[:headings] != group:
                console.print(table)
                if group is not None:
                    console.print()
                console.print(safe(_heading(names[:headings])), style="italic")
                group, previous = names[:headings], []
                table = _rich(heads, numbers, header=False)
            own = names[headings:]
            new = [n for n in range(len(own)) if n == len(own) - 1 or own[: n + 1] != previous[: n + 1]]
            kept = [safe(name) if n in new else "" for n, name in enumerate(own)]
            table.add_row(*kept, *(_marked_up(cells[at], below) for at in part))
            previous = own
        console.print(table)
    for number, note in enumerate(g.notes, 1):
        console.print(f"{Words('', notes=(number,)).mark} {safe(note)}")


def _marked_up(words: Words, below: bool) -> str:
    text = "\n".join(map(safe, _lines(words, below)))
    return f"[bold]{text}[/bold]" if words.bold else text


def _rich(left: Sequence[tuple[str, int]], numbers: Sequence[tuple[str, int]], *, header: bool) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=header)
    for head, width in left:
        table.add_column(_wrapped(head, width), width=width, overflow="fold")
    for head, width in numbers:
        table.add_column(_wrapped(head, width), width=width, overflow="fold", justify="right")
    return table


def _hoisted(g: Grid) -> tuple[str, Grid]:
    """Move names that are the same in every row from their columns to the title. Other names keep their columns."""
    last = len(g.left) - (0 if g.left[-1:] in (["run"], ["condition"], ["Model"]) else 1)
    same = [at for at in range(last) if len({names[at] for names, _ in g.rows}) == 1]
    kept = [at for at in range(len(g.left)) if at not in same]
    title = _heading([g.title, *(g.rows[0][0][at] for at in same)])
    rows = [([names[at] for at in kept], cells) for names, cells in g.rows]
    return title, Grid(title, g.hint, [g.left[at] for at in kept], g.heads, rows, g.notes)


def _heading(parts: Iterable[str]) -> str:
    """Join the non-empty parts without duplicates, because the name of a run's row and the comparison may both
    contain the condition."""
    return " · ".join(dict.fromkeys(filter(None, parts)))


def _repeating(g: Grid) -> int:
    """Return how many of the first name columns hold names that several rows share. The last name column never
    counts."""
    for count in range(len(g.left) - 1, 0, -1):
        if 2 * len({tuple(names[:count]) for names, _ in g.rows}) <= len(g.rows):
            return count
    return 0


def _measured(g: Grid, headings: int, width: int, *, below: bool) -> tuple[list[int], list[int], int]:
    """Return the widths of the name columns, the widths of the cell columns, and the room for the cells."""
    left = _left_widths(g, headings, width)
    room = width - sum(left) - GAP * len(left) + GAP  # the last column needs no gap behind it
    return left, _cell_widths(g, below, room), room


def _span(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * len(widths)


def _lines(words: Words, below: bool) -> list[str]:
    """Return the lines of a cell. With `below`, intervals in brackets are on separate lines."""
    if not below:
        return [words.line, *words.below]
    first = [words.value + words.mark, *([words.between] if words.between else [])]
    if not words.between:  # a text may hold its interval itself
        first = re.split(r" (?=[\[(])", words.line)
    return [*first, *words.below]


def _left_widths(g: Grid, headings: int, width: int) -> list[int]:
    """Return the widths of the name columns: each fits its longest name, and together they take at most 45 % of the
    width."""
    wanted = [
        max(_longest_word(g.left[n]), *(cell_len(shown(names[n])) for names, _ in g.rows))
        for n in range(headings, len(g.left))
    ]
    most = max(45 * width // 100, 12 * len(wanted))
    while wanted and sum(wanted) + GAP * len(wanted) > most and max(wanted) > 12:
        wanted[wanted.index(max(wanted))] -= 1
    return wanted


def _cell_widths(g: Grid, below: bool, room: int) -> list[int]:
    widths = []
    for at, head in enumerate(g.heads):
        lines = [cell_len(shown(line)) for _, cells in g.rows for line in _lines(cells[at], below)]
        widths.append(min(max(_longest_word(head), *lines, 1), max(min(WIDEST, room), 8)))
    return widths


def _pieces(widths: Sequence[int], room: int) -> list[list[int]]:
    """Split the columns into groups that fit side by side."""
    pieces: list[list[int]] = [[]]
    used = 0
    for at, width in enumerate(widths):
        if pieces[-1] and used + width + GAP > room:
            pieces.append([])
            used = 0
        pieces[-1].append(at)
        used += width + GAP
    return pieces


def _glued(head: str) -> list[str]:
    """Return the words of a column head; an arrow or a unit stays with the word before it."""
    return re.sub(r"[ \u00a0](?=[↑↓%·])", "\u00a0", head).split(" ")


def _longest_word(head: str) -> int:
    return max(cell_len(word) for word in _glued(head))


def _wrapped(head: str, width: int) -> str:
    lines = [""]
    for word in _glued(head):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(map(safe, lines))


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────────────────────────


def markdown(
    tables: Iterable[PartTable], labels: Sequence[str] = (), *, level: int = 2, hints: bool = True, look: Look = FULL
) -> str:
    """Return tables as Markdown, with headings, hints and footnotes."""
    lines: list[str] = []
    for table in tables:
        g = grid(table, labels, look)
        lines += [f"{'#' * level} {plain(g.title)}", ""]
        lines += [plain(g.hint), ""] if hints and g.hint else []
        rows = [[*map(plain, names), *map(_markdown_cell, cells)] for names, cells in g.rows]
        lines += _markdown_lines([*g.left, *g.heads], rows)
        if g.notes:
            lines += ["", *(f"{n}. {plain(note)}" for n, note in enumerate(g.notes, 1))]
        lines.append("")
    return "\n".join(lines)


def markdown_rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of one Markdown table. Untrusted text is escaped."""
    return _markdown_lines(heads, [[*map(plain, row)] for row in rows])


def _markdown_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(plain, heads)) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def _markdown_cell(words: Words) -> str:
    return f"**{plain(words.all)}**" if words.bold else plain(words.all)


def plain(text: str) -> str:
    """Return untrusted text for Markdown: on one line, without markup."""
    return re.sub(r"([\\`*_{}\[\]<>|#!~&])", r"\\\1", shown(text.translate(ENDS))) if text else ""


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def csv_text(tables: Iterable[PartTable], labels: Sequence[str] = ()) -> str:
    """Return one CSV row for each number, not rounded, on the scale on which tables show it.

    The value of a text cell is its text. Cells that a spreadsheet would read as a formula are escaped.
    """
    made = list(tables)
    named = list(dict.fromkeys(name for table in made for name in table.names))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")

    def write(*cells: str | float | None) -> None:
        writer.writerow([harmless(shown(x.translate(ENDS))) if isinstance(x, str) else x for x in cells])

    write("table", "run", "condition", *named, "column", "value", "low", "high", "scored", "asked", "note", "key")
    for table in made:
        for line in table.lines:
            run = labels[line.run] if line.run is not None and line.run < len(labels) else ""
            names = dict(zip(table.names, line.names, strict=True))
            for head, cell in zip(table.heads, line.cells, strict=True):
                if cell.estimate is not None or cell.text:
                    where = (table.key, run, line.condition, *(names.get(name, "") for name in named), head)
                    write(*where, *_numbers(cell), "; ".join(cell.all_notes), cell.key)
    return out.getvalue()


def _numbers(cell: Cell) -> tuple[str | float | None, ...]:
    """Return value, low, high, scored, asked."""
    e = cell.estimate
    if e is None:
        return cell.text, None, None, None, None
    scale = 100.0 if cell.kind in ("percent", "points") else 1.0
    value, low, high = (None if x is None else round(scale * x, 10) + 0.0 for x in (e.value, e.low, e.high))
    return value, low, high, e.scored, e.asked
