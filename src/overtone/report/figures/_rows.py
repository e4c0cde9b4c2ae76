"""Rows of values with intervals, as most pictures have them: labels, one or more axes beside each other, numbers.

On a page the axes stand beside each other; in a column, where there is no room, below each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overtone.report.drawing import SIZE, Drawing, Line, Scale, Words, shortened, width_of, wrapped
from overtone.report.figures import _axes as axes
from overtone.report.figures._axes import SMALL, Kind, Spot

WIDE = 340.0  # points from which axes stand beside each other
ROW, HEAD, GAP = 11.0, 12.0, 10.0
APART = 2.4  # how far two values of one row stand from its middle


class Panel(Struct, frozen=True):
    """One axis. Its ends hold all its values; `low` and `high` are the least it reaches to."""

    title: str
    kind: Kind = "percent"
    name: str = ""  # below the axis
    low: float | None = None
    high: float | None = None
    zero: float | None = None  # where a firm line stands
    weight: float = 1.0  # of its width beside the others


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


def rows(drawing: Drawing, top: float, blocks: Sequence[Block], panels: Sequence[Panel]) -> float:
    """Draw them all; the place below."""
    if len(panels) == 1 or drawing.width >= WIDE * len(panels) / 2:
        return _beside(drawing, top, blocks, range(len(panels)), panels)
    for at in range(len(panels)):
        some = [
            Block(block.head, kept)
            for block in blocks
            if (kept := tuple(row for row in block.rows if row.places[at] is not None))
        ]
        if some:
            top = _beside(drawing, top, some, [at], panels) + 8
    return top - 8


def _beside(
    drawing: Drawing, top: float, blocks: Sequence[Block], shown: Sequence[int], panels: Sequence[Panel]
) -> float:
    every = [row for block in blocks for row in block.rows]
    narrow = drawing.width < WIDE
    names = list(dict.fromkeys(row.label for row in every))
    room = min(max((width_of(name, SIZE) for name in names), default=0.0), drawing.width * (0.3 if narrow else 0.24))
    cut = dict(zip(names, axes.fitted(names, room), strict=True))
    left = room + 8 if room else 4.0
    numbers = [_widest([row.places[at] for row in every]) for at in shown]
    counts = [_widest([row.places[at] for row in every], count=True) for at in shown]
    free = drawing.width - left - sum(numbers) - sum(counts) - 12 * len(shown) - GAP * (len(shown) - 1)
    weights = [panels[at].weight for at in shown]
    y = top
    heads = [wrapped(panels[at].title, _share(free, weights, n) + numbers[n] + counts[n], SMALL, bold=True)
             for n, at in enumerate(shown)]  # fmt: skip
    tall = max(map(len, heads), default=0) * 8.5
    scales: list[Scale] = []
    x = left
    for n, at in enumerate(shown):
        plot = _share(free, weights, n)
        for number, line in enumerate(heads[n]):
            drawing.words(x, y + 7 + 8.5 * number, line, size=SMALL, bold=True)
        scale = _domain(panels[at], [place for row in every if (place := row.places[at])])
        scales.append(axes.placed(scale, x + 4, x + plot - 4))
        x += plot + 12 + numbers[n] + counts[n] + GAP
    y += tall + 5
    bottom = y + sum(len(block.rows) * ROW + (HEAD if block.head else 0) for block in blocks) + 4 * (len(blocks) - 1)
    below = bottom
    for n, at in enumerate(shown):
        panel = panels[at]
        below = max(below, axes.axis(drawing, scales[n], y, bottom, panel.kind, panel.name, panel.zero))
        if counts[n]:
            edge = scales[n].end + 4 + 12 + numbers[n] + counts[n]
            drawing.words(edge, y - 3, "n", size=SMALL - 0.5, ink="quiet", anchor="end")
    for number, block in enumerate(blocks):
        if number:
            y += 2
            drawing.line((0, y), (drawing.width, y), ink="grid", width=0.5)
            y += 2
        if block.head:
            drawing.words(0, y + 8.5, shortened(block.head, drawing.width, SIZE, bold=True), bold=True)
            y += HEAD
        for row in block.rows:
            _row(drawing, y + ROW / 2, row, cut, [(at, scales[n], numbers[n], counts[n]) for n, at in enumerate(shown)])
            y += ROW
    return below


def _row(
    drawing: Drawing, y: float, row: Row, cut: dict[str, str], columns: Sequence[tuple[int, Scale, float, float]]
) -> None:
    axes.label(drawing, 0, y + 2.8, row.label, cut[row.label])
    for at, scale, number, count in columns:
        place = row.places[at]
        if place is None:
            continue
        if place.chance is not None:
            axes.tick(drawing, scale, place.chance, y, ROW / 2 - 0.5, f"blind guessing: {100 * place.chance:.0f} %")
        ends = [s.estimate.value for s in place.spots if s.estimate.value is not None]
        if place.joined and len(ends) > 1:
            drawing.add(Line(((scale(ends[0]), y - APART), (scale(ends[-1]), y + APART)), "quiet", 0.6))
        for n, one in enumerate(place.spots):
            middle = (len(place.spots) - 1) / 2
            off = (n - middle) * 2 * APART / max(1, len(place.spots) - 1)
            drawing.add(*axes.spot(scale, y + off, one, size=2.6 if len(place.spots) == 1 else 2.1))
        if (told := place.number) is not None:
            edge = scale.end + 4 + 12 + number
            drawing.add(Words(edge, y + 2.6, told.short, size=SMALL, anchor="end", key=told.key, title=told.title))
            drawing.words(edge + count, y + 2.6, f"{told.estimate.scored:,}", size=SMALL - 0.5, anchor="end",
                          ink="quiet")  # fmt: skip


def _widest(places: Sequence[Place | None], count: bool = False) -> float:
    told = [one for place in places if place is not None and (one := place.number) is not None]
    if count:
        return max((width_of(f"{one.estimate.scored:,}", SMALL - 0.5) for one in told), default=-8.0) + 8
    return max((width_of(one.short, SMALL) for one in told), default=0.0)


def _share(free: float, weights: Sequence[float], n: int) -> float:
    return max(40.0, free) * weights[n] / sum(weights)


def _domain(panel: Panel, places: Sequence[Place]) -> Scale:
    values = [one.estimate for place in places for one in place.spots]
    return axes.domain([*values, *(place.chance for place in places)], panel.low, panel.high)
