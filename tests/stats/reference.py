"""Statistics that only tests use: the bootstrap of a mean, and McNemar's exact test."""

from __future__ import annotations

import numpy as np

from overtone.stats import binomial
from overtone.stats.bootstrap import Method, interval, resamples
from overtone.stats.cluster import Interval, Labels, Numbers, codes


def clustered_means(
    values: Numbers,
    clusters: Labels,
    *,
    seed: int,
    draws: int = 2000,
    level: float = 0.95,
    method: Method = "percentile",
) -> Interval:
    """Return the bootstrap interval of a mean from the draws of `resamples`."""
    x = np.asarray(values, dtype=np.float64)
    ids, count = codes(clusters)
    totals = np.stack([np.bincount(ids, weights=x, minlength=count), np.bincount(ids, minlength=count)], axis=1)
    drawn = np.concatenate([times @ totals for times in resamples(count, seed=seed, draws=draws)])  # (draws, 2)
    rest = totals.sum(0) - totals
    means, without = drawn[:, 0] / drawn[:, 1], rest[:, 0] / rest[:, 1]
    return interval(float(x.mean()), means, without, x.size, count, level=level, method=method)


def mcnemar(values_a: Numbers, values_b: Numbers) -> float:
    """Return the p-value of McNemar's exact test for zeros and ones on independent rows."""
    a, b = np.asarray(values_a), np.asarray(values_b)
    only_a, only_b = int((a > b).sum()), int((b > a).sum())
    return min(1.0, 2 * binomial.at_least(max(only_a, only_b), only_a + only_b, 0.5))
