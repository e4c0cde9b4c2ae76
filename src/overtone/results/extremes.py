"""The worst and the best replies of a condition, with the judges' reasons: where to look first.

Replies are ranked by the panel's score in the first available dimension of FIRST, and ties by the mean of all
dimensions. Without judges, replies are ranked by their similarity to the reference reply, and the label says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from overtone.results.judge_scores import (
    PANEL,
    SPEECH,
    Dimension,
    by_status,
    judges_of,
    replies_of,
    scored_names,
    value,
)
from overtone.results.load import Answer
from overtone.scores import Declared

FIRST = (SPEECH, "ves", "cctxfit")
SHOWN = 5


class Word(Struct, frozen=True):
    """The score and reason of one judge for a reply in one dimension."""

    dimension: str  # the judge's label
    judge: str
    value: float | None
    why: str


class Extreme(Struct, frozen=True):
    """A reply at one end of the ranking. `ask` identifies the reply in a reading."""

    ask: int
    case: str
    style: str
    cue: str
    value: float
    words: list[Word]


class Extremes(Struct, frozen=True):
    """The worst and the best replies of one condition, the most extreme first."""

    by: str  # the criterion in words
    key: str  # the key of the dimension, or the name of the metric
    judged: bool
    worst: list[Extreme]
    best: list[Extreme]


def extremes(
    answers: Iterable[Answer], dimensions: Mapping[str, Dimension], declared: Declared, shown: int = SHOWN
) -> Extremes | None:
    """Rank the replies and return both ends; None if fewer than two replies can be ranked, or all are equal."""
    bases = by_status(replies_of(answers))
    asked = [a for a in bases[0][1] if a.answered] if bases else []
    names = scored_names(asked)
    keys = [k for k in (*FIRST, *dimensions) if k in dimensions and judges_of(k, names)]
    if keys:
        first = dimensions[keys[0]]
        ranked = _by_judges(asked, first, dimensions, names)
        label = first.label
    else:
        ranking = sorted((s for s, info in declared.items() if info.ranks), key=lambda s: declared[s].ranks)
        metric = next((m for m in ranking if any(a.value(m) is not None for a in asked)), None)
        if metric is None:
            return None
        ranked = [((v, 0.0), v, a) for a in asked if (v := a.value(metric)) is not None]
        label = declared[metric].label
    if len({place for place, _, _ in ranked}) < 2:
        return None
    ranked.sort(key=lambda row: (row[0], row[2].ask))
    count = min(shown, len(ranked) // 2)
    return Extremes(
        by=label,
        key=keys[0] if keys else str(metric),
        judged=bool(keys),
        worst=[_extreme(a, v, dimensions, names) for _, v, a in ranked[:count]],
        best=[_extreme(a, v, dimensions, names) for _, v, a in ranked[::-1][:count]],
    )


def _by_judges(
    asked: Sequence[Answer], first: Dimension, dimensions: Mapping[str, Dimension], names: Iterable[str]
) -> list[tuple[tuple[float, float], float, Answer]]:
    judges = {key: judges_of(key, names) for key in dimensions}
    sign = -1.0 if first.better == "lower" else 1.0
    ranked = []
    for answer in asked:
        main = value(answer, first.key, PANEL, judges[first.key])
        if main is None:
            continue
        placed = [_placed(d, v) for k, d in dimensions.items() if (v := value(answer, k, PANEL, judges[k])) is not None]
        ranked.append(((sign * main, sum(placed) / len(placed)), main, answer))
    return ranked


def _placed(dimension: Dimension, value: float) -> float:
    """Return the position of a value on the dimension's scale, from 0 (worst) to 1 (best)."""
    low, high = dimension.low, dimension.high
    share = (value - low) / (high - low) if low is not None and high is not None and high > low else value
    return 1 - share if dimension.better == "lower" else share


def _extreme(answer: Answer, at: float, dimensions: Mapping[str, Dimension], names: Iterable[str]) -> Extreme:
    words = []
    for key, dimension in dimensions.items():
        for judge in judges_of(key, names):
            score = answer.scores.get(f"{key}@{judge}")
            if score is not None:
                words.append(Word(dimension.label, judge, score.value, str(score.detail.get("why") or score.reason)))
    return Extreme(answer.ask, answer.item.case, answer.item.style, answer.item.cue, at, words)
