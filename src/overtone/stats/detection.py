"""Signal detection: separate a listener's ability to detect a signal from the habit of saying yes.

Both affect the hit rate H and the false-alarm rate F. The ability is the sensitivity d′ = z(H) − z(F). The habit is
the criterion c = −(z(H) + z(F)) ÷ 2; below 0, the listener says "something" readily. Rates of 0 and 1 have no z, so all
rates are corrected log-linearly, (n + ½) ÷ (N + 1) (Hautus 1995).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from overtone.stats import cluster
from overtone.stats.cluster import Interval, Labels, Numbers

_NORMAL = NormalDist()


@dataclass(frozen=True)
class Detection:
    """The rates, d′ and c of a listener, with 95 % intervals. `d_prime` is 0 for a listener who guesses."""

    hit_rate: Interval
    false_alarm_rate: Interval
    d_prime: Interval
    criterion: Interval


def corrected(count: float, of: int) -> float:
    """Return a rate that is never 0 or 1: (count + ½) ÷ (of + 1)."""
    return (count + 0.5) / (of + 1)


def d_prime(hit_rate: float, false_alarm_rate: float) -> float:
    """Return d′ = z(H) − z(F), for rates strictly between 0 and 1."""
    return cluster.normal_quantile(hit_rate) - cluster.normal_quantile(false_alarm_rate)


def criterion(hit_rate: float, false_alarm_rate: float) -> float:
    """Return the criterion −(z(H) + z(F)) ÷ 2, for rates strictly between 0 and 1."""
    return -(cluster.normal_quantile(hit_rate) + cluster.normal_quantile(false_alarm_rate)) / 2


def detect(said: Numbers, signal: Sequence[bool], clusters: Labels, *, level: float = 0.95) -> Detection:
    """Compute rates, d′ and c from one row per trial: whether the listener said "something" (`said`), whether there was
    a signal (`signal`), and the cluster.

    The intervals of d′ and c come from the delta method with influences summed by cluster. The variance is at least
    that of independent trials; otherwise few clusters, or rows that all agree, would claim too much certainty.
    """
    x = np.asarray(said, dtype=np.float64)
    there = np.asarray(signal, dtype=bool)
    if x.ndim != 1 or there.shape != x.shape or len(clusters) != x.size:
        raise ValueError(f"{x.size} answers, {there.size} signals and {len(clusters)} cluster labels do not match")
    labels = list(clusters)
    rates = [cluster.proportion(x[at], [labels[i] for i in np.flatnonzero(at)], level=level) for at in (there, ~there)]
    if not there.any() or there.all():
        nothing = Interval(math.nan, math.nan, math.nan, math.nan, x.size, len(set(labels)))
        return Detection(rates[0], rates[1], nothing, nothing)
    pulls: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    smooth: list[float] = []
    variances: list[float] = []
    for at in (there, ~there):
        n = int(at.sum())
        rate = corrected(float(x[at].sum()), n)
        slope = 1 / _NORMAL.pdf(cluster.normal_quantile(rate))  # slope of z at this rate
        pulls.append(np.where(at, (x - x[at].mean()) / n * slope, 0.0))
        smooth.append(rate)
        variances.append(rate * (1 - rate) / n * slope**2)
    d = _interval(d_prime(*smooth), pulls[0] - pulls[1], sum(variances), labels, level)
    c = _interval(criterion(*smooth), (pulls[0] + pulls[1]) / 2, sum(variances) / 4, labels, level)
    return Detection(rates[0], rates[1], d, c)


def _interval(
    value: float, pull: np.ndarray[tuple[int], np.dtype[np.float64]], least: float, labels: Labels, level: float
) -> Interval:
    error = cluster.clustered_error(pull, labels)
    count = len(set(labels))
    if math.isnan(error):
        return Interval(value, math.nan, math.nan, math.nan, pull.size, count)
    error = max(error, math.sqrt(least))
    half = cluster.student_quantile(0.5 + level / 2, count - 1) * error
    return Interval(value, error, value - half, value + half, pull.size, count)
