"""Radar as the papers draw it: an axis for each headline measure on its own scale, an outline with a band per run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from overtone.display.axes import SMALL, Entry, Spot, close, fitted, label, legend, page
from overtone.display.drawing import Dot, Drawing, Line, Point, Words, series, width_of
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.leaderboard.compute import IN_CHARACTERS, SIGNATURE, Cell, Entrant, Leaderboard
from overtone.results.published import COLUMNS, published

ENOUGH = 5
TOGETHER = 6  # runs in one radar; of more, each has its own


class _Axis(Struct, frozen=True):
    """A spoke: its measure, and the values at the centre and at the rim, in the paper's units."""

    key: str
    label: str  # whole
    rated: bool  # from 1 to 5
    centre: float
    rim: float

    @property
    def scale(self) -> str:
        return f"{self.centre:g} to {self.rim:g}"

    def share(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.centre) / (self.rim - self.centre)))


class _Web(Struct, frozen=True):
    """The position of a radar and its axes."""

    x: float
    y: float
    radius: float
    axes: tuple[_Axis, ...]

    def at(self, number: int, share: float) -> Point:
        turn = 2 * math.pi * number / len(self.axes)
        return self.x + self.radius * share * math.sin(turn), self.y - self.radius * share * math.cos(turn)


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw up to six runs in one radar. If there are more, each run gets its own radar, with the others in grey."""
    board = source.results_of("leaderboard", Leaderboard)[0].data
    runs = [e for e in board.entrants if e.run is not None]
    axes = _axes(runs)
    if len(axes) < 3:
        have = ", ".join(a.label for a in axes) or "none"
        raise NothingToDraw(
            f"a radar needs three measures, and these runs have {have}: add transcripts, questions or judged replies "
            "(overtone run … --levels 1,2,3; overtone score RUN --judge SPEC)"
        )
    drawn = [e for e in runs if any(_value(e, a) is not None for a in axes)]
    papers = [e for e in board.entrants if e.run is None] if _of_paper(drawn) else []
    separate = len(drawn) > TOGETHER
    behind = "the other runs" if separate else "the models of the paper, as published" if papers else ""
    drawing, y = page(
        width,
        "All measures at a glance",
        f"Each axis has its own scale, written {'below' if separate else 'at its end'}: from the centre to the rim, "
        "better outwards. Bands are 95 % intervals, clustered by script.",
    )
    if separate:
        y = legend(drawing, 0, y, width, [Entry(behind, "quiet", "line")])
        y = _separate(drawing, y, drawn, axes, source)
    else:
        entries = [Entry(source.labels[e.run or 0], *series(e.run or 0)) for e in drawn]
        y = legend(drawing, 0, y, width, [*entries, *([Entry(behind, "quiet", "line")] if behind else [])])
        y = _together(drawing, y, drawn, papers, axes, source)
    drawing.text = (
        f"Axes: {', '.join(a.label for a in axes)}. Runs: {', '.join(source.labels[e.run or 0] for e in drawn)}."
    )
    in_characters = [source.labels[e.run or 0] for e in runs if any(_in_characters(e.cells[c.key]) for c in COLUMNS)]
    conditions = dict.fromkeys(e.condition for e in drawn if e.condition)
    notes = [f"Replies under {', '.join(conditions)}."] if conditions else []
    if separate:
        scales: dict[str, list[str]] = {}
        for axis in axes:
            scales.setdefault(axis.scale, []).append(axis.label)
        each = "; ".join(f"{scale}: {', '.join(labels)}" for scale, labels in scales.items())
        notes.append(f"From the centre to the rim, {each}.")
    elif papers:
        notes.append("Published numbers are for each model's best prompt, and are not measured alike in everything.")
    if in_characters:
        notes.append(f"No WER for {', '.join(in_characters)}: languages without spaces have a character error rate.")
    return close(drawing, y, notes, SIGNATURE)


def _of_paper(runs: Sequence[Entrant]) -> bool:
    """Return whether a run is of the benchmark that the paper measured. Results on another one are not comparable with
    it."""
    return any(
        cell.value is not None and not any(d.startswith("benchmark:") for d in cell.differs)
        for e in runs
        for cell in e.cells.values()
    )


def _axes(runs: Sequence[Entrant]) -> tuple[_Axis, ...]:
    known = {c.key: c for c in COLUMNS}
    keys = [k for k in published().radar if any(_has(e, k) for e in runs)]
    keys += [k for k in published().radar_more if any(_has(e, k) for e in runs)][: max(0, ENOUGH - len(keys))]
    axes = []
    for key in keys:
        column = known[key]
        rated = column.kind != "percent"
        centre, rim = (1.0, 5.0) if rated else (100.0, 0.0) if column.better == "lower" else (0.0, 100.0)
        arrow = " ↓" if column.better == "lower" else ""
        axes.append(_Axis(key, column.label + arrow, rated, centre, rim))
    return tuple(axes)


def _has(entrant: Entrant, key: str) -> bool:
    """Return whether an axis shows this entrant's value. A character error rate is not shown on an axis of word
    errors."""
    cell = entrant.cells[key]
    return cell.value is not None and not _in_characters(cell)


def _in_characters(cell: Cell) -> bool:
    return cell.value is not None and any(d.startswith(IN_CHARACTERS) for d in cell.differs)


def _value(entrant: Entrant, axis: _Axis) -> float | None:
    return entrant.cells[axis.key].value if _has(entrant, axis.key) else None


# ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _together(
    drawing: Drawing, y: float, runs: Sequence[Entrant], papers: Sequence[Entrant], axes: tuple[_Axis, ...],
    source: FigureSource,
) -> float:  # fmt: skip
    side = max(width_of(a.label, SMALL) for a in axes) + 8
    radius = min((drawing.width - 2 * side) / 2, 135.0)
    web = _Web(drawing.width / 2, y + radius + 24, radius, axes)
    _spokes(drawing, web, [a.label for a in axes], [a.scale for a in axes], SMALL)
    for entrant in papers:
        _outlines(drawing, entrant, web, "quiet", 0.3)
    _runs(drawing, web, runs, source, 2.2)
    return _lowest(web) + 24


def _separate(
    drawing: Drawing, y: float, runs: Sequence[Entrant], axes: tuple[_Axis, ...], source: FigureSource
) -> float:
    """Draw one small radar per run, with short names. The scales are written once, below."""
    names = [published().short.get(a.key, a.label) for a in axes]
    side = max(width_of(name, SMALL - 1) for name in names) + 5
    across = max(1, min(3, int(drawing.width // (2 * side + 50))))
    room = drawing.width / across
    radius = min(room / 2 - side, 60.0)
    shown = fitted([source.labels[e.run or 0] for e in runs], room - 8, 1.13 * SMALL)  # bold
    tall = 2 * radius + 46
    for number, entrant in enumerate(runs):
        left, top = room * (number % across), y + tall * (number // across)
        whole = source.labels[entrant.run or 0]
        label(drawing, left + room / 2, top + 8, whole, shown[number], size=SMALL, bold=True, anchor="middle")
        web = _Web(left + room / 2, top + 24 + radius, radius, axes)
        _spokes(drawing, web, names, [], SMALL - 1)
        for other in (other for other in runs if other is not entrant):
            _outlines(drawing, other, web, "quiet", 0.25)
        _runs(drawing, web, [entrant], source, 1.3)
    return y + tall * math.ceil(len(runs) / across) - 6


def _lowest(web: _Web) -> float:
    return max(web.at(n, 1.0)[1] for n in range(len(web.axes)))


# ── marks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _spokes(drawing: Drawing, web: _Web, names: Sequence[str], scales: Sequence[str], size: float) -> None:
    for share in (0.25, 0.5, 0.75, 1.0):
        ring = tuple(web.at(n, share) for n in range(len(web.axes)))
        drawing.add(Line(ring, "grid", 0.5 if share < 1 else 0.8, closed=True))
    for number, name in enumerate(names):
        drawing.line((web.x, web.y), web.at(number, 1.0), ink="grid", width=0.5)
        x, y = web.at(number, 1.0)
        across, up = (x - web.x) / web.radius, (web.y - y) / web.radius
        anchor: Literal["start", "middle", "end"] = "middle" if abs(across) < 0.15 else "start" if across > 0 else "end"
        x += 6 * across
        lines = 2 if scales else 1
        y += size * (0.35 - lines * (0.45 + 0.5 * up)) + (0.6 if up < 0 else 0.4) * size - 3 * up
        drawing.add(Words(x, y, name, size=size, anchor=anchor, title=web.axes[number].label))
        if scales:
            drawing.add(Words(x, y + size, scales[number], "quiet", size - 1.2, anchor))


def _stretches(entrant: Entrant, web: _Web) -> list[list[Point]]:
    """Return the outline of a run as separate lines. The outline is interrupted at a missing measure."""
    points = [None if (v := _value(entrant, a)) is None else web.at(n, a.share(v)) for n, a in enumerate(web.axes)]
    if None not in points:
        return [[p for p in points if p is not None]]
    start = points.index(None)
    stretches: list[list[Point]] = [[]]
    for point in points[start:] + points[:start]:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(point)
    return [stretch for stretch in stretches if len(stretch) > 1]


def _outlines(drawing: Drawing, entrant: Entrant, web: _Web, ink: str, width: float) -> None:
    for stretch in _stretches(entrant, web):
        drawing.add(Line(tuple(stretch), ink, width, closed=len(stretch) == len(web.axes)))


def _runs(drawing: Drawing, web: _Web, runs: Sequence[Entrant], source: FigureSource, size: float) -> None:
    for entrant in runs:
        _band(drawing, web, entrant, series(entrant.run or 0)[0])
    for entrant in runs:
        ink, shape = series(entrant.run or 0)
        _outlines(drawing, entrant, web, ink, 1.0)
        for number, axis in enumerate(web.axes):
            cell = entrant.cells[axis.key]
            if cell.value is None or cell.estimate is None or not _has(entrant, axis.key):
                continue
            digits = 2 if axis.rated else 1
            name = f"{source.labels[entrant.run or 0]}, {axis.label}"
            one = Spot(cell.estimate, name, f"{entrant.key}/{axis.key}", kind="number", digits=digits)
            x, y = web.at(number, axis.share(cell.value))
            drawing.add(Dot(x, y, ink, shape, size, key=one.key, title=one.title))


def _band(drawing: Drawing, web: _Web, entrant: Entrant, ink: str) -> None:
    """Draw the area between the lower and the upper ends of the intervals, from each axis to the next."""
    ends: list[tuple[Point, Point] | None] = []
    for number, axis in enumerate(web.axes):
        e = entrant.cells[axis.key].estimate
        if e is None or e.value is None or not _has(entrant, axis.key):
            ends.append(None)
            continue
        inner, outer = sorted(axis.share(e.value if x is None else x) for x in (e.low, e.high))
        ends.append((web.at(number, inner), web.at(number, outer)))
    for here, there in zip(ends, [*ends[1:], ends[0]], strict=True):
        if here is not None and there is not None:
            drawing.add(Line((here[0], here[1], there[1], there[0]), "", 0.0, closed=True, fill=ink, opacity=0.18))
