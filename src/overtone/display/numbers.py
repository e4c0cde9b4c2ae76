"""How numbers are written, the same in the terminal and in the HTML report: percentages with one decimal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from overtone.results.measures import Estimate
from overtone.results.summary import ConditionSummary
from overtone.scores import UNORDERED, MeasureInfo, ScoreInfo

NONE = "–"
ARROWS = {"higher": "↑", "lower": "↓"}
TASKS = ("transcribe", "choose")  # of the table of hearing and reasoning


class Column(Struct, frozen=True):
    """A column of a headline table. `better` is the arrow beside its name."""

    measure: str
    label: str
    better: str
    help: str
    kind: Literal["percent", "number"] = "percent"
    digits: int = 2

    @property
    def head(self) -> str:
        return f"{self.label} {self.better}".strip()


def declared_in(conditions: Iterable[ConditionSummary]) -> dict[str, ScoreInfo]:
    """What the runs of these conditions say of their scores, the first of them where several do."""
    found: dict[str, ScoreInfo] = {}
    for condition in conditions:
        found = {**condition.declared, **found}
    return found


def hearing_columns(conditions: Sequence[ConditionSummary]) -> tuple[Column, ...]:
    """The columns of hearing and reasoning: transcripts, then questions. A score that declares no order stands last,
    and only where a reply has it."""
    seen = {n for c in conditions for part in (c.measures, c.unvalidated) for n, e in part.items() if e.scored}
    found = [
        (TASKS.index(m.task), m.order, m.name, _column(m, info))
        for score, info in declared_in(conditions).items()
        for m in info.read_as(score)
        if m.column is not None and m.task in TASKS and (m.order < UNORDERED or m.name in seen)
    ]
    return named([column for *_, column in sorted(found, key=lambda row: row[:3])], conditions)


def heat_columns(conditions: Sequence[ConditionSummary]) -> tuple[Column, ...]:
    """The columns of tables by cue, dimension and style: the measures that have a colour scale."""
    found = [(m, info) for score, info in declared_in(conditions).items() for m in info.read_as(score) if m.colours]
    return named(
        [_column(m, info) for m, info in sorted(found, key=lambda row: (row[0].order, row[0].name))], conditions
    )


def _column(measure: MeasureInfo, info: ScoreInfo) -> Column:
    label = measure.column or measure.label
    return Column(measure.name, label, ARROWS.get(info.better, ""), measure.help, info.shown, info.digits)


def error_rate_of(conditions: Iterable[ConditionSummary]) -> str:
    """Return what the error rates of these conditions are together: WER, CER, or WER/CER."""
    rates = {c.error_rate for c in conditions} or {"WER"}
    return rates.pop() if len(rates) == 1 else "WER/CER"


def named(columns: Sequence[Column], conditions: Iterable[ConditionSummary]) -> tuple[Column, ...]:
    """Name the error rates of a table's columns as its rows count them: WER, CER, or WER/CER."""
    name = error_rate_of(conditions)
    help_ = {"CER": ("Character", "character"), "WER/CER": ("Word or character", "word or character")}.get(name)
    if help_ is None:
        return tuple(columns)
    return tuple(
        replace(
            column,
            label=column.label.replace("WER", name),
            help=column.help.replace("Word error", f"{help_[0]} error").replace(" word", f" {help_[1]}")
            + ". In languages without spaces between words characters are counted",
        )
        if "WER" in column.label
        else column
        for column in columns
    )


def cut(text: str, most: int, hint: str = "") -> str:
    """`text`, or its first `most` characters with a note of how many there are, and `hint`."""
    return text if len(text) <= most else f"{text[:most]}… [cut: {len(text):,} characters{hint}]"


def percent(x: float | None, digits: int = 1) -> str:
    return NONE if x is None else f"{100 * x:.{digits}f}"


def interval(e: Estimate | None) -> str:
    """`61.2 to 70.9`, or nothing where the spread is not known."""
    if e is None or e.low is None or e.high is None:
        return ""
    return f"{percent(e.low)} to {percent(e.high)}"


def bounds(e: Estimate | None, kind: str = "percent", digits: int = 2) -> str:
    """The worst and best value the missing replies leave open; nothing when none is missing."""
    if e is None or not e.missing or e.best is None or e.worst is None:
        return ""
    low, high = sorted((e.best, e.worst))
    return f"{one(low, kind, digits)} to {one(high, kind, digits)}"


def signed(x: float | None, digits: int = 2) -> str:
    """A number that may lie below zero, with a real minus sign."""
    if x is None:
        return NONE
    return f"{round(x, digits) + 0.0:,.{digits}f}".replace("-", "−")  # no minus before a zero


def one(x: float | None, kind: str, digits: int = 2) -> str:
    """A value of any kind: percent, points (of a difference of percentages), or a bare number."""
    if kind == "percent":
        return signed(None if x is None else 100 * x, 1)
    return signed(None if x is None else 100 * x, 1) if kind == "points" else signed(x, digits)


def between(e: Estimate | None, kind: str, digits: int = 2) -> str:
    """The interval of an estimate of any kind."""
    if e is None or e.low is None or e.high is None:
        return ""
    return f"{one(e.low, kind, digits)} to {one(e.high, kind, digits)}"


def written(e: Estimate | None, kind: str, digits: int = 2) -> str:
    """The value of an estimate of any kind."""
    return NONE if e is None else one(e.value, kind, digits)


def counted(e: Estimate | None) -> str:
    return "" if e is None else f"{e.scored:,} of {e.asked:,}"


def seconds(x: float | None) -> str:
    return NONE if x is None else f"{x:.2f} s"


def number(x: float | None) -> str:
    """A value of a metric whose scale is not known."""
    return NONE if x is None else f"{x:.3g}" if abs(x) < 100 else f"{x:,.0f}"
