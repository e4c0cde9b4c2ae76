"""Habits of single raters compared with all raters together, given the ratings of the players.

All three numbers are one Newton step away from the average rater, so they exist for every rater, even one who always
votes the same. A rater's own votes are part of the ratings: with few raters, each looks a little too normal.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Labels, codes
from overtone.stats.rank import Ranking
from overtone.stats.votes import TIE, Votes

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """A habit with its standard error; NaN if the rater's votes cannot show it."""

    value: float
    error: float


@dataclass(frozen=True)
class Rater:
    """One rater. `sharpness` is 1 for votes that follow the ratings like the average rater, 0 for random votes, and
    below 0 for votes against the ratings.

    `side` is the preference for A and `ties` the preference for ties, in log-odds; 0 is the average rater.
    """

    rater: Hashable
    votes: int
    sharpness: Effect
    side: Effect
    ties: Effect


def rater_effects(cast: Votes, ranking: Ranking, raters: Labels) -> tuple[Rater, ...]:
    """Return every rater's habits, in the order of their first vote. Covariates of the ranking are ignored."""
    if len(raters) != len(cast):
        raise ValueError(f"{len(cast)} votes but {len(raters)} raters")
    rating = np.array([ranking.of(player).rating.value for player in cast.players])
    d = rating[cast.a] - rating[cast.b]
    parts = np.stack([np.exp(d / 2), np.full(d.shape, ranking.tie), np.exp(-d / 2)], axis=1)
    p = parts / parts.sum(1, keepdims=True)
    lean = (p[:, 0] - p[:, 2]) / 2
    off, spread = (1 - cast.outcome) / 2 - lean, (p[:, 0] + p[:, 2]) / 4 - lean**2
    tied = (cast.outcome == TIE) - p[:, TIE]
    ids, count = codes(raters)

    def summed(values: Array) -> Array:
        return np.bincount(ids, weights=values, minlength=count).astype(np.float64)

    def effects(pull: Array, information: Array, centre: float = 0.0) -> list[Effect]:
        sums = zip(summed(pull).tolist(), summed(information).tolist(), strict=True)
        return [
            Effect(centre + up / known, 1 / math.sqrt(known)) if known > 1e-12 else Effect(math.nan, math.nan)
            for up, known in sums
        ]

    rows = zip(
        dict.fromkeys(raters),
        np.bincount(ids, minlength=count).tolist(),
        effects(off * d, spread * d**2, 1.0),
        effects(off, spread),
        effects(tied, p[:, TIE] * (1 - p[:, TIE])),
        strict=True,
    )
    return tuple(Rater(*row) for row in rows)
