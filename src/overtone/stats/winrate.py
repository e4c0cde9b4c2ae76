"""Win rates: how often a player is preferred in its own comparisons. Only fair if all players meet equally often.

A player that met weak players looks strong; `rank.bradley_terry` corrects for that. The rate over opponents helps in
part: every opponent counts the same, however often they met.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

import numpy as np

from overtone.stats import cluster
from overtone.stats.cluster import Interval, Labels
from overtone.stats.votes import TIE, A, Votes

Ties = Literal["against", "half", "left out"]
Over = Literal["comparisons", "opponents"]


def win_rates(
    cast: Votes,
    *,
    clusters: Labels | None = None,
    ties: Ties = "against",
    over: Over = "comparisons",
    level: float = 0.95,
) -> dict[Hashable, Interval]:
    """Return wins ÷ own comparisons of every player, with intervals that respect clusters.

    ties: "against" counts a tie as a comparison that was not won, "half" as half a win, "left out" not at all. over:
    "opponents" averages the rates against each opponent. NaN for a player with only ties if ties are left out.
    """
    labels = list(range(len(cast)) if clusters is None else clusters)
    if len(labels) != len(cast):
        raise ValueError(f"{len(cast)} votes but {len(labels)} cluster labels")
    if ties not in ("against", "half", "left out") or over not in ("comparisons", "opponents"):
        raise ValueError(f"unknown ties={ties!r} (against, half, left out) or over={over!r} (comparisons, opponents)")
    used = np.flatnonzero(cast.outcome != TIE) if ties == "left out" else np.arange(len(cast))
    tie = 0.5 if ties == "half" else 0.0
    found: dict[Hashable, Interval] = {}
    for at, player in enumerate(cast.players):
        rows = used[(cast.a[used] == at) | (cast.b[used] == at)]
        first = cast.a[rows] == at
        won = np.where(first, cast.outcome[rows] == A, cast.outcome[rows] == 2 - A).astype(np.float64)
        won[cast.outcome[rows] == TIE] = tie
        own = [labels[row] for row in rows.tolist()]
        if over == "opponents":
            others = np.where(first, cast.b[rows], cast.a[rows]).tolist()
            found[player] = cluster.mean_of_means(won, others, own, level=level)
        else:
            found[player] = cluster.proportion(won, own, level=level)
    return found
