"""What a score is: its label, its scale, which way is better, how many are added up, and where it applies.

A metric's file declares its scores beside its code: `SCORES = {"mine": ScoreInfo("Mine", better="lower")}`. Scoring
writes the declarations into the run. Tables, figures, comparisons, checks, plans and exports read them from there, so
that a run reads the same where the metric is not installed. Judges' dimensions are declared by their rubrics instead.
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

CHOICE, CHOICE_STRICT = "accuracy", "accuracy_strict"  # their details say which option a reply was read as
UNORDERED = 100  # a column without an order of its own stands last, and only where there is a score
LEVELS = {"transcribe": 1, "choose": 1, "converse": 3}  # of a task, where a measure is not of one level

Scale = Literal["percent", "plain", "mos", "words", "seconds", "usd"]
Better = Literal["higher", "lower", "neither"]
Table = Literal["main", "more", "delivery", "quality", "emotion", "none"]


class MeasureInfo(Struct, frozen=True, omit_defaults=True):
    """A measure read off a score, over the items of one task and level: voice and reasoning accuracy are the same
    score. `column` and `help` describe it in the table of its task, None where it stands in none."""

    name: str
    label: str
    task: str
    level: int
    gold: bool = False  # over items with a right answer only
    headline: bool = False
    corpus: bool = False  # has no value for one reply
    column: str | None = None
    help: str = ""
    order: int = UNORDERED
    colours: tuple[float, float] | None = None  # poor and good: the ends of the colour scale of the heat map
    conflict: str = ""  # heads its column in the table of words against voice; "": not there

    def __post_init__(self) -> None:
        if self.colours is not None and self.colours[0] == self.colours[1]:
            raise ValueError(f"the measure {self.name!r}: poor and good have the same colour")


class DetailInfo(Struct, frozen=True, omit_defaults=True):
    """A column read off a score's details, in the table of its score."""

    key: str
    label: str
    unit: str = ""
    kind: Literal["number", "percent"] = "number"
    better: Better = "neither"
    digits: Annotated[int, Meta(ge=0, le=9)] = 2
    low: float | None = 0.0
    high: float | None = None
    order: int = UNORDERED
    share: bool = False  # of yes and no


class ScoreInfo(Struct, frozen=True, omit_defaults=True):
    """How the scores of one name are shown and added up.

    `low` and `high` are the ends of the scale, None where it is open. `floor` bounds the values of a scale that is open
    below: intervals end there, but a missing reply is not taken to be that bad. `reduce` says how many scores become
    one number: their mean, the share of ones among zeros and ones, or a corpus score that `results.corpus_scores`
    computes from their details.
    """

    label: str
    scale: Scale = "percent"  # percent: 0 to 1, shown times 100
    better: Better = "higher"
    low: float | None = 0.0
    high: float | None = 1.0
    reduce: Literal["mean", "share", "bleu", "distinct", "errors"] = "mean"
    floor: float | None = None
    tasks: tuple[str, ...] = ()  # it applies to; those that have a score of it, where there are none
    single: bool = False  # applies to conversations of one turn only
    headline: bool = True  # compared, checked and planned for without being named
    table: Table = "main"  # main and more: the first and the second table of its task
    short: str = ""  # name in sentences and narrow columns
    unit: str = ""
    order: int = UNORDERED  # among the columns of a table
    measures: tuple[MeasureInfo, ...] = ()  # where it is read as another measure than one of its own name
    details: tuple[DetailInfo, ...] = ()
    needs: Literal["", "alignment", "labels"] = ""  # details that the analysis computes from
    dialogue: bool = True  # in the table of dialogues
    characters: bool = False  # counts characters in languages without spaces between words
    bounds: bool = False  # the table of replies shows what missing replies leave open
    ranks: int = 0  # order among the scores that rank replies where no judge does; 0: it does not
    finding: bool = False  # findings about replies use it
    instead: str = ""  # of a corpus score: the score that has a value for one reply
    metric: str = ""  # `--metric` computes it by this name; "": with every scoring

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
        """Whether a number over many replies is not made of their values."""
        return self.reduce not in ("mean", "share")

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return self.short or self.label

    @property
    def length(self) -> float:
        """Of the scale; one without ends is taken as 1 long."""
        return 1.0 if self.low is None or self.high is None else self.high - self.low

    @property
    def digits(self) -> int:
        """After the point, of a number."""
        return {"plain": 3, "words": 1}.get(self.scale, 2)

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """What an interval of these values may not leave: the scale, and what was seen, where that lies beyond it."""
        low = self.floor if self.low is None else self.low
        return (
            -math.inf if low is None else min([low, *values]),
            math.inf if self.high is None else max([self.high, *values]),
        )

    def read_as(self, score: str) -> tuple[MeasureInfo, ...]:
        """Return the measures of a score. A corpus score, or one that no reply has, gets no measure of its name."""
        if self.measures or self.corpus or not self.tasks:
            return self.measures
        level = min(LEVELS.get(task, 1) for task in self.tasks)
        column = None if self.table == "none" or self.tasks == ("converse",) else self.label
        return (
            MeasureInfo(score, self.label, self.tasks[0], level, False, self.headline, column=column, order=self.order),
        )

    def rule(self, measure: MeasureInfo) -> Callable[[Item], bool]:
        """Which items a measure of this score is over, as a function: it is called for every item of long runs."""
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
    """A judge's rating from 1 to 5."""
    return ScoreInfo(label, "mos", "higher", 1.0, 5.0)


def of_replies(label: str, **more: Any) -> ScoreInfo:
    """A score of replies in conversations that is compared where it is named, and not shown turn by turn."""
    return ScoreInfo(label, **{"tasks": ("converse",), "headline": False, "dialogue": False, **more})


def undeclared(score: str) -> ScoreInfo:
    """What is assumed of a score that its metric does not declare: a number of which neither way is better."""
    return ScoreInfo(score, "plain", "neither", None, None, headline=False)


def declared_by(module: ModuleType, name: str) -> dict[str, ScoreInfo]:
    """Return what the module of a metric declares. Raises UsageError where SCORES is something else."""
    found = getattr(module, "SCORES", {})
    if not isinstance(found, Mapping) or not all(isinstance(info, ScoreInfo) for info in found.values()):
        raise UsageError(f"the metric {name}: SCORES must be a dict of score names and ScoreInfo, not {found!r:.80}")
    metric = name if getattr(module, "ON_REQUEST", False) else ""
    return {score: replace(info, metric=metric) for score, info in found.items()}


@functools.cache
def built_in() -> dict[str, ScoreInfo]:
    """Return what the built-in metrics declare. This imports them."""
    return _declared({name: registry.find("metrics", name) for name in registry.builtins("metrics")})


def known(benchmark: str = "") -> dict[str, ScoreInfo]:
    """Return the declarations of all built-in, plug-in and benchmark metrics. This imports them."""
    return _declared(metrics_for(benchmark))


def metrics_for(benchmark: str) -> dict[str, ModuleType]:
    """Return the metrics that score replies to a benchmark: those of the room, and the benchmark's own."""
    return {name: registry.find("metrics", name) for name in registry.listing("metrics")} | own_metrics(benchmark)


def own_metrics(benchmark: str) -> dict[str, ModuleType]:
    """Return the metrics of a benchmark's protocol, which score only its replies; empty if it is not installed.

    Its file declares them as `METRICS`: name → a module, or a class, that offers what a file of metrics/ does."""
    if benchmark not in registry.listing("benchmarks"):
        return {}
    return dict(getattr(registry.find("benchmarks", benchmark), "METRICS", {}))


def _declared(metrics: Mapping[str, ModuleType]) -> dict[str, ScoreInfo]:
    return {score: info for name, module in metrics.items() for score, info in declared_by(module, name).items()}


def in_table(declared: Declared, table: Table) -> list[str]:
    """Return the scores of one table in the order of its columns."""
    return sorted((s for s, info in declared.items() if info.table == table), key=lambda s: (declared[s].order, s))


def score_of(declared: Declared, measure: str) -> str:
    """Return the score that a measure is read off; "" where none is."""
    return next((s for s, info in declared.items() if any(m.name == measure for m in info.read_as(s))), "")


def with_tasks(info: ScoreInfo, tasks: Iterable[str]) -> ScoreInfo:
    """Say to which tasks a score applies, where its declaration does not."""
    return info if info.tasks or info.measures else replace(info, tasks=tuple(sorted(tasks)))
