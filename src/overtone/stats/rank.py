"""Rankings from votes between pairs: Bradley–Terry ratings with ties, covariates, and intervals by cluster.

A rating is a log-strength, 0 on average. If two ratings differ by d, and ties are left out, the better player wins with
the odds e^d. `points` converts to the customary scale (400 points are odds of 10). Ratings are fitted by maximum
likelihood (`davidson.py`); if no finite maximum exists, the error names the players that cause it.

Votes on the same script are not independent: pass their `clusters`. The intervals add the votes' influences up within
clusters (the sandwich estimator), which is accurate with about 50 clusters or more. With `raters`, they also add them
up within raters (two-way clustering), so that they hold for other people.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from overtone.stats import davidson
from overtone.stats.cluster import Interval, Labels, Numbers, codes, student_quantile
from overtone.stats.votes import TIE, Votes, check

Array = npt.NDArray[np.float64]
Ties = Literal["davidson", "half"]

POINTS = 400 / math.log(10)  # points per unit of log-strength
_STEPS = 100


@dataclass(frozen=True)
class Rated:
    """A player's rating. `place` is 1 for the best; `places` is the range of ranks that the data allows.

    A player counts as better or worse only if the interval of the difference excludes 0.
    """

    player: Hashable
    rating: Interval
    place: int
    places: tuple[int, int]


@dataclass(frozen=True)
class Ranking:
    """All ratings, best first, with the data needed to compare any two.

    `tie` is ν: two equal players tie with probability ν ÷ (2 + ν). `covariates` are the coefficients, per unit of
    difference.
    """

    rated: tuple[Rated, ...]
    tie: float
    covariates: Mapping[str, Interval]
    players: tuple[Hashable, ...]  # the order of `covariance`
    covariance: Array
    votes: int
    clusters: int
    level: float

    def of(self, player: Hashable) -> Rated:
        """Return one player's rating."""
        for rated in self.rated:
            if rated.player == player:
                return rated
        raise KeyError(player)

    def difference(self, a: Hashable, b: Hashable) -> Interval:
        """Return rating(a) − rating(b). Its interval is narrower than the intervals of both ratings suggest, because
        the errors of the ratings correlate.
        """
        value = self.of(a).rating.value - self.of(b).rating.value
        i, j = self.players.index(a), self.players.index(b)
        spread = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
        error = math.sqrt(max(float(spread), 0.0))
        half = _quantile(self.level, self.clusters) * error
        return Interval(value, error, value - half, value + half, self.votes, self.clusters)

    def chance(self, a: Hashable, b: Hashable) -> tuple[float, float, float]:
        """Return the chances that a wins, that a and b tie, and that b wins, at equal covariates."""
        half = (self.of(a).rating.value - self.of(b).rating.value) / 2
        parts = (math.exp(half), self.tie, math.exp(-half))
        return parts[0] / sum(parts), parts[1] / sum(parts), parts[2] / sum(parts)


def bradley_terry(
    cast: Votes,
    *,
    clusters: Labels | None = None,
    raters: Labels | None = None,
    ties: Ties = "davidson",
    prior: float = 0.0,
    covariates: Mapping[str, Numbers] | None = None,
    side: bool = False,
    level: float = 0.95,
) -> Ranking:
    """Compute Bradley–Terry ratings of all players, best first.

    ties: "davidson" fits how frequent ties are; "half" counts a tie as half a win for both, as many leaderboards do.
    prior: this many imagined wins and as many losses of every player against an average player. 0 is plain maximum
        likelihood, which has no solution if a player never loses; any prior gives one, pulled towards 0.
    covariates: one number per vote, A's minus B's (seconds, words, decibels), held fixed between players. `side` adds
        a general preference for side A.
    Raises ValueError if ratings have no finite value (see `votes.check`), or a covariate fully explains who wins.
    """
    if ties not in ("davidson", "half"):
        raise ValueError(f"unknown ties={ties!r}; known: davidson, half")
    if not 0 < level < 1 or prior < 0 or not math.isfinite(prior):
        raise ValueError("needs a level between 0 and 1 and a prior of at least 0")
    labels = range(len(cast)) if clusters is None else clusters
    if len(labels) != len(cast):
        raise ValueError(f"{len(cast)} votes but {len(labels)} cluster labels")
    named = _columns(cast, covariates or {}, side)
    davidsons = ties == "davidson" and bool((cast.outcome == TIE).any())
    if not prior:
        check(cast, davidson=ties == "davidson")
    elif not len(cast) or (davidsons and (cast.outcome == TIE).all()):
        raise ValueError("every vote is a tie, or there are no votes; a ranking needs wins")
    # covariates on different scales would make Newton's steps ill-conditioned
    scales = {name: float(np.sqrt((x**2).mean())) or 1.0 for name, x in named.items()}
    x = np.stack([named[name] / scales[name] for name in named], axis=1) if named else np.empty((len(cast), 0))
    cells = davidson.cells(cast, x, tied=davidsons)
    start = np.zeros((1, cells.parameters))
    seen = davidson.counts(cells)[None]
    solution, done = davidson.solve(cells, seen, start, prior=prior, steps=_STEPS)
    if not done[0]:
        raise ValueError(_unsettled(named))
    if raters is not None and len(raters) != len(cast):
        raise ValueError(f"{len(cast)} votes but {len(raters)} raters")
    clustered = _clusters(labels, raters)
    count = min(number for _, number, sign in clustered if sign > 0)
    n = cells.players
    project = np.eye(cells.parameters)
    project[:n, :n] -= 1 / n  # ratings are 0 on average
    estimate = solution[0] @ project
    parts = [sign * _sandwich(cast, cells, solution, seen, ids, number, prior) for ids, number, sign in clustered]
    spread = project @ _not_negative(np.sum(parts, axis=0), len(parts)) @ project.T
    errors = np.sqrt(np.maximum(np.diag(spread), 0))
    half = _quantile(level, count) * errors
    low, high = estimate - half, estimate + half
    often = np.bincount(cast.a, minlength=n) + np.bincount(cast.b, minlength=n)
    places = _places(estimate[:n], spread[:n, :n], _quantile(level, count))
    order = np.argsort(-estimate[:n], kind="stable")

    def interval(at: int, rows: int, unit: float = 1.0) -> Interval:
        value, error, lower, upper = (float(v[at]) / unit for v in (estimate, errors, low, high))
        return Interval(value, error, lower, upper, rows, count)

    return Ranking(
        rated=tuple(
            Rated(cast.players[at], interval(at, int(often[at])), place, places[at])
            for place, at in enumerate(order.tolist(), start=1)
        ),
        tie=math.exp(estimate[-1]) if davidsons else 0.0,
        covariates={name: interval(n + at, len(cast), scales[name]) for at, name in enumerate(named)},
        players=cast.players,
        covariance=spread[:n, :n],
        votes=len(cast),
        clusters=count,
        level=level,
    )


def _clusters(labels: Labels, raters: Labels | None) -> list[tuple[npt.NDArray[np.intp], int, int]]:
    """Return (cluster of each vote, number of clusters, sign): by script, plus by rater, minus by both together."""
    scripts = (*codes(labels), 1)
    if raters is None or len(set(raters)) < 2:
        return [scripts]
    both = list(zip(labels, raters, strict=True))
    return [scripts, (*codes(raters), 1), (*codes(both), -1)]


def _not_negative(spread: Array, parts: int) -> Array:
    """Return a covariance without negative variances, which a difference of estimates can have."""
    if parts == 1 or not np.isfinite(spread).all():
        return spread
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    return np.asarray(vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T)


def _columns(cast: Votes, covariates: Mapping[str, Numbers], side: bool) -> dict[str, Array]:
    named: dict[str, Array] = {"side": np.ones(len(cast))} if side else {}
    for name, values in covariates.items():
        x = np.asarray(values, dtype=np.float64)
        if x.shape != (len(cast),) or not np.isfinite(x).all():
            raise ValueError(f"covariate {name!r} needs one finite number for each of the {len(cast)} votes")
        if name in named:
            raise ValueError("a covariate is called 'side' although side=True; rename the covariate")
        named[name] = x
        if not x.any():
            raise ValueError(f"covariate {name!r} is 0 in every vote; leave it out")
    return named


def _sandwich(
    cast: Votes,
    cells: davidson.Cells,
    solution: Array,
    seen: Array,
    ids: npt.NDArray[np.intp],
    count: int,
    prior: float,
) -> Array:
    """Compute bread · meat · bread: the votes' influences, added up within clusters before they are squared (CR1)."""
    if count < 2:
        return np.full((cells.parameters, cells.parameters), math.nan)
    here = davidson.climb(cells, seen, solution, prior)
    bread = np.linalg.inv(davidson.held(cells, here.curvature, prior)[0])
    p = davidson.chances(cells, solution)[0]
    cell, outcome = cells.place // 3, cells.place % 3
    off = (1 - outcome) / 2 - (p[cell, 0] - p[cell, 2]) / 2
    n, k = cells.players, cells.x.shape[1]
    influence = np.zeros((count, cells.parameters))
    first, second = np.minimum(cast.a, cast.b), np.maximum(cast.a, cast.b)  # the side that `cells` counts as first
    for at, sign in ((first, 1), (second, -1)):
        influence[:, :n] += np.bincount(ids * n + at, weights=sign * off, minlength=count * n).reshape(count, n)
    for c in range(k):
        influence[:, n + c] = np.bincount(ids, weights=off * cells.x[cell, c], minlength=count)
    if cells.tied:
        influence[:, -1] = np.bincount(ids, weights=(outcome == TIE) - p[cell, TIE], minlength=count)
    influence -= influence.mean(0)  # their sum is the influence of the prior, or 0
    return np.asarray(bread @ (count / (count - 1) * influence.T @ influence) @ bread)


def _places(rating: Array, covariance: Array, cut: float) -> list[tuple[int, int]]:
    variance = np.diag(covariance)
    errors = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2 * covariance, 0))
    with np.errstate(invalid="ignore"):
        worse = rating[:, None] - rating[None, :] > cut * errors  # the column's player is worse than the row's
    np.fill_diagonal(worse, False)
    return [(1 + int(worse[:, at].sum()), len(rating) - int(worse[at].sum())) for at in range(len(rating))]


def _quantile(level: float, clusters: int) -> float:
    return student_quantile(0.5 + level / 2, clusters - 1) if clusters > 1 else math.nan


def _unsettled(named: Mapping[str, Array]) -> str:
    if named:
        return (
            f"no convergence: a covariate ({', '.join(named)}) fully explains who wins, or repeats another "
            "or the players themselves; leave it out, or give a prior"
        )
    return "no convergence of the ratings; collect more votes, or give a prior"
