"""Win rates: how often a player is preferred in its own comparisons. Only fair if all players meet equally often.

A player that met weak players looks strong; `rank.bradley_terry` corrects for that.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

import numpy as np
import numpy.typing as npt

from overtone.stats import cluster
from overtone.stats.cluster import Interval, Labels
from overtone.stats.crossed import two_way_error
from overtone.stats.votes import TIE, A, Votes

Ties = Literal["against", "half"]
Array = npt.NDArray[np.float64]


def win_rates(
    cast: Votes,
    *,
    clusters: Labels | None = None,
    raters: Labels | None = None,
    ties: Ties = "against",
    level: float = 0.95,
) -> dict[Hashable, Interval]:
    """Return player → wins ÷ the player's comparisons, with intervals that respect clusters, and with `raters`, votes
    of the same rater.

    ties: "against" counts a tie as a comparison that was not won, "half" as half a win.
    """
    labels = list(range(len(cast)) if clusters is None else clusters)
    if len(labels) != len(cast):
        raise ValueError(f"{len(cast)} votes but {len(labels)} cluster labels")
    if ties not in ("against", "half"):
        raise ValueError(f"unknown ties={ties!r}; known: against, half")
    tie = 0.5 if ties == "half" else 0.0
    rates: dict[Hashable, Interval] = {}
    for at, player in enumerate(cast.players):
        rows = np.flatnonzero((cast.a == at) | (cast.b == at))
        first = cast.a[rows] == at
        won = np.where(first, cast.outcome[rows] == A, cast.outcome[rows] == 2 - A).astype(np.float64)
        won[cast.outcome[rows] == TIE] = tie
        rates[player] = share(won, [labels[row] for row in rows.tolist()], _of(raters, rows), level=level)
    return rates


def share(values: Array, clusters: Labels, raters: Labels | None, *, level: float = 0.95) -> Interval:
    """Return the mean of shares with a Wilson interval that respects clusters and, if given, raters."""
    if raters is None or not values.size:
        return cluster.proportion(values, clusters, level=level)
    p = float(values.mean())
    error = two_way_error((values - p) / values.size, raters, clusters)
    count = min(len(set(clusters)), len(set(raters)))
    return cluster.wilson(p, error, values.size, len(set(clusters)) if count < 2 else count, level)


def _of(labels: Labels | None, rows: npt.NDArray[np.intp]) -> list[Hashable] | None:
    return None if labels is None else [labels[row] for row in rows.tolist()]
