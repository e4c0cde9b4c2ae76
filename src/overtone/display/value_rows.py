"""Rows of values with intervals, the layout of most figures: labels, one or more axes, and numbers.

On a page the axes are side by side. In a narrow column they are below each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overtone.display import axes as axes
from overtone.display.axes import SMALL, Kind, Spot
from overtone.display.drawing import SIZE, Box, Drawing, Line, Scale, Words, shortened, width_of, wrapped
from overtone.text import percent

WIDE = 340.0  # points: the least width with axes side by side
LEAST = 40.0  # points: the least length of an axis
HEAD, GAP = 12.0, 10.0
TALL = ((12, 13.0), (30, 11.0), (10**9, 9.5))  # up to this many rows, a row has this height
APART = 0.2  # the distance of two values of one row from its middle, as a share of its height


class Panel(Struct, frozen=True):
    """One axis. It covers all its values, and at least `low` to `high`."""

    title: str
    kind: Kind = "percent"
    name: str = ""  # written below the axis
    low: float | None = None
    high: float | None = None
    zero: float | None = None  # the value of a strong line
    weight: float = 1.0  # its width relative to the others
    number: str = ""  # the heading of the numbers beside it


class Place(Struct, frozen=True):
    """The values of a row on one axis, the number written beside them, and the level of guessing."""

    spots: tuple[Spot, ...] = ()
    written: Spot | None = None  # default: the first value
    chance: float | None = None
    joined: bool = False  # a line from the first value to the last

    @property
    def number(self) -> Spot | None:
        return self.written or (self.spots[0] if self.spots else None)


class Row(Struct, frozen=True):
    """A label and its values on each axis."""

    label: str
    places: tuple[Place | None, ...]  # one for each panel
    ink: str = ""  # the colour of a small square before the label


class Block(Struct, frozen=True):
    """Rows under a heading."""

    head: str
    rows: tuple[Row, ...]


def blocks(
    width: float, labels: Sequence[str], parts: Sequence[tuple[str, Sequence[tuple[int, tuple[Place | None, ...]]]]]
) -> list[Block]:
    """Make a block for each part with a row for each run. With a single run, the parts are rows of one block."""
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
    """Draw blocks on one set of axes. Return the position below."""
    return groups(drawing, top, [(made, panels)])


def groups(drawing: Drawing, top: float, several: Sequence[Group]) -> float:
    """Draw groups of blocks below each other. Every group has its own axes; the columns of all groups are aligned."""
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
    """Return whether the axes fit side by side."""
    if len(panels) == 1:
        return True
    alike = [part for part in parts if len(part[1]) == len(panels)]
    plots = _columns(drawing, alike, len(panels)).plots
    return drawing.width >= WIDE * len(panels) / 2 and all(end - start >= LEAST + 10 for start, end, *_ in plots)


def _only(made: Sequence[Block], at: int) -> list[Block]:
    """Return the blocks reduced to the axis at index `at`, without rows that have no value on it."""
    blocks = []
    for block in made:
        kept = tuple(Row(row.label, (place,), row.ink) for row in block.rows if (place := row.places[at]) is not None)
        if kept:
            blocks.append(Block(block.head, kept))
    return blocks


class _Columns(Struct, frozen=True):
    """The positions of the columns: labels up to `left`, then for each axis its two ends and the edges of the columns
    with its numbers and counts."""

    cut: dict[str, str]  # label → shortened label
    left: float
    plots: tuple[tuple[float, float, float, float], ...]


def _columns(drawing: Drawing, alike: Sequence[Group], axes_beside: int) -> _Columns:
    every = [row for made, _ in alike for block in made for row in block.rows]
    names = list(dict.fromkeys(row.label for row in every))
    most = drawing.width * (0.28 if drawing.width < WIDE else 0.24)
    room = min(max((width_of(name, SIZE) for name in names), default=0.0), most)
    numbers, counts = [], []
    for at in range(axes_beside):
        written = [s for row in every if (place := row.places[at]) is not None and (s := place.number) is not None]
        heads = [panels[at].number for _, panels in alike]
        texts = [*(spot.short for spot in written), *(shortened(head, 60, SMALL - 0.5) for head in heads)]
        numbers.append(max((width_of(text, SMALL) for text in texts), default=0.0))
        counts.append(max((width_of(_n(spot), SMALL - 0.5) for spot in written), default=-7.0) + 7)
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
    """Draws one group of rows."""

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
                # Grid lines stop at a heading.
                wide = min(drawing.width, width_of(cut, SIZE, bold=True) + 3)
                drawing.add(Box(0, y + 1, wide, HEAD - 2, "paper"))
                axes.label(drawing, 0, y + 8.5, block.head, cut, bold=True)
                y += HEAD
            for row in block.rows:
                self._row(row, y + self.tall / 2)
                y += self.tall
        return below

    def _titles(self, y: float) -> float:
        """Draw the titles of the axes and of the numbers beside them. Return the position below."""
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
                axes.tick(drawing, scale, place.chance, y, self.tall / 2 - 0.3, f"guessing: {percent(place.chance)}")
            several = len(place.spots)
            offs = [(2 * n / (several - 1) - 1) * APART * self.tall if several > 1 else 0.0 for n in range(several)]
            known = [(scale(v), y + off) for s, off in zip(place.spots, offs, strict=True)
                     if (v := s.estimate.value) is not None]  # fmt: skip
            if place.joined and len(known) > 1:
                drawing.add(Line((known[0], known[-1]), "quiet", 0.6))
            for spot, off in reversed(list(zip(place.spots, offs, strict=True))):  # the first is on top
                drawing.add(*axes.spot(scale, y + off, spot, size=2.6 if several == 1 else 2.1))
            if (one := place.number) is not None:
                drawing.add(Words(edge, y + 2.6, one.short, size=SMALL, anchor="end", key=one.key, title=one.title))
                drawing.words(end, y + 2.6, _n(one), size=SMALL - 0.5, anchor="end", ink="quiet", key=one.key)


def _n(one: Spot) -> str:
    return f"{one.estimate.scored:,}"


def _domain(panel: Panel, places: Sequence[Place]) -> Scale:
    values = [one.estimate for place in places for one in place.spots]
    return axes.domain([*values, *(place.chance for place in places), panel.zero], panel.low, panel.high)
