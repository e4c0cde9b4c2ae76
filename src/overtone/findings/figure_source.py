"""The input of a figure: runs with their labels, and the findings of these runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from overtone.display.axes import Kind
from overtone.errors import UsageError
from overtone.findings.analysis import compute_findings
from overtone.findings.finding import Data, FindingResult, Settings
from overtone.results.headline_condition import talk_condition
from overtone.results.load import Reading
from overtone.results.measure_names import is_percent, short

D = TypeVar("D", bound=Data)


class NothingToDraw(UsageError):
    """The runs lack the data of a figure. The message names the missing data and the command that supplies it."""


def axes_by_scale(measures: Sequence[str], rated: Collection[str]) -> list[tuple[Kind, Kind, str, list[str]]]:
    """Group measures by axis: one axis for percentages, one for ratings (`rated`), then one for each other measure.

    Return for each axis: the kind of its values, the kind of their differences, the unit, and its measures.
    """
    percent = [name for name in measures if is_percent(name)]
    ratings = [name for name in measures if name in rated]
    others = [name for name in measures if name not in percent and name not in ratings]
    shared: list[tuple[Kind, Kind, str, list[str]]] = [("percent", "points", "percent", percent)]
    shared.append(("number", "number", "rating, 1 to 5", ratings))
    shared = sorted((axis for axis in shared if axis[3]), key=lambda axis: measures.index(axis[3][0]))
    return [*shared, *(("number", "number", short(name), [name]) for name in others)]


class FigureSource:
    """The runs of a figure, their labels and their findings. A finding is computed on first use and then kept.

    The figure does not show the runs in `beside`; only findings that read other runs use them. `arena` holds the
    standings of an arena.
    """

    def __init__(
        self,
        readings: Sequence[Reading],
        labels: Sequence[str] = (),
        settings: Settings | None = None,
        arena: object | None = None,
        beside: Sequence[Reading] = (),
    ) -> None:
        self.readings = list(readings)
        self.labels = tuple(labels) or tuple(reading.name for reading in self.readings)
        if len(self.labels) != len(self.readings):
            raise ValueError(f"{len(self.labels)} labels for {len(self.readings)} runs")
        self.settings = settings or Settings()
        self.arena = arena
        self.beside = list(beside)
        self._results: dict[str, list[FindingResult[Any]]] = {}
        self._conditions: list[str] | None = None

    def with_name(self, text: str) -> str:
        """Return a subtitle that begins with the run's name if there is only one run. Several runs are named beside
        their values instead."""
        return f"{self.labels[0]}: {text}" if len(self.labels) == 1 else text[:1].upper() + text[1:]

    def label(self, result: FindingResult[Any]) -> str:
        """Return the labels of a result's runs as one text, without duplicates."""
        return " + ".join(dict.fromkeys(self.labels[n] for n in result.runs))

    def results(self, name: str) -> list[FindingResult[Any]]:
        """Return the results of a finding: one for each run, for each model, or for all runs."""
        if name not in self._results:
            every = [*self.readings, *self.beside]
            self._results[name] = compute_findings(every, [name], self.settings, len(self.readings))
        return self._results[name]

    def results_of(self, name: str, kind: type[D]) -> list[FindingResult[D]]:
        """Return the results of a finding, typed as results with data of the type `kind`."""
        return [result for result in self.results(name) if isinstance(result.data, kind)]

    @property
    def conditions(self) -> list[str]:
        """The condition whose replies represent each run, e.g. enhance/audio; "" for a run without replies."""
        if self._conditions is None:
            self._conditions = talk_condition(self.readings, self.settings.prompt, self.settings.input)
        return self._conditions
