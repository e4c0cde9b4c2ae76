"""Parts that all figures share: the page, axes, values with intervals, legends, and labels that fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from overtone.display.drawing import SIZE, Box, Dot, Drawing, Line, Mark, Scale, Words, shortened, width_of, wrapped
from overtone.results.measures import Estimate
from overtone.text import NONE, number

SMALL, TINY = 7.0, 5.5  # points: numbers and notes, and the signature
Kind = Literal["percent", "points", "number"]


class Spot(Struct, frozen=True):
    """One number of a figure: its name in words, its full key, and its looks."""

    estimate: Estimate
    name: str  # e.g. "gpt-4o, heard the cue"
    key: str = ""
    ink: str = "s0"
    shape: str = "circle"
    hollow: bool = False
    kind: Kind = "percent"
    digits: int = 2  # decimals of a "number"

    @property
    def title(self) -> str:
        """The number in words: name, value, interval and n."""
        e = self.estimate
        unit = {"percent": " %", "points": " points", "number": ""}[self.kind]
        if e.value is None:
            return f"{self.name}: unknown" + (f" ({e.note})" if e.note else "")
        digits = self.digits if self.kind == "number" else 1
        value = f"{_written(e.value, self.kind, digits)}{unit}"
        ends = "no interval"
        if e.low is not None and e.high is not None:
            ends = f"95 % interval {_written(e.low, self.kind, digits)} to {_written(e.high, self.kind, digits)}"
        note = f"; {e.note}" if e.note else ""
        return f"{self.name}: {value} ({ends}), n = {counted(e)}{note}"

    @property
    def short(self) -> str:
        """The value and its interval without a unit, like `61 (52 to 70)`."""
        e = self.estimate
        digits = self.digits if self.kind == "number" else 0
        if e.value is None:
            return NONE
        if e.low is None or e.high is None:
            return f"{_written(e.value, self.kind, digits)} (–)"
        ends = f"{_written(e.low, self.kind, digits)} to {_written(e.high, self.kind, digits)}"
        return f"{_written(e.value, self.kind, digits)} ({ends})"


def counted(e: Estimate) -> str:
    """Return `40`, or `38 of 40` if replies are missing."""
    return f"{e.scored:,}" if not e.missing else f"{e.scored:,} of {e.asked:,}"


def _written(x: float, kind: str, digits: int) -> str:
    return number(x if kind == "number" else 100 * x, digits)


# ── the page ────────────────────────────────────────────────────────────────────────────────────────────────────────


def page(width: float, title: str, subtitle: str = "", text: str = "") -> tuple[Drawing, float]:
    """Begin a figure with its title. Return it and the position below the title; `close` sets its height."""
    drawing = Drawing(width, 0.0, title, text or subtitle)
    y = 1.0
    for line in wrapped(title, width, SIZE + 1, bold=True):
        y += 10
        drawing.words(0, y, line, size=SIZE + 1, bold=True)
    for line in wrapped(subtitle, width, SMALL):
        y += 9
        drawing.words(0, y, line, size=SMALL, ink="quiet")
    drawing.hint, drawing.header, drawing.top = subtitle, len(drawing.marks), y + 8
    return drawing, y + 8


def close(drawing: Drawing, bottom: float, notes: Iterable[str] = (), signature: str = "") -> Drawing:
    """Finish a figure: write the notes and the signature below it, and set its height."""
    drawing.footer, drawing.bottom = len(drawing.marks), bottom
    drawing.notes = tuple(dict.fromkeys(notes))
    y = bottom + 3
    for note in drawing.notes:
        for line in wrapped(note, drawing.width, SMALL - 0.5):
            y += 8.5
            drawing.words(0, y, line, size=SMALL - 0.5, ink="quiet")
    drawing.signature = signature
    y += 2 if signature else 0
    for line in wrapped(signature.replace("|", " | "), drawing.width, TINY):
        y += 6.5
        drawing.words(0, y, line, size=TINY, ink="quiet")
    drawing.height = math.ceil(y + 3)
    return drawing


class Entry(Struct, frozen=True):
    """A line of a legend."""

    text: str
    ink: str = "s0"
    shape: str = "circle"  # one of SHAPES, or "line", "dashed" or "box"
    hollow: bool = False


def legend(drawing: Drawing, x: float, y: float, room: float, entries: Sequence[Entry]) -> float:
    """Draw a legend in as many lines as it needs. Return the position below it."""
    at, line = x, y
    for entry in entries:
        text = shortened(entry.text, room - 14, SMALL, middle=True)
        need = 12 + width_of(text, SMALL) + 10
        if at > x and at + need - 10 > x + room:
            at, line = x, line + 10
        if entry.shape in ("line", "dashed"):
            drawing.line((at, line + 3), (at + 9, line + 3), ink=entry.ink, dashed=entry.shape == "dashed", width=1)
        elif entry.shape == "box":
            drawing.add(Box(at + 1, line, 6, 6, entry.ink))
        else:
            drawing.add(Dot(at + 4, line + 3, entry.ink, entry.shape, 2.5, entry.hollow))
        drawing.add(Words(at + 12, line + 5.5, text, size=SMALL, title=entry.text if text != entry.text else ""))
        at += need
    return line + 13 if entries else y


def fitted(labels: Sequence[str], room: float, size: float = SIZE) -> list[str]:
    """Shorten labels in the middle so that they fit into `room`. Labels that would look alike get a number in front."""
    cut = [shortened(label, room, size, middle=True) for label in labels]
    return [
        text if cut.count(text) == 1 else f"{n} {shortened(label, room - width_of(f'{n} ', size), size, middle=True)}"
        for n, (text, label) in enumerate(zip(cut, labels, strict=True), 1)
    ]


def label(drawing: Drawing, x: float, y: float, text: str, cut: str, **more: object) -> None:
    """Draw a shortened label; its tooltip shows the whole text."""
    drawing.add(Words(x, y, cut, title=text if cut != text else "", **more))  # type: ignore[arg-type]


# ── axes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def domain(spots: Iterable[Estimate | float | None], low: float | None = None, high: float | None = None) -> Scale:
    """Return a scale, not yet placed, that covers these values and their intervals, and at least `low` to `high`.

    If values lie beyond `low` or `high`, the scale leaves a small margin there.
    """
    numbers = [x for x in (low, high) if x is not None]
    for spot in spots:
        ends = (spot.low, spot.value, spot.high) if isinstance(spot, Estimate) else (spot,)
        numbers += [x for x in ends if x is not None and math.isfinite(x)]
    least, most = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if least == most:
        least, most = least - 0.5, most + 0.5
    margin = 0.04 * (most - least)
    return Scale(least if least == low else least - margin, most if most == high else most + margin, 0, 1)


def placed(scale: Scale, start: float, end: float) -> Scale:
    """Place a scale between two positions."""
    return Scale(scale.low, scale.high, start, end)


def axis(
    drawing: Drawing, scale: Scale, top: float, bottom: float, kind: Kind = "percent", name: str = "",
    zero: float | None = None, about: int = 0,
) -> float:  # fmt: skip
    """Draw a horizontal axis: grid lines, round numbers and a name below. Return the position below it.

    `zero` is the value at which a stronger line is drawn, usually the value of no difference.
    """
    for tick, text in _round_numbers(scale, kind, about or 6):
        x = scale(tick)
        drawing.line((x, top), (x, bottom), ink="grid", width=0.5)
        drawing.words(x, bottom + 8, text, size=SMALL - 0.5, anchor="middle", ink="quiet")
    if zero is not None:
        drawing.line((scale(zero), top), (scale(zero), bottom), ink="quiet", width=0.6)
    y = bottom + 8
    for line in wrapped(name, abs(scale.end - scale.start) + 24, SMALL - 0.5):
        y += 8
        drawing.words((scale.start + scale.end) / 2, y, line, size=SMALL - 0.5, anchor="middle", ink="quiet")
    return y + 2


def _round_numbers(scale: Scale, kind: Kind, most: int) -> list[tuple[float, str]]:
    """Return round numbers along an axis with their texts: at most about `most`, and at least two if they fit."""
    fitting: list[tuple[float, str]] = []
    for about in range(max(most, 2), 0, -1):
        ticks = scale.ticks(about)
        step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
        shown_step = step if kind == "number" else 100 * step
        digits = next((n for n in range(4) if abs(round(shown_step, n) - shown_step) < 1e-6), 4)
        labelled = [(tick, _written(tick, kind, digits)) for tick in ticks]
        if len(labelled) < 2:
            continue
        fitting = labelled
        if max(width_of(text, SMALL - 0.5) for _, text in labelled) + 6 <= abs(scale(step) - scale(0.0)):
            break
    else:  # not even the fewest fit side by side: keep the first and the last
        fitting = [fitting[0], fitting[-1]] if fitting else []
    return fitting or [(tick, _written(tick, kind, 2)) for tick in scale.ticks(1)[:1]]


def spot(scale: Scale, at: float, one: Spot, *, size: float = 2.6, upright: bool = False) -> list[Mark]:
    """Return the marks of a value: a dot on the line of its interval.

    `at` is the position across the axis. The axis is horizontal, or vertical with `upright`.
    """

    def place(value: float, off: float = 0.0) -> tuple[float, float]:
        along = scale(value)
        return (at + off, along) if upright else (along, at + off)

    e = one.estimate
    if e.value is None:
        return []
    marks: list[Mark] = []
    if e.low is not None and e.high is not None:
        marks.append(Line((place(e.low), place(e.high)), one.ink, 1.0, key=one.key, title=one.title))
    x, y = place(e.value)
    return [*marks, Dot(x, y, one.ink, one.shape, size, one.hollow, one.key, one.title)]


def tick(drawing: Drawing, scale: Scale, value: float, y: float, half: float = 4.0, title: str = "") -> None:
    """Draw a short dashed line across an axis, at the level of blind guessing."""
    x = scale(value)
    drawing.add(Line(((x, y - half), (x, y + half)), "quiet", 0.9, dashed=True, title=title))


def hatched(drawing: Drawing, box: Box, step: float = 4.0) -> None:
    """Draw a hatched box, for a missing number."""
    drawing.add(box)
    x0, y0, x1, y1 = box.x, box.y, box.x + box.width, box.y + box.height
    at = x0 + y0 + step
    while at < x1 + y1:  # the lines x + y = at inside the box
        start, end = (max(x0, at - y1), min(x1, at - y0))
        drawing.line((start, at - start), (end, at - end), ink="grid", width=0.5)
        at += step
