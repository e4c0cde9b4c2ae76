"""EmoAlign with its context: the rate, the agreement expected by chance, κ, and the unknown emotions.

A model that always replies in one tone agrees with every reference that has this tone. So the rate is shown with the
agreement of two independent raters with the same label shares, and with Cohen's κ. The labels "other" and "unknown"
never match, neither in the rate nor by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.results.load import Answer
from overtone.results.score_details import LABELS, complete
from overtone.stats import bootstrap, cluster
from overtone.stats.cluster import Interval

SEED = 7
DRAWS = 1000
NONE = frozenset({"other", "unknown"})

Codes = npt.NDArray[np.intp]


class Aligned(Struct, frozen=True):
    """The alignment of one group of replies. Intervals are clustered by script and are NaN with fewer than two scripts.
    κ is also NaN if chance agreement is 1."""

    condition: str
    style: str  # "" is all styles together
    rate: Interval
    chance: Interval  # agreement expected from the two sides' label shares alone
    kappa: Interval  # (rate − chance) ÷ (1 − chance)
    reply_unknown: Interval
    wanted_unknown: Interval
    replies: dict[str, int]  # label → how often it was heard in the replies
    wanted: dict[str, int]  # label → how often it was wanted
    unscored: int


class Alignment(Struct, frozen=True):
    """One emotion score over a run: per condition, first all styles and then each style."""

    metric: str
    rows: tuple[Aligned, ...]


def alignment(by_condition: Mapping[str, Iterable[Answer]], metric: str) -> Alignment | None:
    """Return the alignment of a run's replies by condition, from the details of their scores; None if the metric was
    not scored. A score without its details counts as unscored."""
    groups: dict[tuple[str, str], list[Answer]] = {}
    for condition, answers in by_condition.items():
        for answer in answers:
            if answer.answered and metric in answer.scores:
                for style in dict.fromkeys(("", answer.item.style)):
                    groups.setdefault((condition, style), []).append(answer)
    if not groups:
        return None
    return Alignment(metric, tuple(_row(metric, *key, answers_of) for key, answers_of in sorted(groups.items())))


def _row(metric: str, condition: str, style: str, answers: list[Answer]) -> Aligned:
    scored = [(a.scores[metric].detail, a.item.group) for a in answers if complete(a.scores[metric], LABELS)]
    scripts = [group for _, group in scored]
    pairs = [(str(detail["reply"]), str(detail["wanted"])) for detail, _ in scored]
    names = sorted({label for pair in pairs for label in pair})
    a = np.array([names.index(one) for one, _ in pairs], dtype=np.intp)
    b = np.array([names.index(other) for _, other in pairs], dtype=np.intp)
    known = np.array([name not in NONE for name in names], dtype=bool)

    def by_scripts(function: int) -> Interval:
        return bootstrap.clustered(
            lambda rows: agreement(a[rows], b[rows], known)[function], scripts, seed=SEED, draws=DRAWS
        )

    def share(flags: npt.NDArray[np.bool_]) -> Interval:
        return cluster.proportion(flags.astype(np.float64), scripts)

    if not pairs:
        nothing = Interval(math.nan, math.nan, math.nan, math.nan, 0, 0)
        return Aligned(condition, style, nothing, nothing, nothing, nothing, nothing, {}, {}, len(answers))
    return Aligned(
        condition=condition,
        style=style,
        rate=share((a == b) & known[a]),
        chance=by_scripts(1),
        kappa=by_scripts(2),
        reply_unknown=share(~known[a]),
        wanted_unknown=share(~known[b]),
        replies=_counts(names, a),
        wanted=_counts(names, b),
        unscored=len(answers) - len(scored),
    )


def agreement(a: Codes, b: Codes, known: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return rate, chance and κ for two lists of label codes; `known` marks the codes that can match."""
    if not a.size:
        return math.nan, math.nan, math.nan
    rate = float(((a == b) & known[a]).mean())
    shares = [np.bincount(side, minlength=known.size) / side.size for side in (a, b)]
    chance = float((shares[0] * shares[1] * known).sum())
    return rate, chance, (rate - chance) / (1 - chance) if chance < 1 - 1e-12 else math.nan


def _counts(names: list[str], codes: Codes) -> dict[str, int]:
    counts = np.bincount(codes, minlength=len(names))
    return {name: int(n) for name, n in zip(names, counts, strict=True) if n}
