"""The columns of the tables of hearing and reasoning, cues, dimensions and styles, as metrics declare them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from overtone.results.summary import ConditionSummary
from overtone.scores import UNORDERED, MeasureInfo, ScoreInfo

ARROWS = {"higher": "↑", "lower": "↓"}
TASKS = ("transcribe", "choose")  # of the table of hearing and reasoning


class Column(Struct, frozen=True):
    """A column of a headline table. `better` is the arrow after its name."""

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
    """Return the declarations of these conditions' scores. If several conditions declare a score, the first one
    counts."""
    declared: dict[str, ScoreInfo] = {}
    for condition in conditions:
        declared = {**condition.declared, **declared}
    return declared


def hearing_columns(conditions: Sequence[ConditionSummary]) -> tuple[Column, ...]:
    """Return the columns of hearing and reasoning: transcripts, then questions. A score without a declared order comes
    last, and only if a reply has it."""
    seen = {n for c in conditions for part in (c.measures, c.unvalidated) for n, e in part.items() if e.scored}
    ordered = [
        (TASKS.index(m.task), m.order, m.name, _column(m, info))
        for score, info in declared_in(conditions).items()
        for m in info.read_as(score)
        if m.column is not None and m.task in TASKS and (m.order < UNORDERED or m.name in seen)
    ]
    return named([column for *_, column in sorted(ordered, key=lambda row: row[:3])], conditions)


def heat_columns(conditions: Sequence[ConditionSummary]) -> tuple[Column, ...]:
    """Return the columns of tables by cue, dimension and style: the measures that have a colour scale."""
    coloured = [(m, info) for score, info in declared_in(conditions).items() for m in info.read_as(score) if m.colours]
    return named(
        [_column(m, info) for m, info in sorted(coloured, key=lambda row: (row[0].order, row[0].name))], conditions
    )


def _column(measure: MeasureInfo, info: ScoreInfo) -> Column:
    label = measure.column or measure.label
    return Column(measure.name, label, ARROWS.get(info.better, ""), measure.help, info.shown, info.digits)


def error_rate_of(conditions: Iterable[ConditionSummary]) -> str:
    """Return the common name of these conditions' error rates: WER, CER, or WER/CER if they differ."""
    rates = {c.error_rate for c in conditions} or {"WER"}
    return rates.pop() if len(rates) == 1 else "WER/CER"


def named(columns: Sequence[Column], conditions: Iterable[ConditionSummary]) -> tuple[Column, ...]:
    """Return the columns with the right name for error rates, WER, CER or WER/CER, depending on these conditions."""
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
