"""Every picture by its name. A picture is a file here, its name the file's; it draws from a `Source` at any width."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import UsageError
from overtone.report.drawing import Drawing
from overtone.spec import suggest

if TYPE_CHECKING:
    from overtone.analysis.findings import Finding, Settings
    from overtone.analysis.reading import Reading
    from overtone.arena.standings import Standings

MM = 72 / 25.4  # points
WIDTH = 170 * MM  # of a printed page; 84 mm are one of its two columns
NARROWEST, WIDEST = 70 * MM, 1000 * MM
_ORDER = ("funnel", "cues", "levels", "sensitivity", "text-only", "radar", "arena", "prompts", "source", "upper")


class NothingToDraw(UsageError):
    """The runs lack what a picture shows. The text says what, and what to run to have it."""


class Source:
    """What pictures are drawn from: the runs, their labels, and their findings, made when first asked for, once.

    Runs `beside` are not shown: they only tell what the words alone give (see `Settings.deaf`)."""

    def __init__(
        self,
        readings: Sequence[Reading],
        labels: Sequence[str] = (),
        settings: Settings | None = None,
        arena: Standings | None = None,
        beside: Sequence[Reading] = (),
    ) -> None:
        from overtone.analysis.findings import Settings

        self.readings = list(readings)
        self.labels = tuple(labels) or tuple(reading.name for reading in self.readings)
        if len(self.labels) != len(self.readings):
            raise ValueError(f"{len(self.labels)} labels for {len(self.readings)} runs")
        self.settings = settings or Settings()
        self.arena = arena
        self.beside = list(beside)
        self._found: dict[str, list[Finding]] = {}
        self._conditions: list[str] | None = None

    def told(self, text: str) -> str:
        """What is said of a picture, after the name of a single run; several are named beside their values."""
        return f"{self.labels[0]}: {text}" if len(self.labels) == 1 else text[:1].upper() + text[1:]

    def findings(self, name: str) -> list[Finding]:
        """The findings of one name: one of each run, of each model, or one of all (see `Finding.runs`)."""
        from overtone.analysis.findings import findings

        if name not in self._found:
            every = [*self.readings, *(self.beside if name == "text-only" else ())]
            made = findings(every, [name], self.settings)
            self._found[name] = [one for one in made if one.about.of == "all" or one.runs[0] < len(self.readings)]
        return self._found[name]

    @property
    def conditions(self) -> list[str]:
        """Whose replies stand for each run, e.g. enhance/audio; "" for a run without replies."""
        from overtone.analysis.standing import talk_condition

        if self._conditions is None:
            self._conditions = talk_condition(self.readings, self.settings.prompt, self.settings.input)
        return self._conditions


def names() -> dict[str, str]:
    """Name → what it shows, of every picture there is. Nothing is imported for it."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem.replace("_", "-")] = doc.partition("\n")[0]
    order = [*(name for name in _ORDER if name in found), *(name for name in found if name not in _ORDER)]
    return {name: found[name] for name in order}


def check_name(name: str) -> str:
    """The name of a picture, or an error that names the nearest."""
    known = names()
    plain = name.replace("_", "-").lower()
    if plain not in known:
        raise UsageError(f"no figure is called {name!r}{suggest(plain, known)}; known: {', '.join(known)}")
    return plain


def draw(name: str, source: Source, width: float = WIDTH) -> Drawing:
    """The picture of this name, `width` points wide. NothingToDraw where the runs lack the data."""
    plain = check_name(name)
    if not NARROWEST - 0.01 <= width <= WIDEST + 0.01:
        raise UsageError(f"a figure is {NARROWEST / MM:.0f} to {WIDEST / MM:.0f} mm wide, not {width / MM:g}")
    if not source.readings and source.arena is None:
        raise NothingToDraw("name at least one run's folder")
    module = importlib.import_module(f"overtone.report.figures.{plain.replace('-', '_')}")
    drawing: Drawing = module.draw(source, width)
    return drawing
