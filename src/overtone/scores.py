"""Declarations of scores: label, scale, direction, how values are combined, and which items they apply to.

A metric's file declares its scores next to its code: `SCORES = {"mine": ScoreInfo("Mine", better="lower")}`. Scoring
writes the declarations into the run. Tables, figures, comparisons, checks, plans and exports read them from there, so
that they are the same if the metric is not installed. Judges' dimensions are declared by their rubrics instead.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from overtone import registry
from overtone.errors import UsageError
from overtone.schema import Item

CHOICE, CHOICE_STRICT = "accuracy", "accuracy_strict"  # their details contain the option that was read from a reply
CHOICE_LESS = "accuracy_less"  # by the likelihood of each option less its likelihood without the clip
UNORDERED = 100  # columns without an explicit order come last, and only if a run has their score
LEVELS = {"transcribe": 1, "choose": 1, "converse": 3}  # the level of a task, for measures without an explicit level

Scale = Literal["percent", "plain", "mos", "words", "seconds", "usd"]
Better = Literal["higher", "lower", "neither"]
Table = Literal["main", "more", "delivery", "quality", "emotion", "none"]


class MeasureInfo(Struct, frozen=True, omit_defaults=True):
    """A measure: a score restricted to the items of one task and level. For example, voice accuracy and reasoning
    accuracy are two measures of one score.

    `column` and `help` describe the measure in the table of its task; `column` is None if the table does not show it.
    """

    name: str
    label: str
    task: str
    level: int
    gold: bool = False  # only over items with a correct answer
    headline: bool = False
    corpus: bool = False  # has no value for one reply
    column: str | None = None
    help: str = ""
    order: int = UNORDERED
    colours: tuple[float, float] | None = None  # a poor and a good value: the ends of the heat map's colour scale
    conflict: str = ""  # its column's heading in the table of words against voice; "": not in the table

    def __post_init__(self) -> None:
        if self.colours is not None and self.colours[0] == self.colours[1]:
            raise ValueError(f"the measure {self.name!r}: poor and good have the same colour")


class DetailInfo(Struct, frozen=True, omit_defaults=True):
    """A column with one of a score's details, in the table of that score."""

    key: str
    label: str
    unit: str = ""
    kind: Literal["number", "percent"] = "number"
    better: Better = "neither"
    digits: Annotated[int, Meta(ge=0, le=9)] = 2
    low: float | None = 0.0
    high: float | None = None
    order: int = UNORDERED
    share: bool = False  # the share of yes among yes and no


class ScoreInfo(Struct, frozen=True, omit_defaults=True):
    """How the scores of one name are shown and combined.

    `low` and `high` are the ends of the scale, None if it is open. `floor` is the lower bound of intervals on a scale
    that is open below; missing replies are not counted as that bad. `reduce` says how scores are combined into one
    number: by their mean, by the share of ones among zeros and ones, or as a corpus score that
    `results.corpus_scores` computes from their details.
    """

    label: str
    scale: Scale = "percent"  # percent: 0 to 1, shown times 100
    better: Better = "higher"
    low: float | None = 0.0
    high: float | None = 1.0
    reduce: Literal["mean", "share", "bleu", "distinct", "errors"] = "mean"
    floor: float | None = None
    tasks: tuple[str, ...] = ()  # the tasks it applies to; if empty, those whose replies have the score
    single: bool = False  # applies to conversations of one turn only
    headline: bool = True  # compared, checked and planned for by default
    table: Table = "main"  # main and more: the first and the second table of its task
    short: str = ""  # name in sentences and narrow columns
    unit: str = ""
    order: int = UNORDERED  # among the columns of a table
    measures: tuple[MeasureInfo, ...] = ()  # its measures, if they differ from one measure of its own name
    details: tuple[DetailInfo, ...] = ()
    needs: Literal["", "alignment", "labels"] = ""  # details that the analysis computes from
    dialogue: bool = True  # shown in the table of dialogues
    characters: bool = False  # counts characters in languages without spaces between words
    bounds: bool = False  # the table of replies shows the bounds for missing replies
    ranks: int = 0  # priority among the scores that rank replies if no judge does; 0: not used for ranking
    finding: bool = False  # findings about replies use it
    instead: str = ""  # for a corpus score: the score that has a value for one reply
    metric: str = ""  # the name for `--metric` that computes it; "": always computed

    def __post_init__(self) -> None:
        if not self.label.strip():
            raise ValueError("a score needs a label")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"the scale of {self.label!r} ends at {self.high:g}, below its start {self.low:g}")

    @property
    def shown(self) -> Literal["percent", "number"]:
        return "percent" if self.scale == "percent" else "number"

    @property
    def corpus(self) -> bool:
        """Whether the score of many replies is computed from their details, not as the mean or share of their
        values.
        """
        return self.reduce not in ("mean", "share")

    @property
    def name(self) -> str:
        """The name used in sentences."""
        return self.short or self.label

    @property
    def length(self) -> float:
        """The length of the scale; 1 for an open scale."""
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    @property
    def digits(self) -> int:
        """The number of decimals."""
        return {"plain": 3, "words": 1}.get(self.scale, 2)

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the limits of an interval around these values: the ends of the scale, widened if values lie beyond
        them."""
        low = self.floor if self.low is None else self.low
        return (
            -math.inf if low is None else min([low, *values]),
            math.inf if self.high is None else max([self.high, *values]),
        )

    def read_as(self, score: str) -> tuple[MeasureInfo, ...]:
        """Return the measures of this score, which is named `score`.

        A score that declares no measures is itself one measure, unless it is a corpus score or names no tasks.
        """
        if self.measures or self.corpus or not self.tasks:
            return self.measures
        level = min(LEVELS.get(task, 1) for task in self.tasks)
        column = None if self.table == "none" or self.tasks == ("converse",) else self.label
        return (
            MeasureInfo(score, self.label, self.tasks[0], level, False, self.headline, column=column, order=self.order),
        )

    def rule(self, measure: MeasureInfo) -> Callable[[Item], bool]:
        """Return a function that says whether a measure covers an item. It is fast, since long runs have many items."""
        if not self.measures:
            tasks, single = frozenset(self.tasks), self.single
            return lambda item: item.task in tasks and not (single and len(item.turns) > 1)
        task, level = measure.task, measure.level
        if task != "choose":
            return lambda item: item.task == task and not (measure.gold and not item.gold)
        if measure.gold:
            return lambda item: item.task == task and item.level == level and bool(item.gold)
        return lambda item: item.task == task and item.level == level


Declared = Mapping[str, ScoreInfo]


def rating(label: str) -> ScoreInfo:
    """Declare a score for a judge's rating from 1 to 5."""
    return ScoreInfo(label, "mos", "higher", 1.0, 5.0)


def of_replies(label: str, **more: Any) -> ScoreInfo:
    """Declare a score of conversational replies. It is not compared by default, and not shown turn by turn."""
    return ScoreInfo(label, **{"tasks": ("converse",), "headline": False, "dialogue": False, **more})


def undeclared(score: str) -> ScoreInfo:
    """Return the default declaration for an undeclared score: a plain number for which neither direction is better."""
    return ScoreInfo(score, "plain", "neither", None, None, headline=False)


def declared_by(module: ModuleType, name: str) -> dict[str, ScoreInfo]:
    """Return the declarations in a metric's module. Raises UsageError if its SCORES is invalid."""
    scores = getattr(module, "SCORES", {})
    if not isinstance(scores, Mapping) or not all(isinstance(info, ScoreInfo) for info in scores.values()):
        raise UsageError(f"the metric {name}: SCORES must be a dict of score names and ScoreInfo, not {scores!r:.80}")
    metric = name if getattr(module, "ON_REQUEST", False) else ""
    return {score: replace(info, metric=metric) for score, info in scores.items()}


@functools.cache
def built_in() -> dict[str, ScoreInfo]:
    """Return the declarations of the built-in metrics. This imports them."""
    return _declared({name: registry.find("metrics", name) for name in registry.builtins("metrics")})


def known(benchmark: str = "") -> dict[str, ScoreInfo]:
    """Return the declarations of all built-in, plug-in and benchmark metrics. This imports them."""
    return _declared(metrics_for(benchmark))


def metrics_for(benchmark: str) -> dict[str, ModuleType]:
    """Return the metrics that score replies to a benchmark: the general metrics, and the benchmark's own."""
    return {name: registry.find("metrics", name) for name in registry.listing("metrics")} | own_metrics(benchmark)


def own_metrics(benchmark: str) -> dict[str, ModuleType]:
    """Return the metrics that a benchmark declares for its own replies; {} if the benchmark is not installed.

    The benchmark's file declares them as `METRICS`: name → a module or class with the same contents as a file of
    metrics/.
    """
    if benchmark not in registry.listing("benchmarks"):
        return {}
    return dict(getattr(registry.find("benchmarks", benchmark), "METRICS", {}))


def _declared(metrics: Mapping[str, ModuleType]) -> dict[str, ScoreInfo]:
    return {score: info for name, module in metrics.items() for score, info in declared_by(module, name).items()}


def in_table(declared: Declared, table: Table) -> list[str]:
    """Return the names of the scores that a table shows, in the order of its columns."""
    return sorted((s for s, info in declared.items() if info.table == table), key=lambda s: (declared[s].order, s))


def score_of(declared: Declared, measure: str) -> str:
    """Return the score that a measure belongs to, or ""."""
    return next((s for s, info in declared.items() if any(m.name == measure for m in info.read_as(s))), "")


def with_tasks(info: ScoreInfo, tasks: Iterable[str]) -> ScoreInfo:
    """Return the declaration with the tasks that the score applies to, unless it already names tasks or measures."""
    return info if info.tasks or info.measures else replace(info, tasks=tuple(sorted(tasks)))
