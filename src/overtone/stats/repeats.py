"""How much a mean varies when the same items are asked again: the noise between runs on the same data.

The spread between the means of R repeats has R − 1 degrees of freedom, so three repeats hardly determine it. In
contrast, the variance within an item can be estimated from every item. Requests are independent of each other, so the
variance of a mean over n answers is the mean variance within items, divided by n.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from overtone.stats import cluster
from overtone.stats.cluster import Interval

NORMAL = 1.959963984540054  # the 97.5 % quantile


def within_variance(values: Sequence[float], items: Sequence[Hashable], clusters: Sequence[Hashable]) -> Interval:
    """Return the mean variance of an item's repeated values, with a 95 % interval clustered by script.

    Only items with two or more values count; `rows` is their number. The interval is a Student interval on the log
    scale, because a variance is positive and its estimates are skewed. It is NaN with fewer than two clusters, and if
    no value ever changes.
    """
    x = np.asarray(values, dtype=np.float64)
    ids, size = cluster.codes(items)
    times = np.bincount(ids, minlength=size)
    means = np.bincount(ids, weights=x, minlength=size) / np.maximum(times, 1)
    squares = np.bincount(ids, weights=(x - means[ids]) ** 2, minlength=size)
    script = dict(zip(ids.tolist(), clusters, strict=True))
    repeated = np.flatnonzero(times > 1)
    variances = squares[repeated] / (times[repeated] - 1)
    mean = cluster.mean(variances, [script[item] for item in repeated.tolist()])
    if not mean.value > 0 or math.isnan(mean.error):
        return Interval(mean.value, mean.error, math.nan, math.nan, mean.rows, mean.clusters)
    reach = math.exp(cluster.student_quantile(0.975, mean.clusters - 1) * mean.error / mean.value)
    return Interval(mean.value, mean.error, mean.value / reach, mean.value * reach, mean.rows, mean.clusters)


def noise_of_mean(variance: Interval, answers: int) -> Interval:
    """Return the standard deviation of a mean over `answers` answers, from the variance within items."""
    if not answers:
        return Interval(math.nan, math.nan, math.nan, math.nan, variance.rows, variance.clusters)
    value, low, high = (
        math.sqrt(x / answers) if x >= 0 else math.nan for x in (variance.value, variance.low, variance.high)
    )
    return Interval(value, math.nan, low, high, variance.rows, variance.clusters)
