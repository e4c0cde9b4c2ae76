"""Every figure by name: those of findings, and the modules of this room, which define `draw(source, width)`."""

from __future__ import annotations

from collections.abc import Callable

from overtone import registry
from overtone.display.drawing import Drawing
from overtone.errors import UsageError
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.lookup import known_findings
from overtone.spec import suggest

MM = 72 / 25.4  # points
WIDTH = 170 * MM  # a printed page; one of its two columns is 84 mm wide
NARROWEST, WIDEST = 70 * MM, 1000 * MM

Draw = Callable[[FigureSource, float], Drawing]


def names() -> dict[str, str]:
    """Return figure name → description: first the figures of findings, in the findings' order, then the others."""
    lines = {name: _first_line(draw) for name, draw in _of_findings().items()}
    others = registry.listing("figures")
    order: list[str] = []
    for name, finding in known_findings().items():
        order += [other for other in (name, *finding.figures) if other in lines or other in others]
    return {name: lines.get(name) or others[name] for name in dict.fromkeys([*order, *others])}


def check_name(name: str) -> str:
    """Return the name of a figure. An unknown name is a UsageError with the nearest known one."""
    known = names()
    plain = name.replace("_", "-").lower()
    if plain not in known:
        raise UsageError(f"unknown figure {name!r}{suggest(plain, known)}; known: {', '.join(known)}")
    return plain


def draw(name: str, source: FigureSource, width: float = WIDTH) -> Drawing:
    """Draw a figure `width` points wide. Raises NothingToDraw if the runs lack the data."""
    plain = check_name(name)
    if not NARROWEST - 0.01 <= width <= WIDEST + 0.01:
        raise UsageError(f"a figure is {NARROWEST / MM:.0f} to {WIDEST / MM:.0f} mm wide, not {width / MM:g}")
    if not source.readings and source.arena is None:
        raise NothingToDraw("name at least one run's folder")
    drawing: Drawing = (_of_findings().get(plain) or registry.find("figures", plain).draw)(source, width)
    return drawing


def _of_findings() -> dict[str, Draw]:
    return {name: finding.draw for name, finding in known_findings().items() if finding.draw is not None}


def _first_line(function: Draw) -> str:
    line = (function.__doc__ or "").strip().partition("\n")[0].removeprefix("Draw ")
    return line[:1].upper() + line[1:]
