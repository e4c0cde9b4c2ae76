"""Agreement between raters: Krippendorff's α for nominal, ordinal, interval and ratio data with missing values.

After Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011). Rows are raters, columns are units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from overtone.stats.bootstrap import resamples
from overtone.stats.cluster import Labels, codes

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """α with its bootstrap interval, all NaN if α is undefined, because no unit has two ratings or the ratings do not
    vary.

    `percent` is the share of agreeing pairs of ratings, `units` the number of units with at least two ratings.
    """

    alpha: float
    low: float
    high: float
    percent: float
    units: int
    raters: int


def alpha(ratings: Sequence[Sequence[float | None]] | Array, level: Level = "nominal") -> float:
    """Return Krippendorff's α: 1 is perfect agreement, 0 is chance, below 0 is worse than chance.

    None and NaN mark missing ratings. Returns NaN if no unit has two ratings or all ratings are the same: α is not
    defined without variation.
    """
    values, counts = _counts(ratings)
    return _alpha(counts, _differences(values, counts, level))


def percent(ratings: Sequence[Sequence[float | None]] | Array) -> float:
    """Return the share of pairs of ratings of the same unit that agree. The weight of a unit is its number of ratings.

    Return NaN without pairs.
    """
    _, counts = _counts(ratings)
    sizes = counts.sum(1)
    if not len(counts):
        return math.nan
    agreeing = (counts * (counts - 1)).sum(1) / (sizes - 1)
    return float(agreeing.sum() / sizes.sum())


def agreement(
    ratings: Sequence[Sequence[float | None]] | Array,
    level: Level = "nominal",
    *,
    seed: int,
    draws: int = 2000,
    confidence: float = 0.95,
    clusters: Labels | None = None,
) -> Agreement:
    """Return α, percent agreement and α's bootstrap interval over units. Draws without variation are left out.

    `clusters` gives the cluster of every unit (column) if units are not independent; then whole clusters are drawn.
    """
    table = _table(ratings)
    values, counts = _counts(table)
    labels = range(table.shape[1]) if clusters is None else clusters
    if len(labels) != table.shape[1]:
        raise ValueError(f"{table.shape[1]} units but {len(labels)} cluster labels")
    ids, count = codes([label for label, used in zip(labels, _rated(table), strict=True) if used])
    drawn = _drawn(values, counts, level, ids, count, seed, draws)
    known = drawn[~np.isnan(drawn)]
    tail = 50 * (1 - confidence)
    low, high = (float(np.percentile(known, p)) for p in (tail, 100 - tail)) if known.size else (math.nan, math.nan)
    value = _alpha(counts, _differences(values, counts, level))
    return Agreement(value, low, high, percent(table), len(counts), len(table))


def _table(ratings: Sequence[Sequence[float | None]] | Array) -> Array:
    rows = [[math.nan if x is None else float(x) for x in row] for row in ratings]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("every rater needs one place per unit; write None where a rating is missing")
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else 0)


def _counts(ratings: Sequence[Sequence[float | None]] | Array) -> tuple[Array, Array]:
    """Return the distinct values, and a table (units, values) of how often each value occurs in each unit with at least
    two ratings.
    """
    table = _table(ratings)
    table = table[:, _rated(table)]
    values = np.unique(table[~np.isnan(table)])
    counts = np.stack([(table == v).sum(0) for v in values], axis=1) if len(values) else np.zeros((0, 0))
    return values, counts.astype(np.float64)


def _rated(table: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the units with at least two ratings."""
    return np.asarray((~np.isnan(table)).sum(0) >= 2)


def _drawn(
    values: Array, counts: Array, level: Level, ids: npt.NDArray[np.intp], count: int, seed: int, draws: int
) -> Array:
    """Return α of every draw of the clusters, computed with a few matrix products instead of a loop over draws."""
    if count < 2:  # the spread cannot be estimated
        return np.empty(0)
    sizes = counts.sum(1)
    weights = 1 / (sizes - 1)
    distances = _differences(values, counts, level)
    pairs = counts @ distances  # (units, values)
    disagreement = (pairs * counts).sum(1) * weights  # disagreement within each unit, if the distances are fixed
    alphas = []
    for times in resamples(count, seed=seed, draws=draws):
        drawn = times[:, ids]  # how often each unit occurs: (draws, units)
        often = drawn @ counts  # how often each value occurs: (draws, values)
        total = often.sum(1)
        if level == "ordinal":  # the distances depend on how often each value occurs, so on the draw
            # Σ n·n′·(m − m′)² over a unit's values = 2·(size·Σ n·m² − (Σ n·m)²), for middles m
            middle = np.cumsum(often, axis=1) - often / 2
            middle -= (middle * often).sum(1, keepdims=True) / total[:, None]
            once, squared = middle @ counts.T, middle**2 @ counts.T  # (draws, units)
            observed = (drawn * weights * 2 * (sizes * squared - once**2)).sum(1)
            expected = 2 * total * (often * middle**2).sum(1) / (total - 1)
        else:
            observed = drawn @ disagreement
            expected = ((often @ distances) * often).sum(1) / (total - 1)
        varied = (often > 0).sum(1) > 1
        ratio = np.divide(observed, expected, out=np.full(len(times), math.nan), where=varied & (expected > 0))
        alphas.append(1 - ratio)
    return np.concatenate(alphas)


def _differences(values: Array, counts: Array, level: Level) -> Array:
    """Return the squared distance between every two values: (values, values)."""
    a, b = values[:, None], values[None, :]
    if level == "nominal":
        return np.asarray(a != b, dtype=np.float64)
    if level == "interval":
        return np.asarray((a - b) ** 2)
    if level == "ratio":
        if (values < 0).any():
            raise ValueError("ratio data must not have values below 0")
        total = np.where(a + b == 0, 1.0, a + b)
        return np.asarray(((a - b) / total) ** 2)
    if level == "ordinal":
        often = counts.sum(0) if len(counts) else np.zeros(len(values))
        middle = np.cumsum(often) - often / 2  # ranks between the middles of two values' ratings
        return np.asarray((middle[:, None] - middle[None, :]) ** 2)
    raise ValueError(f"unknown level of measurement {level!r}; known: nominal, ordinal, interval, ratio")


def _alpha(counts: Array, distances: Array) -> float:
    """Return α = 1 − observed ÷ expected disagreement, from the counts of each value in each unit."""
    sizes = counts.sum(1)
    total = float(sizes.sum())
    if total < 2:
        return math.nan
    weighted = counts / (sizes - 1)[:, None]
    coincidences = weighted.T @ counts - np.diag(weighted.sum(0))
    often = counts.sum(0)
    expected = float(often @ distances @ often) / (total - 1)
    if expected <= 0:
        return math.nan
    return 1 - float((coincidences * distances).sum()) / expected
