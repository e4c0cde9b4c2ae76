"""Write tables as LaTeX that fits the page of a two-column article, with booktabs.

Widths are estimated in Computer Modern, which is wider than Times. A table that fits one column is a `table`, others
are a `table*`. If a table is too wide, the writer takes a smaller font, then splits the columns into panels below each
other; it never scales a table. Names of runs, judges and cues are untrusted text and are escaped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from overtone.display.grid import FULL, Grid, Look, Words, grid
from overtone.display.table_data import PartTable
from overtone.paths import shown

PAGE, COLUMN = 448.0, 217.0  # points: the text and one column of a two-column article on A4
FLOATS = 10  # floats before a \clearpage: LaTeX holds back at most 18, then fails
TALLEST = 470.0  # points of the rows in one float, which leaves room for a caption
NAMES = 0.34  # the share of the width that names may take before they are broken, unless a word needs more
LETTERS = 6  # of a word in a narrow column, before a line may end within it


class _Size(NamedTuple):
    command: str
    scale: float  # of the widths below, which are in points at 10 pt
    line: float  # points from line to line
    gap: float  # points on each side of a column


SIZES = tuple(
    _Size(command, scale, line, gap)
    for command, scale, line, gaps in (
        (r"\small", 0.925, 11.0, (6.0, 4.0)),
        (r"\footnotesize", 0.85, 9.5, (4.0, 3.0)),
        (r"\scriptsize", 0.80, 8.0, (3.0, 2.0)),
    )
    for gap in gaps
)
_SCRIPT = 0.80  # the scale of \scriptsize

_WIDTHS = {
    c: width
    for width, letters in (
        (2.8, "ijl!',.:;[]`’‘ "), (3.4, "-f"), (4.0, "I()rst"), (4.5, "cez?"), (5.0, "ag0123456789/^~$*\"_o–“”"),
        (5.6, "bdhknpquvxySJ"), (6.6, "FLZ{}\\"), (7.3, "BCDEPRTKw"), (7.9, "AGHNOQUVXY&+=<>@±×−"), (8.5, "m#%Δ"),
        (10.3, "MW|→…—↑↓"),
    )
    for c in letters
}  # fmt: skip


def width_of(text: str, scale: float = 1.0) -> float:
    """Estimate the width of a text in points, rather too wide than too narrow. A character that may be printed as
    its code, such as U+1F600, counts as 45 points."""
    return scale * _points(text)


@lru_cache(maxsize=100_000)
def _points(text: str) -> float:
    return sum(_WIDTHS.get(c) or (7.5 if c in _TYPESET else 45.0) for c in shown(text.translate(_SPACES)))


# ── escaping ────────────────────────────────────────────────────────────────────────────────────────────────────────

_SPACES = str.maketrans({"\u00a0": " "})
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", "*": "{*}", "[": "{[}", "]": "{]}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$", "▸": r"$\triangleright$", "−": r"$-$",
    "–": "--", "—": "---", "’": "'", "‘": "`", "“": "``", "”": "''", "…": r"\dots{}", "·": r"$\cdot$", "′": r"$'$",
    "±": r"$\pm$", "×": r"$\times$", "÷": r"$\div$", "≥": r"$\geq$", "≤": r"$\leq$", "½": r"$\frac{1}{2}$",
    "α": r"$\alpha$", "κ": r"$\kappa$", "ρ": r"$\rho$", "τ": r"$\tau$", "Δ": r"$\Delta$",
    "✓": r"$\checkmark$", "●": r"$\bullet$", "○": r"$\circ$", "°": r"$^\circ$",
}  # fmt: skip
# Letters that pdflatex typesets without further packages or fonts.
_LETTERS = (
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿĀāĂăĆćĈĉĊċČčĎďĒēĔĕĖėĚěĜĝĞğĠġĢģĤĥĨĩĪīĬĭİıĴĵĶķĹĺĻļĽľŁłŃńŅņ"
    "ŇňŌōŎŏŐőŒœŔŕŖŗŘřŚśŜŝŞşŠšŢţŤťŨũŪūŬŭŮůŰűŴŵŶŷŸŹźŻżŽžȘșȚț¡¿§¶©®£"
)
_TYPESET = {*map(chr, range(0x20, 0x7F)), *_LATEX, *_LETTERS}
CHARACTER = (
    "\\providecommand{\\overtonechar}[2]{\\ifdefined\\XeTeXversion#1\\else\\ifdefined\\directlua#1\\else#2\\fi\\fi}\n"
)


def escaped(text: str) -> str:
    """Escape untrusted text for LaTeX, so that no character has a special meaning.

    A character that pdflatex cannot typeset becomes its code point, such as U+4E2D; XeLaTeX and LuaLaTeX print the
    character.
    """
    return "".join(map(_character, shown(text.translate(_SPACES))))


def _character(c: str) -> str:
    if c in _LATEX:
        return _LATEX[c]
    return c if c in _TYPESET else f"\\overtonechar{{{c}}}{{U+{ord(c):04X}}}"


def breakable(text: str, most: int = 16) -> str:
    """Escape text and allow line breaks within long words: at punctuation, or after `most` letters."""
    return " ".join(r"\allowbreak{}".join(map(escaped, pieces)) for pieces in _pieces(text, most))


@lru_cache(maxsize=100_000)
def _pieces(text: str, most: int) -> list[list[str]]:
    """Split a text into words, and each word into the pieces between which a line may break."""
    words = []
    for word in shown(text.translate(_SPACES)).split(" "):
        pieces = [word] if len(word) <= most else re.findall(rf"\w{{1,{most}}}\W{{0,3}}|\W{{1,3}}", word)
        # A character that is written as its number is as wide as a word.
        words.append([part for piece in pieces for part in ([piece] if _TYPESET.issuperset(piece) else piece)])
    return words


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def latex(
    tables: Iterable[PartTable], labels: Sequence[str] = (), *, look: Look = FULL, caption: str = "", label: str = ""
) -> str:
    """Return tables as LaTeX for a paper that loads booktabs. A generated caption explains how to read each table.

    `caption` (LaTeX) and `label` replace the generated ones; use them only for a single table.
    """
    made = []
    for table in tables:
        g = grid(table, labels, look)
        own = caption or _caption(table, g)
        name = label or f"tab:{re.sub('[^A-Za-z0-9]+', '-', table.key).strip('-')}"
        made += list(_floats(_Layout(table, g), own, name))
    for at in range(FLOATS - 1, len(made) - 1, FLOATS):
        made[at] += "\\clearpage\n"
    body = "\n".join(made)
    packages = "booktabs,amssymb" if r"\checkmark" in body else "booktabs"
    return f"% \\usepackage{{{packages}}}\n" + (CHARACTER if r"\overtonechar" in body else "") + "\n" + body


def _caption(table: PartTable, g: Grid) -> str:
    title = g.title if g.title.endswith((".", "?", "!")) else f"{g.title}."
    used = [(table.short[head], head) for head in g.heads if head in table.short]
    legend = "; ".join(f"{_bare(short)}: {_bare(head)}" for short, head in used)
    return breakable(" ".join(filter(None, (title, g.hint, f"{legend}." if legend else ""))))


def _bare(head: str) -> str:
    return head.translate(_SPACES).rstrip(" ↑↓")


_Row = tuple[list[str], list[Words]]


class _Layout:
    """The font size, panels and column widths with which a table fits the page."""

    def __init__(self, table: PartTable, g: Grid) -> None:
        self.g = g
        self.heads = [table.short.get(head, head) for head in g.heads]
        self.wide, self.size, self.panels = self._fit()
        self.room = PAGE if self.wide else COLUMN

    def _fit(self) -> tuple[bool, _Size, list[list[int]]]:
        columns = list(range(len(self.heads)))
        for size in SIZES[:4]:
            whole = self.left(size, COLUMN) == self.natural(size)
            if whole and self._total(columns, size, COLUMN) <= COLUMN:
                return False, size, [columns]
        for count in range(1, len(columns) + 1):
            across = math.ceil(len(columns) / count)
            even = [columns[at : at + across] for at in range(0, len(columns), across)]
            for size in SIZES:
                if all(self._total(panel, size, PAGE) <= PAGE for panel in even):
                    return True, size, even
            if len(packed := self._packed(columns, SIZES[-1])) <= count:
                return True, SIZES[-1], packed
        return True, SIZES[-1], [[column] for column in columns] or [[]]

    def _packed(self, columns: Sequence[int], size: _Size) -> list[list[int]]:
        """Split the columns into panels, each with as many columns as fit."""
        panels: list[list[int]] = [[]]
        for column in columns:
            if panels[-1] and self._total([*panels[-1], column], size, PAGE) > PAGE:
                panels.append([])
            panels[-1].append(column)
        return panels

    def _total(self, columns: Sequence[int], size: _Size, room: float) -> float:
        widths = [*self.left(size, room), *(self.column(column, size, room) for column in columns)]
        return sum(widths) + 2 * size.gap * (len(widths) - 1)

    def left(self, size: _Size, room: float) -> list[float]:
        """Return the widths of the name columns. Together they take at most a fixed share of the room, unless a single
        word needs more."""
        natural, words = self.natural(size), self.words(size)
        most = NAMES * room
        if sum(natural) <= most:
            return natural

        def limited(width: float) -> list[float]:
            return [min(whole, max(word, width)) for whole, word in zip(natural, words, strict=True)]

        low, high = 0.0, max(natural)
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(limited(middle)) <= most else (low, middle)
        return limited(low)

    def words(self, size: _Size) -> list[float]:
        """Return the smallest widths of the name columns: the width of the longest piece that cannot be broken."""
        pieces = [head.split(" ") for head in self.g.left]
        for names, _ in self.g.rows:
            for at, name in enumerate(names):
                pieces[at] += [piece for word in _pieces(name, LETTERS) for piece in word]
        return [max(width_of(piece, size.scale) for piece in each) + 1 for each in pieces]

    def natural(self, size: _Size) -> list[float]:
        """Return the widths of the name columns without any limit."""
        rows = self.g.rows
        return [
            max([width_of(head, size.scale), *(width_of(names[at], size.scale) for names, _ in rows)]) + 1
            for at, head in enumerate(self.g.left)
        ]

    def cells(self, column: int, size: _Size) -> float:
        return max((_cell_width(cells[column], size) for _, cells in self.g.rows), default=0.0)

    def column(self, column: int, size: _Size, room: float) -> float:
        """Return the width of a column: that of its widest cell or of the widest word in its head, at most half the
        room."""
        lines = self.head_lines(column, size)
        return min(max(self.cells(column, size), *(width_of(line, size.scale) for line in lines)) + 1, room / 2)

    def head_lines(self, column: int, size: _Size) -> list[str]:
        """Return the lines of a column head, broken at spaces so that it is about as wide as the column's cells."""
        words = re.sub(r"[ \u00a0](?=[↑↓%·])", "\u00a0", self.heads[column]).split(" ")
        most = max(self.cells(column, size), *(width_of(word, size.scale) for word in words))
        lines = [words[0]]
        for word in words[1:]:
            longer = f"{lines[-1]} {word}"
            if width_of(longer, size.scale) <= most:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines


def _cell_width(words: Words, size: _Size) -> float:
    scale = size.scale * (1.16 if words.bold else 1.0)
    small = _small(words)
    marks = sum(3.0 + 4.0 * len(str(note)) for note in words.notes)
    return width_of(words.value, scale) + marks + (2.5 + width_of(small, _SCRIPT) if small else 0.0)


def _small(words: Words) -> str:
    return " ".join(filter(None, (words.between, ", ".join(words.below))))


def _floats(layout: _Layout, caption: str, label: str) -> Iterator[str]:
    """Yield the LaTeX floats of one table. Each float holds as many panels as fit on a page."""
    rows = layout.g.rows
    pages: list[list[tuple[list[int], list[_Row]]]] = [[]]
    used = 0.0
    for panel in layout.panels:
        for chunk, tall in _chunks(layout, panel, rows):
            if pages[-1] and used + tall > TALLEST:
                pages.append([])
                used = 0.0
            pages[-1].append((panel, chunk))
            used += tall
    for number, page in enumerate(pages):
        tabulars = [_tabular(layout, panel, chunk) for panel, chunk in page]
        shown_cells = [cells[c] for panel, chunk in page for _, cells in chunk for c in panel]
        notes = sorted({note for words in shown_cells for note in words.notes})
        kind = "table*" if layout.wide else "table"
        text = f"\\caption{{{caption}}}\n\\label{{{label}}}\n\\par\\smallskip" if not number else _continued(label)
        written = [rf"\textsuperscript{{{n}}}~{breakable(layout.g.notes[n - 1])}" for n in notes]
        below = [r"\par\smallskip\raggedright\footnotesize " + " ".join(written)] if notes else []
        lines = [
            rf"\begin{{{kind}}}[t]", r"\centering\sloppy", text,
            rf"{layout.size.command}\setlength{{\tabcolsep}}{{{layout.size.gap:g}pt}}",
            "\n\\par\\medskip\n".join(tabulars), *below, rf"\end{{{kind}}}",
        ]  # fmt: skip
        yield "\n".join(lines) + "\n"


def _chunks(layout: _Layout, panel: Sequence[int], rows: Sequence[_Row]) -> Iterator[tuple[list[_Row], float]]:
    """Yield groups of rows that fit one page, each with its height. Rows with broken names take several lines."""
    size, room = layout.size, layout.room
    left = layout.left(size, room)
    head = size.line * (1 + max((len(layout.head_lines(column, size)) for column in panel), default=1)) + 15
    chunk: list[_Row] = []
    tall = head
    for names, cells in rows:
        lines = [math.ceil(1.3 * width_of(n, size.scale) / w) if width_of(n, size.scale) > w else 1
                 for n, w in zip(names, left, strict=True)]  # fmt: skip
        lines += [math.ceil(2.3 * _cell_width(cells[column], size) / room) for column in panel]
        need = max([1, *lines]) * size.line + 3
        if chunk and tall + need > TALLEST:
            yield chunk, tall
            chunk, tall = [], head
        chunk.append((names, cells))
        tall += need
    yield chunk, tall


def _continued(label: str) -> str:
    return rf"\par Table~\ref{{{label}}}, continued.\par\smallskip"


def _tabular(layout: _Layout, panel: Sequence[int], rows: Sequence[_Row]) -> str:
    g, size, room = layout.g, layout.size, layout.room
    left = layout.left(size, room)
    broken = [width < whole - 0.01 for width, whole in zip(left, layout.natural(size), strict=True)]
    folded = {column for column in panel if layout.cells(column, size) + 1 > room / 2}
    form = [f"p{{{width:.1f}pt}}" if fold else "l" for width, fold in zip(left, broken, strict=True)]
    form += [f"p{{{room / 2:.1f}pt}}" if column in folded else "r" for column in panel]
    lines = []
    previous: list[str] = []
    for names, cells in rows:
        last = len(names) - 1
        kept = ["" if n < last and names[: n + 1] == previous[: n + 1] else name for n, name in enumerate(names)]
        gap = [r"\addlinespace"] if previous and len(names) > 1 and names[0] != previous[0] else []
        texts = [_name(text, b) for text, b in zip(kept, broken, strict=True)]
        texts += [_cell(cells[column], column in folded) for column in panel]
        lines += [*gap, " & ".join(texts) + r" \tabularnewline"]  # \raggedright redefines \\
        previous = names
    named = [rf"\raggedright {escaped(head)}" if b else escaped(head) for head, b in zip(g.left, broken, strict=True)]
    heads = [*named, *(_head(layout.head_lines(column, size)) for column in panel)]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{@{{}}{''.join(form)}@{{}}}}", r"\toprule",
            " & ".join(heads) + r" \tabularnewline", r"\midrule", *lines, r"\bottomrule", r"\end{tabular}",
        ]
    )  # fmt: skip


def _name(text: str, broken: bool) -> str:
    return rf"\raggedright {breakable(text, LETTERS)}" if broken and text else escaped(text)


def _head(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return escaped(lines[0])
    return r"\begin{tabular}[b]{@{}r@{}}" + r" \\ ".join(map(escaped, lines)) + r"\end{tabular}"


def _cell(words: Words, folded: bool) -> str:
    small = _small(words)
    mark = rf"\textsuperscript{{{','.join(map(str, words.notes))}}}" if words.notes else ""
    write = breakable if folded else escaped
    value = rf"\textbf{{{write(words.value)}}}" if words.bold else write(words.value)
    text = value + mark + (rf" {{\scriptsize {write(small)}}}" if small else "")
    return rf"\raggedright {text}" if folded and text else text
