"""Tables written for a terminal, as Markdown, as LaTeX and as CSV: the one place that does each.

Names of runs, judges and cues are other people's text: each writer makes it harmless in its own way.
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

from overtone.paths import shown
from overtone.report.grid import Grid, Words, grid
from overtone.report.table import Cell, PartTable
from overtone.runs.export import cell as harmless

GAP = 2  # between columns
WIDE = 160  # of a log
WIDEST = 44  # a column of text; longer ones fold
ENDS = str.maketrans({"\u00a0": " "})


# ── the terminal ────────────────────────────────────────────────────────────────────────────────────────────────────


def make_console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that writes no escape codes unless a terminal reads them; a log gets wide, unfolded lines, or as many
    columns as COLUMNS says."""
    console = Console(file=file, highlight=False, width=width)
    if not console.is_terminal and width is None:
        told = os.environ.get("COLUMNS", "")
        width = int(told) if told.isascii() and told.isdigit() and int(told) > 0 else WIDE
        console = Console(file=file, highlight=False, width=width, color_system=None)
    return console


def safe(text: str) -> str:
    """Text of others, on one line, without control characters and without markup."""
    return escape(shown(text.translate(ENDS)))


def to_terminal(
    console: Console, tables: Iterable[PartTable], labels: Sequence[str] = (), *, hints: bool = False
) -> None:
    """Print tables as wide as the console is: intervals move below their values where they do not fit beside them, and
    columns that still do not fit stand further down. `hints` are how to read each."""
    for table in (t for t in tables if t.lines):
        console.print()
        _draw(console, grid(table, labels))
        if hints and table.hint:
            console.print(safe(table.hint), style="dim")


def _draw(console: Console, g: Grid) -> None:
    title, g = _hoisted(g)
    width = console.width
    left = _left_widths(g, width)
    room = width - sum(left) - GAP * len(left)
    below = False
    widths = _cell_widths(g, below, room)
    if sum(widths) + GAP * len(widths) > room + GAP:
        below = True
        widths = _cell_widths(g, below, room)
    console.print(safe(title), style="bold")
    for number, part in enumerate(_pieces(widths, room + GAP)):
        if number:
            console.print()
        table = RichTable(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        for head, w in zip(g.left, left, strict=True):
            table.add_column(_wrapped(head, w), width=w, overflow="fold", vertical="top")
        for at in part:
            table.add_column(_wrapped(g.heads[at], widths[at]), justify="right", width=widths[at], overflow="fold")
        previous: list[str] = []
        for names, cells in g.rows:
            new = [n for n, name in enumerate(names) if names[: n + 1] != previous[: n + 1]]
            kept = [safe(name) if n in new or n == len(names) - 1 else "" for n, name in enumerate(names)]
            table.add_row(*kept, *("\n".join(map(safe, _lines(cells[at], below))) for at in part))
            previous = names
        console.print(table)
    for number, note in enumerate(g.notes, 1):
        console.print(f"{Words('', notes=(number,)).mark} {safe(note)}")


def _hoisted(g: Grid) -> tuple[str, Grid]:
    """A run or condition that is the same in every row stands in the title instead."""
    title, left, rows = g.title, list(g.left), [(list(names), cells) for names, cells in g.rows]
    for head in ("run", "condition"):
        at = left.index(head) if head in left else -1
        said = {names[at] for names, _ in rows} if at >= 0 else set()
        if len(said) == 1:
            title = f"{title} · {said.pop()}"
            del left[at]
            for names, _ in rows:
                del names[at]
    return title, Grid(title, g.hint, left, g.heads, rows, g.notes)


def _lines(words: Words, below: bool) -> list[str]:
    """A cell's lines; `below`: what is in brackets under what it is of."""
    if not below:
        return [words.line, *words.below]
    first = [words.value + words.mark, *([words.between] if words.between else [])]
    if not words.between:  # a text may hold its interval itself
        first = re.split(r" (?=[\[(])", words.line)
    return [*first, *words.below]


def _left_widths(g: Grid, width: int) -> list[int]:
    """Columns of names: as wide as their longest, and together at most 45 of 100 columns."""
    wanted = [
        max(_longest_word(head), *(cell_len(shown(names[n])) for names, _ in g.rows)) if g.rows else len(head)
        for n, head in enumerate(g.left)
    ]
    most = max(45 * width // 100, 12 * len(wanted))
    while sum(wanted) + GAP * len(wanted) > most and max(wanted) > 12:
        wanted[wanted.index(max(wanted))] -= 1
    return wanted


def _cell_widths(g: Grid, below: bool, room: int) -> list[int]:
    found = []
    for at, head in enumerate(g.heads):
        lines = [cell_len(shown(line)) for _, cells in g.rows for line in _lines(cells[at], below)]
        found.append(min(max(_longest_word(head), *lines, 1), max(min(WIDEST, room), 8)))
    return found


def _pieces(widths: Sequence[int], room: int) -> list[list[int]]:
    """The columns, as many side by side as fit."""
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
    """The words of a head; an arrow or a unit stays with the word before it."""
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


def markdown(tables: Iterable[PartTable], labels: Sequence[str] = (), *, level: int = 2, hints: bool = True) -> str:
    """Tables with their headings, what they say and their footnotes."""
    lines: list[str] = []
    for table in tables:
        g = grid(table, labels)
        lines += [f"{'#' * level} {plain(g.title)}", ""]
        lines += [plain(g.hint), ""] if hints and g.hint else []
        lines += [*markdown_rows([*g.left, *g.heads], [[*names, *(c.all for c in cells)] for names, cells in g.rows])]
        if g.notes:
            lines += ["", *(f"{n}. {plain(note)}" for n, note in enumerate(g.notes, 1))]
        lines.append("")
    return "\n".join(lines)


def markdown_rows(heads: Sequence[str], found: Sequence[Sequence[str]]) -> list[str]:
    """The lines of one table; what strangers wrote stays text."""
    lines = ["| " + " | ".join(map(plain, heads)) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(map(plain, row)) + " |" for row in found)]


def plain(text: str) -> str:
    """Text of others in Markdown: on one line, without markup."""
    return re.sub(r"([\\`*_{}\[\]<>|#!~&])", r"\\\1", shown(text.translate(ENDS))) if text else ""


# ── LaTeX ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": "'", "[": "{[}", "]": "{]}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$", "▸": r"$\triangleright$", "−": r"$-$",
    "–": "--", "—": "---", "’": "'", "‘": "`", "“": "``", "”": "''", "…": r"\dots{}", "·": r"$\cdot$", "′": r"$'$",
    "±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "≥": r"$\geq$", "≤": r"$\leq$", "½": r"$\frac{1}{2}$",
    "α": r"$\alpha$", "κ": r"$\kappa$", "ρ": r"$\rho$", "τ": r"$\tau$", "Δ": r"$\Delta$",
    "✓": r"$\checkmark$",
}  # fmt: skip
_LATEX_CHARACTERS = re.compile("[" + re.escape("".join(_LATEX)) + "]")


def latex(tables: Iterable[PartTable], labels: Sequence[str] = ()) -> str:
    """Tables for a paper that loads booktabs (and amssymb). The caption says how to read each."""
    made = ["% \\usepackage{booktabs,amssymb}\n"]
    for table in tables:
        g = grid(table, labels)
        notes = [rf"\textsuperscript{{{n}}}~{escaped(note)}" for n, note in enumerate(g.notes, 1)]
        rows = [[*map(escaped, names), *map(_latex_cell, cells)] for names, cells in g.rows]
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(_stop(g.title))} {escaped(g.hint)}}}",
            rf"\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', table.key).strip('-')}}}",
            rf"\begin{{tabular}}{{{'l' * len(g.left)}{'r' * len(g.heads)}}}",
            r"\toprule",
            " & ".join(map(escaped, [*g.left, *g.heads])) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            *([r"\par\smallskip\footnotesize " + " ".join(notes)] if notes else []),
            r"\end{table}",
        ]
        made.append("\n".join(lines) + "\n")
    return "\n".join(made)


def _latex_cell(words: Words) -> str:
    small = " ".join(filter(None, (words.between, ", ".join(words.below))))
    mark = rf"\textsuperscript{{{','.join(map(str, words.notes))}}}" if words.notes else ""
    return escaped(words.value) + mark + (rf" {{\scriptsize {escaped(small)}}}" if small else "")


def _stop(title: str) -> str:
    return title if title.endswith((".", "?", "!")) else f"{title}."


def escaped(text: str) -> str:
    """Text of others in LaTeX: no character of it does anything."""
    return _LATEX_CHARACTERS.sub(lambda found: _LATEX[found[0]], shown(text.translate(ENDS)))


# ── CSV ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def csv_text(tables: Iterable[PartTable], labels: Sequence[str] = ()) -> str:
    """One row for each number, on the scale it is shown on but not rounded; the columns that name rows by their heads.

    A text cell has its text as value. No spreadsheet takes a cell for a formula.
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
                    write(*where, *_numbers(cell), "; ".join(cell.told), cell.key)
    return out.getvalue()


def _numbers(cell: Cell) -> tuple[str | float | None, ...]:
    """Value, low, high, scored, asked."""
    e = cell.estimate
    if e is None:
        return cell.text, None, None, None, None
    scale = 100.0 if cell.kind in ("percent", "points") else 1.0
    value, low, high = (None if x is None else round(scale * x, 10) + 0.0 for x in (e.value, e.low, e.high))
    return value, low, high, e.scored, e.asked
