"""Elo ratings: one pass over the votes in the order they were cast.

They depend on that order: the same votes shuffled give other ratings, and later votes count more. They have no
interval of their own. Kept because leaderboards show them; `rank.bradley_terry` is the estimate to quote.
"""

from __future__ import annotations

from collections.abc import Hashable

from overtone.stats.votes import Votes


def elo(cast: Votes, *, k: float = 4.0, scale: float = 400.0, start: float = 1000.0) -> dict[Hashable, float]:
    """The rating of every player after the last vote. A tie is half a win; `scale` points are odds of 10 to 1."""
    if k <= 0 or scale <= 0:
        raise ValueError(f"k and scale are above 0, not {k} and {scale}")
    ratings = [start] * len(cast.players)
    for a, b, outcome in zip(cast.a.tolist(), cast.b.tolist(), cast.outcome.tolist(), strict=True):
        expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / scale))
        change = k * (1 - outcome / 2 - expected)
        ratings[a] += change
        ratings[b] -= change
    return dict(zip(cast.players, ratings, strict=True))
