"""Rows of values with intervals, as most pictures have them: labels, one or more axes beside each other, numbers.

On a page the axes stand beside each other; in a column, where there is no room, below each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overtone.report.drawing import SIZE, Box, Drawing, Line, Scale, Words, shortened, width_of, wrapped
from overtone.report.figures import _axes as axes
from overtone.report.figures._axes import SMALL, Kind, Spot

WIDE = 340.0  # points from which axes stand beside each other
LEAST = 40.0  # points of an axis
HEAD, GAP = 12.0, 10.0
TALL = ((12, 13.0), (30, 11.0), (10**9, 9.5))  # up to so many rows each is so tall
APART = 0.2  # how far two values of one row stand from its middle, of its height


class Panel(Struct, frozen=True):
    """One axis. Its ends hold all its values; `low` and `high` are the least it reaches to."""

    title: str
    kind: Kind = "percent"
    name: str = ""  # below the axis
    low: float | None = None
    high: float | None = None
    zero: float | None = None  # where a firm line stands
    weight: float = 1.0  # of its width beside the others
    number: str = ""  # above the numbers beside it


class Place(Struct, frozen=True):
    """What a row has on one axis: its values, the number written beside them, and where guessing stands."""

    spots: tuple[Spot, ...] = ()
    written: Spot | None = None  # the first value where none is named
    chance: float | None = None
    joined: bool = False  # a line from the first value to the last

    @property
    def number(self) -> Spot | None:
        return self.written or (self.spots[0] if self.spots else None)


class Row(Struct, frozen=True):
    label: str
    places: tuple[Place | None, ...]  # of each panel
    ink: str = ""  # of a small square before the label


class Block(Struct, frozen=True):
    """Some rows under a heading."""

    head: str
    rows: tuple[Row, ...]


def blocks(
    width: float, labels: Sequence[str], parts: Sequence[tuple[str, Sequence[tuple[int, tuple[Place | None, ...]]]]]
) -> list[Block]:
    """What is shown, each with the runs that have it. Of a single run the rows are what is shown, where they fit."""
    runs = {n for _, of_runs in parts for n, _ in of_runs}
    if len(runs) <= 1 and width >= WIDE:
        return [Block("", tuple(Row(head, places) for head, of_runs in parts for _, places in of_runs))]
    alone = len(runs) <= 1
    return [
        Block(head, tuple(Row("" if alone else labels[n], places) for n, places in of_runs))
        for head, of_runs in parts
        if of_runs
    ]


Group = tuple[Sequence[Block], Sequence[Panel]]


def rows(drawing: Drawing, top: float, made: Sequence[Block], panels: Sequence[Panel]) -> float:
    """Draw them all; the place below."""
    return groups(drawing, top, [(made, panels)])


def groups(drawing: Drawing, top: float, several: Sequence[Group]) -> float:
    """Groups of rows with axes of their own below each other, their columns in line; the place below."""
    parts = [(made, panels) for made, panels in several if any(block.rows for block in made)]
    if not all(_fits(drawing, parts, panels) for _, panels in parts):
        parts = [
            (kept, [panel]) for made, panels in parts for at, panel in enumerate(panels) if (kept := _only(made, at))
        ]
    y = top
    many = sum(len(block.rows) for made, _ in parts for block in made)
    tall = next(height for most, height in TALL if many <= most)
    for made, panels in parts:
        alike = [part for part in parts if len(part[1]) == len(panels)] if drawing.width >= WIDE else [(made, panels)]
        columns = _columns(drawing, alike, len(panels))
        y = _Group(drawing, made, panels, columns, tall).draw(y) + 9
    return y - 9 if parts else top


def _fits(drawing: Drawing, parts: Sequence[Group], panels: Sequence[Panel]) -> bool:
    """Whether axes stand beside each other with room for what they show."""
    if len(panels) == 1:
        return True
    alike = [part for part in parts if len(part[1]) == len(panels)]
    plots = _columns(drawing, alike, len(panels)).plots
    return drawing.width >= WIDE * len(panels) / 2 and all(end - start >= LEAST + 10 for start, end, *_ in plots)


def _only(made: Sequence[Block], at: int) -> list[Block]:
    """The blocks on one of their axes."""
    found = []
    for block in made:
        kept = tuple(Row(row.label, (place,), row.ink) for row in block.rows if (place := row.places[at]) is not None)
        if kept:
            found.append(Block(block.head, kept))
    return found


class _Columns(Struct, frozen=True):
    """Where things stand across: labels up to `left`, then for each axis its ends, its numbers' and counts' edge."""

    cut: dict[str, str]  # label → as much of it as fits
    left: float
    plots: tuple[tuple[float, float, float, float], ...]


def _columns(drawing: Drawing, alike: Sequence[Group], axes_beside: int) -> _Columns:
    every = [row for made, _ in alike for block in made for row in block.rows]
    names = list(dict.fromkeys(row.label for row in every))
    most = drawing.width * (0.28 if drawing.width < WIDE else 0.24)
    room = min(max((width_of(name, SIZE) for name in names), default=0.0), most)
    numbers, counts = [], []
    for at in range(axes_beside):
        told = [one for row in every if (place := row.places[at]) is not None and (one := place.number) is not None]
        heads = [panels[at].number for _, panels in alike]
        texts = [*(one.short for one in told), *(shortened(head, 60, SMALL - 0.5) for head in heads)]
        numbers.append(max((width_of(text, SMALL) for text in texts), default=0.0))
        counts.append(max((width_of(_n(one), SMALL - 0.5) for one in told), default=-7.0) + 7)
    free = drawing.width - sum(numbers) - sum(counts) - 8 * axes_beside - GAP * (axes_beside - 1)
    room = max(min(room, free - 6 - LEAST * axes_beside), min(room, 24.0))
    left = room + 6 if room else 0.0
    free -= left
    weights = [max(panels[at].weight for _, panels in alike) for at in range(axes_beside)]
    plots = []
    x = left
    for at in range(axes_beside):
        plot = max(LEAST * axes_beside, free) * weights[at] / sum(weights)
        edge = x + plot + 8 + numbers[at]
        plots.append((x, x + plot, edge, edge + counts[at]))
        x = edge + counts[at] + GAP
    cut = dict(zip(names, axes.fitted(names, room), strict=True))
    return _Columns(cut, left, tuple(plots))


class _Group:
    """One group of rows, drawn."""

    def __init__(
        self, drawing: Drawing, made: Sequence[Block], panels: Sequence[Panel], columns: _Columns, tall: float
    ) -> None:
        self.drawing, self.blocks, self.panels, self.columns, self.tall = drawing, made, panels, columns, tall
        self.scales = []
        for at, panel in enumerate(panels):
            places = [place for block in made for row in block.rows if (place := row.places[at]) is not None]
            start, end, *_ = columns.plots[at]
            self.scales.append(axes.placed(_domain(panel, places), start + 5, end - 5))

    def draw(self, top: float) -> float:
        drawing = self.drawing
        y = self._titles(top)
        tall = sum(len(block.rows) * self.tall + (HEAD if block.head else 0) for block in self.blocks)
        bottom = below = y + tall + 4 * (len(self.blocks) - 1)
        for scale, panel in zip(self.scales, self.panels, strict=True):
            below = max(below, axes.axis(drawing, scale, y, bottom, panel.kind, panel.name, panel.zero))
        for number, block in enumerate(self.blocks):
            if number:
                drawing.line((0, y + 2), (drawing.width, y + 2), ink="grid", width=0.5)
                y += 4
            if block.head:
                cut = shortened(block.head, drawing.width, SIZE, bold=True)
                # The lines of the axes end at a heading.
                wide = min(drawing.width, width_of(cut, SIZE, bold=True) + 3)
                drawing.add(Box(0, y + 1, wide, HEAD - 2, "paper"))
                axes.label(drawing, 0, y + 8.5, block.head, cut, bold=True)
                y += HEAD
            for row in block.rows:
                self._row(row, y + self.tall / 2)
                y += self.tall
        return below

    def _titles(self, y: float) -> float:
        """What each axis shows, and what the numbers beside it are; the place below."""
        drawing, alone = self.drawing, len(self.panels) == 1 and self.drawing.width < WIDE
        lines = []
        for panel, (start, _, _, end) in zip(self.panels, self.columns.plots, strict=True):
            x = 0.0 if alone else start
            lines.append((x, wrapped(panel.title, end - x, SMALL, bold=True)))
        for x, title in lines:
            for number, line in enumerate(title):
                drawing.words(x, y + 7 + 8.5 * number, line, size=SMALL, bold=True)
        y += 8.5 * max(len(title) for _, title in lines) + 9
        for panel, (_, _, edge, end) in zip(self.panels, self.columns.plots, strict=True):
            head = shortened(panel.number, 60, SMALL - 0.5)
            drawing.words(edge, y - 2, head, size=SMALL - 0.5, ink="quiet", anchor="end")
            drawing.words(end, y - 2, "n" if end > edge else "", size=SMALL - 0.5, ink="quiet", anchor="end")
        return y + 1

    def _row(self, row: Row, y: float) -> None:
        drawing = self.drawing
        axes.label(drawing, 0, y + 2.8, row.label, self.columns.cut[row.label])
        for place, scale, (_, _, edge, end) in zip(row.places, self.scales, self.columns.plots, strict=True):
            if place is None:
                continue
            if place.chance is not None:
                axes.tick(drawing, scale, place.chance, y, self.tall / 2 - 0.3, f"guessing: {100 * place.chance:.0f} %")
            several = len(place.spots)
            offs = [(2 * n / (several - 1) - 1) * APART * self.tall if several > 1 else 0.0 for n in range(several)]
            known = [(scale(v), y + off) for s, off in zip(place.spots, offs, strict=True)
                     if (v := s.estimate.value) is not None]  # fmt: skip
            if place.joined and len(known) > 1:
                drawing.add(Line((known[0], known[-1]), "quiet", 0.6))
            for one, off in reversed(list(zip(place.spots, offs, strict=True))):  # the first lies on top
                drawing.add(*axes.spot(scale, y + off, one, size=2.6 if several == 1 else 2.1))
            if (told := place.number) is not None:
                drawing.add(Words(edge, y + 2.6, told.short, size=SMALL, anchor="end", key=told.key, title=told.title))
                drawing.words(end, y + 2.6, _n(told), size=SMALL - 0.5, anchor="end", ink="quiet", key=told.key)


def _n(one: Spot) -> str:
    return f"{one.estimate.scored:,}"


def _domain(panel: Panel, places: Sequence[Place]) -> Scale:
    values = [one.estimate for place in places for one in place.spots]
    return axes.domain([*values, *(place.chance for place in places), panel.zero], panel.low, panel.high)
