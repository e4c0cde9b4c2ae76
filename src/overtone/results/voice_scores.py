"""How the replies sound: predicted quality, pitch, pace, pauses, level, expressiveness, and fit to the reference.

The numbers are per condition, over all clips and per style, to show whether the delivery changes with the user's voice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from overtone.results import corpus_scores
from overtone.results.judge_scores import by_status, replies_of
from overtone.results.load import Answer
from overtone.results.measures import Estimate, estimate, on_scale
from overtone.schema import STYLES
from overtone.scores import Declared, DetailInfo, ScoreInfo, Table, in_table

VOICE_TABLES: tuple[Table, ...] = ("delivery", "quality")


class Measured(Struct, frozen=True):
    """A column with its unit and its better direction. If `detail` is set, the values come from this field of the
    score's details."""

    key: str
    score: str
    info: ScoreInfo
    detail: DetailInfo | None = None

    @property
    def label(self) -> str:
        return self.detail.label if self.detail else self.info.name

    @property
    def unit(self) -> str:
        return self.detail.unit if self.detail else self.info.unit

    @property
    def better(self) -> str:
        return self.detail.better if self.detail else self.info.better

    @property
    def kind(self) -> Literal["percent", "number"]:
        return self.detail.kind if self.detail else self.info.shown

    @property
    def digits(self) -> int:
        return self.detail.digits if self.detail else 2

    @property
    def order(self) -> int:
        return self.detail.order if self.detail else self.info.order

    def read(self, answer: Answer) -> float | None:
        """Return the value of one reply."""
        if self.detail is None:
            return answer.value(self.score)
        score = answer.scores.get(self.score) if answer.answered else None
        number = score.detail.get(self.detail.key) if score is not None else None
        return float(number) if isinstance(number, int | float) else None


def voice_columns(declared: Declared) -> dict[Table, list[Measured]]:
    """Return the columns of the tables of delivery and of predicted quality."""
    by_table: dict[Table, list[Measured]] = {}
    for table in VOICE_TABLES:
        columns = []
        for score in in_table(declared, table):
            info = declared[score]
            columns += [Measured(score, score, info), *(Measured(d.key, score, info, d) for d in info.details)]
        by_table[table] = sorted(columns, key=lambda c: c.order)
    return by_table


class VoiceRow(Struct, frozen=True):
    """The spoken replies to clips of one style, or to all clips if `style` is empty."""

    basis: str
    style: str
    measures: dict[str, Estimate]  # by the keys of the columns


def spoken(answers: Iterable[Answer], declared: Declared) -> list[VoiceRow]:
    """Return a row over all clips and one for each style; an empty list if no reply has measured audio."""
    columns = [column for replies in voice_columns(declared).values() for column in replies]
    rows = []
    for basis, replies in by_status(replies_of(answers)):
        styles = [s for s in STYLES if any(a.item.style == s for a in replies)]
        for style in ("", *(styles if len(styles) > 1 else [])):
            part = [a for a in replies if not style or a.item.style == style]
            measures = {c.key: e for c in columns if (e := _measure(c, part)) is not None}
            if any(e.value is not None for e in measures.values()):
                rows.append(VoiceRow(basis, style, measures))
    return rows


def _measure(column: Measured, answers: Sequence[Answer]) -> Estimate | None:
    if not any(column.score in a.scores for a in answers):
        return None
    if column.detail is None:
        return corpus_scores.over(column.score, answers, column.info)
    low, high = column.detail.low, column.detail.high
    rows = [(column.read(a), a.item.group) for a in answers]
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    return on_scale(estimate(rows, kind="proportion" if column.detail.share else "mean"), *ends)
