"""Elo ratings: one pass over the votes in the order they were cast.

Elo ratings depend on this order: the same votes in another order give different ratings, and later votes count more.
They have no intervals. They are here because leaderboards show them; report `rank.bradley_terry` instead.
"""

from __future__ import annotations

from collections.abc import Hashable

from overtone.stats.votes import Votes


def elo(cast: Votes, *, k: float = 4.0, scale: float = 400.0, start: float = 1000.0) -> dict[Hashable, float]:
    """Return player → rating after the last vote. A tie is half a win; a lead of `scale` points is odds of 10 to 1."""
    if k <= 0 or scale <= 0:
        raise ValueError(f"k and scale must be above 0, not {k} and {scale}")
    ratings = [start] * len(cast.players)
    for a, b, outcome in zip(cast.a.tolist(), cast.b.tolist(), cast.outcome.tolist(), strict=True):
        expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / scale))
        change = k * (1 - outcome / 2 - expected)
        ratings[a] += change
        ratings[b] -= change
    return dict(zip(cast.players, ratings, strict=True))
