"""A figure as a list of marks, in points from the upper left, and its SVG for a page or a file.

The SVG is written by hand because matplotlib is not part of the core. Colours are named by their purpose, so that a
page can replace them in dark mode. Series have Okabe and Ito's colours, which people with any colour vision can
distinguish, and each has its own shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import quote

from markupsafe import escape
from msgspec import Struct, field
from msgspec.structs import replace

from overtone.paths import shown

INKS = {
    "ink": "#1b1b1b",
    "quiet": "#5f6368",
    "grid": "#d9dce1",
    "paper": "#ffffff",
    "s0": "#0072b2",
    "s1": "#d55e00",
    "s2": "#009e73",
    "s3": "#cc79a7",
    "s4": "#56b4e9",
    "s5": "#e69f00",
    "s6": "#8a7a00",
    "s7": "#000000",
}
SHAPES = ("circle", "square", "diamond", "triangle", "down", "cross")
FONTS = {
    "sans": "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif",
    "serif": "Times, 'Times New Roman', 'Liberation Serif', 'DejaVu Serif', serif",
}
SIZE = 8.0  # points of plain text
Point = tuple[float, float]


class Line(Struct, frozen=True):
    """A line through points, or an outline around them; `fill` is the colour of its inside."""

    points: tuple[Point, ...]
    ink: str = "ink"
    width: float = 0.75
    dashed: bool = False
    closed: bool = False
    fill: str = ""
    opacity: float = 1.0  # of the fill
    key: str = ""  # of the number that it shows
    title: str = ""  # the tooltip


class Box(Struct, frozen=True):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "s0"
    ink: str = ""  # of the outline
    opacity: float = 1.0
    key: str = ""
    title: str = ""


class Dot(Struct, frozen=True):
    """A marker at a point."""

    x: float
    y: float
    ink: str = "s0"
    shape: str = "circle"  # one of SHAPES
    size: float = 3.0  # half its width
    hollow: bool = False
    key: str = ""
    title: str = ""


class Words(Struct, frozen=True):
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    ink: str = "ink"
    size: float = SIZE
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False
    turn: float = 0.0  # degrees, clockwise
    key: str = ""
    title: str = ""


Mark = Line | Box | Dot | Words


class Drawing(Struct):
    """A figure. `text` describes it for people who cannot see it; `signature` says how its numbers were made.

    The first `header` marks are its title and hint, which end at `top`; the marks from `footer` on are its notes and
    signature, which begin at `bottom`.
    """

    width: float
    height: float
    title: str
    text: str = ""
    signature: str = ""
    marks: list[Mark] = field(default_factory=list)
    font: Literal["sans", "serif"] = "sans"
    hint: str = ""
    notes: tuple[str, ...] = ()
    header: int = 0
    top: float = 0.0
    footer: int | None = None
    bottom: float | None = None

    def line(self, *points: Point, ink: str = "ink", width: float = 0.75, dashed: bool = False) -> None:
        """Add a line."""
        self.marks.append(Line(points, ink, width, dashed))

    def words(
        self, x: float, y: float, text: str, *, ink: str = "ink", size: float = SIZE,
        anchor: Literal["start", "middle", "end"] = "start", bold: bool = False, turn: float = 0.0, key: str = "",
    ) -> None:  # fmt: skip
        """Add a line of text."""
        self.marks.append(Words(x, y, text, ink, size, anchor, bold, turn, key))

    def add(self, *marks: Mark) -> None:
        """Add marks."""
        self.marks.extend(marks)


def bare(drawing: Drawing) -> Drawing:
    """Return a figure without its title, hint, notes and signature, because a paper has them in the caption."""
    up = max(drawing.top - 3, 0.0)
    marks = [_moved(mark, up) for mark in drawing.marks[drawing.header : drawing.footer]]
    bottom = drawing.height if drawing.bottom is None else math.ceil(drawing.bottom + 3)
    kept = {"marks": marks, "height": bottom - up, "header": 0, "top": 0.0, "footer": None, "bottom": None}
    return replace(drawing, **kept)


def _moved(mark: Mark, up: float) -> Mark:
    if isinstance(mark, Line):
        return replace(mark, points=tuple((x, y - up) for x, y in mark.points))
    return replace(mark, y=mark.y - up)


class Scale(Struct, frozen=True):
    """Maps values to positions along an axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (self.end - self.start) * (value - self.low) / span

    def ticks(self, about: int = 5) -> list[float]:
        """Return about `about` round numbers along the axis."""
        raw = abs(self.high - self.low) / max(about, 1)
        if not raw or not math.isfinite(raw):
            return [self.low]
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= raw * 0.999)
        first = math.ceil(min(self.low, self.high) / step - 1e-9)
        last = math.floor(max(self.low, self.high) / step + 1e-9)
        return [round(step * n, 10) + 0.0 for n in range(first, last + 1)]


def series(number: int) -> tuple[str, str]:
    """Return the colour and the shape of the n-th series. After eight series, colours repeat with other shapes."""
    return f"s{number % 8}", SHAPES[number % len(SHAPES)]


_RAMP = ((0, 32, 81), (60, 77, 110), (127, 124, 117), (187, 175, 113), (253, 234, 69))  # in even steps


def ramp(share: float) -> str:
    """Return a colour from dark blue (0) over grey to yellow (1), with increasing lightness.

    People with any colour vision can read it, and so can a photocopy.
    """
    place = min(1.0, max(0.0, share)) * (len(_RAMP) - 1)
    at = min(int(place), len(_RAMP) - 2)
    mixed = (round(x + (place - at) * (y - x)) for x, y in zip(_RAMP[at], _RAMP[at + 1], strict=True))
    return "#" + "".join(f"{x:02x}" for x in mixed)


def on(colour: str) -> str:
    """Return the text colour that is readable on a colour of the ramp."""
    r, g, b = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#000000" if 0.2126 * r**2.2 + 0.7152 * g**2.2 + 0.0722 * b**2.2 > 0.18 else "#ffffff"


_WIDTHS = {  # in em, in DejaVu Sans: the widest of the fonts above, so that a text fits in any of them
    c: width
    for width, letters in (
        (0.3, "ijlIJ'′"), (0.34, " ,.·’/:;\\|f-"), (0.41, "()[]tr!"), (0.5, '*_`–°"'), (0.55, "szc?“”L"),
        (0.6, "kvxyFPTYaoτ"), (0.64, "ebdghnpqu$0123456789{}µρES"), (0.69, "KAVΔBRXZC"), (0.77, "UHNDG&"),
        (0.84, "OQw#+<=>^~−×±≥≤→↑↓M"), (1.0, "%m½W@—…"),
    )
    for c in letters
}  # fmt: skip


def width_of(text: str, size: float = SIZE, bold: bool = False) -> float:
    """Estimate the width of a text. Fonts differ, so the estimate is generous."""
    total = 0.0
    for c in shown(text):
        total += _WIDTHS.get(c) or (0.7 if c < "\u2e80" else 1.2)  # East Asian characters and emoji are square or wider
    return total * size * (1.13 if bold else 1.0)


def shortened(text: str, room: float, size: float = SIZE, *, bold: bool = False, middle: bool = False) -> str:
    """Shorten a text to fit, with an ellipsis at its end or, for names, in the middle."""
    text = shown(text)
    if width_of(text, size, bold) <= room:
        return text
    for kept in range(len(text) - 1, 0, -1):
        front = (kept + 1) // 2 if middle else kept
        cut = text[:front].rstrip() + "…" + (text[len(text) - (kept - front) :].lstrip() if middle else "")
        if width_of(cut, size, bold) <= room:
            return cut
    return "…"


def wrapped(text: str, room: float, size: float = SIZE, bold: bool = False) -> list[str]:
    """Wrap a text to lines. A word longer than a line is broken. A ● or ○ stays on the line of its word."""
    lines: list[str] = []
    line = ""
    for word in re.findall(r"\S+(?: [●○]\S*)*", " ".join(shown(text).split())):
        while width_of(word, size, bold) > room and len(word) > 1:
            if line:
                lines.append(line)
                line = ""
            fit = max(1, next((n for n in range(len(word), 0, -1) if width_of(word[:n], size, bold) <= room), 1))
            lines.append(word[:fit])
            word = word[fit:]
        longer = f"{line} {word}" if line else word
        if line and width_of(longer, size, bold) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines


# ── SVG ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def svg(drawing: Drawing, *, inline: bool = False) -> str:
    """Return a figure as SVG. With `inline`, it uses the page's colours (`--f-s0` for s0), and its marks link to
    cases."""
    w, h = (f"{x:.4f}".rstrip("0").rstrip(".") for x in (drawing.width, drawing.height))
    size = f'viewBox="0 0 {w} {h}"' + ("" if inline else f' width="{w}pt" height="{h}pt"')
    font = escape(FONTS[drawing.font])
    role = "group" if inline else "img"  # an image has no links inside
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="{role}" font-family="{font}" class="figure">',
        f"<title>{_escaped(drawing.title)}</title>",
        f"<desc>{_escaped(' '.join(filter(None, (drawing.text, drawing.signature))))}</desc>",
    ]
    if not inline:
        parts.append(f'<rect width="{w}" height="{h}" fill="{INKS["paper"]}"/>')
    for mark in drawing.marks:
        body = _svg(mark, inline)
        parts.append(f'<a href="#behind={escape(quote(mark.key))}">{body}</a>' if inline and mark.key else body)
    return "".join(parts) + "</svg>" + ("" if inline else "\n")


def _svg(mark: Mark, inline: bool) -> str:
    def colour(ink: str) -> str:
        if not ink:
            return "none"
        return f"var(--f-{ink},{INKS[ink]})" if inline and ink in INKS else INKS.get(ink, ink)

    key = f' data-key="{_escaped(mark.key)}"' if mark.key else ""
    title = f"<title>{_escaped(mark.title)}</title>" if mark.title else ""
    if isinstance(mark, Words):
        turned = f' transform="rotate({_n(mark.turn)} {_n(mark.x)} {_n(mark.y)})"' if mark.turn else ""
        anchor = "" if mark.anchor == "start" else f' text-anchor="{mark.anchor}"'
        bold = ' font-weight="bold"' if mark.bold else ""
        return (
            f'<text x="{_n(mark.x)}" y="{_n(mark.y)}" font-size="{_n(mark.size)}"{anchor}{bold}'
            f' fill="{colour(mark.ink)}"{turned}{key}>{_escaped(mark.text)}{title}</text>'
        )
    if isinstance(mark, Box):
        place = f'x="{_n(mark.x)}" y="{_n(mark.y)}" width="{_n(max(mark.width, 0))}" height="{_n(max(mark.height, 0))}"'
        outline = f' stroke="{colour(mark.ink)}" stroke-width="0.5"' if mark.ink else ""
        opacity = f' fill-opacity="{_n(mark.opacity)}"' if mark.opacity < 1 else ""
        return f'<rect {place} fill="{colour(mark.fill)}"{opacity}{outline}{key}>{title}</rect>'
    if isinstance(mark, Dot):
        fill = colour("paper" if mark.hollow else mark.ink)
        corners = outline_of(mark)
        if not corners:
            shape = f'circle cx="{_n(mark.x)}" cy="{_n(mark.y)}" r="{_n(mark.size)}"'
        else:
            shape = f'path d="{_path(corners, closed=True)}"'
        return f'<{shape} fill="{fill}" stroke="{colour(mark.ink)}"{key}>{title}</{shape.partition(" ")[0]}>'
    opacity = f' fill-opacity="{_n(mark.opacity)}"' if mark.fill and mark.opacity < 1 else ""
    dashes = ' stroke-dasharray="3 2"' if mark.dashed else ""
    return (
        f'<path d="{_path(mark.points, mark.closed)}" fill="{colour(mark.fill)}"{opacity} stroke="{colour(mark.ink)}"'
        f' stroke-width="{_n(mark.width)}"{dashes}{key}>{title}</path>'
    )


def outline_of(dot: Dot) -> tuple[Point, ...]:
    """Return the corners of a dot's shape; a circle has none."""
    x, y, s = dot.x, dot.y, dot.size
    t = 0.35 * s
    corners: dict[str, tuple[Point, ...]] = {
        "square": ((-s, -s), (s, -s), (s, s), (-s, s)),
        "diamond": ((0, -1.3 * s), (1.3 * s, 0), (0, 1.3 * s), (-1.3 * s, 0)),
        "triangle": ((0, -1.2 * s), (1.15 * s, 0.9 * s), (-1.15 * s, 0.9 * s)),
        "down": ((0, 1.2 * s), (1.15 * s, -0.9 * s), (-1.15 * s, -0.9 * s)),
        "cross": (
            (-t, -s), (t, -s), (t, -t), (s, -t), (s, t), (t, t), (t, s), (-t, s), (-t, t), (-s, t), (-s, -t), (-t, -t),
        ),
    }  # fmt: skip
    return tuple((x + a, y + b) for a, b in corners.get(dot.shape, ()))


def _path(points: Sequence[Point], closed: bool) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points) + ("Z" if closed else "")


def _escaped(text: str) -> str:
    """Escape untrusted text as XML, without characters that XML forbids."""
    return str(escape(shown(text)))


def _n(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".") or "0"
