"""Bootstrap intervals over clusters, for any statistic.

A draw takes as many whole clusters as the data has, with replacement, so rows of one script stay together. With the
same seed, number of draws and clusters, every function here uses the same draws, so two measures of the same rows can
be compared draw by draw. `error` is the standard deviation over the draws. Intervals are NaN with fewer than two
clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Interval, Labels, codes, normal_quantile

Method = Literal["percentile", "bca"]
Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

_CELLS = 200_000  # size of a block of the matrix of drawn clusters: small enough for a processor's cache


def clustered(
    statistic: Callable[[Rows], float],
    clusters: Labels,
    *,
    seed: int,
    draws: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the percentile interval of `statistic`. It takes an array of row numbers, in which a row may occur several
    times. Draws in which the statistic is NaN (no variation) are left out.
    """
    if draws < 2 or not 0 < level < 1:
        raise ValueError(f"needs at least two draws and a level between 0 and 1, not {draws} and {level}")
    ids, count = codes(clusters)
    order = np.argsort(ids, kind="stable")
    sizes = np.bincount(ids, minlength=count)
    starts = np.cumsum(sizes) - sizes
    value = float(statistic(np.arange(ids.size))) if ids.size else math.nan
    if count < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan, math.nan, ids.size, count)

    def rows_of(drawn: Rows) -> Rows:
        lengths = sizes[drawn]
        first = np.cumsum(lengths) - lengths
        return order[np.repeat(starts[drawn] - first, lengths) + np.arange(int(lengths.sum()))]

    rng = np.random.default_rng(seed)
    drawn = np.array([statistic(rows_of(rng.integers(count, size=count))) for _ in range(draws)], dtype=np.float64)
    return interval(value, drawn, np.empty(0), ids.size, count, level=level)


def resamples(count: int, *, seed: int, draws: int) -> Iterator[Array]:
    """Yield tables (draws, clusters) of how often each of `count` clusters is drawn, one block of draws at a time."""
    rng = np.random.default_rng(seed)
    block = max(1, _CELLS // count)
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        drawn = rng.integers(count, size=(rows, count))
        drawn += (np.arange(rows) * count)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)


def interval(
    value: float, drawn: Array, without: Array, rows: int, clusters: int, *, level: float, method: Method = "percentile"
) -> Interval:
    """Return the interval of `value` from `drawn`, its values in the draws.

    "bca" corrects the percentiles for bias and skewness. It needs `without`, the values without each cluster in turn.
    """
    known = drawn[~np.isnan(drawn)]
    if math.isnan(value) or known.size < 2:
        return Interval(value, math.nan, math.nan, math.nan, rows, clusters)
    tails = (0.5 - level / 2, 0.5 + level / 2)
    if method == "bca":
        tails = _bca(value, known, without[~np.isnan(without)], tails)
    low, high = (float(edge) for edge in np.quantile(known, tails))
    return Interval(value, float(known.std(ddof=1)), low, high, rows, clusters)


def _bca(value: float, drawn: Array, without: Array, tails: tuple[float, float]) -> tuple[float, float]:
    """Return the corrected tails: the quantiles of the draws to use, with Efron's bias correction and acceleration
    (1987)."""
    close = 1e-12 * max(1.0, abs(value))  # means of the same rows in another order differ in the last digit
    below = float((drawn < value - close).mean() + (np.abs(drawn - value) <= close).mean() / 2)
    if not 0 < below < 1 or without.size < 2:
        return tails
    shift = normal_quantile(below)
    pull = without.mean() - without
    spread = float((pull**2).sum())
    skew = float((pull**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    z = [shift + normal_quantile(tail) for tail in tails]
    low, high = (0.5 * math.erfc(-(shift + x / (1 - skew * x)) / math.sqrt(2)) for x in z)
    return low, high
