"""Means, proportions and ratios with standard errors and intervals that respect clusters.

Replies to the same script are not independent: a script that is easy in one style is easy in the others. Every function
here takes one cluster label per row and sums the rows' influences within each cluster before squaring the sums
(linearisation, the sandwich estimator known as CR1), so that ten copies of a row count as one row. If every row is its
own cluster, the formulas are the textbook ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = Sequence[float] | npt.NDArray[np.float64]
Labels = Sequence[Hashable]


@dataclass(frozen=True)
class Interval:
    """A value with its cluster-robust standard error and confidence interval.

    `error`, `low` and `high` are NaN with fewer than two clusters, because the spread cannot be estimated then.
    """

    value: float
    error: float
    low: float
    high: float
    rows: int
    clusters: int


def mean(values: Numbers, clusters: Labels, *, level: float = 0.95) -> Interval:
    """Return the mean of `values`, with a Student interval of (clusters − 1) degrees of freedom."""
    x, ids, count = _check(values, clusters)
    if x.size == 0:
        return _nothing()
    centre = float(x.mean())
    error = _clustered_error((x - centre) / x.size, ids, count)
    return student(centre, error, x.size, count, level)


def proportion(values: Numbers, clusters: Labels, *, level: float = 0.95) -> Interval:
    """Return the mean of zeros and ones (or of shares between them), with a Wilson interval that stays within 0 and 1.

    Wilson's formula uses the effective number of rows p(1−p)/error², at most the actual number. If all rows agree, the
    spread cannot be estimated, and each cluster counts as one row.
    """
    x, ids, count = _check(values, clusters)
    if x.size == 0:
        return _nothing()
    if x.min() < 0 or x.max() > 1:
        raise ValueError("the values of a proportion must be between 0 and 1")
    p = float(x.mean())
    return wilson(p, _clustered_error((x - p) / x.size, ids, count), x.size, count, level)


def wilson(p: float, error: float, rows: int, clusters: int, level: float) -> Interval:
    """Return the Wilson interval that `proportion` describes, from a share and its clustered error."""
    if clusters < 2:
        return Interval(p, math.nan, math.nan, math.nan, rows, clusters)
    effective = min(p * (1 - p) / error**2, float(rows)) if error > 0 else float(clusters)
    z = student_quantile(0.5 + level / 2, clusters - 1)
    denominator = 1 + z**2 / effective
    middle = (p + z**2 / (2 * effective)) / denominator
    half = z / denominator * math.sqrt(p * (1 - p) / effective + z**2 / (4 * effective**2))
    return Interval(p, error, max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half)), rows, clusters)


def difference(values: Numbers, first: Sequence[bool], clusters: Labels, *, level: float = 0.95) -> Interval:
    """Return the proportion among the `first` rows minus the proportion among the other rows. A cluster may have both.

    The squared widths of the two Wilson intervals are added (Newcombe's method 10), and the covariance of the two
    proportions through common clusters is subtracted. So the interval has a width even if all rows of a side agree. NaN
    if either side has fewer than two clusters.
    """
    x, ids, count = _check(values, clusters)
    here = np.asarray(first, dtype=bool)
    if here.shape != x.shape:
        raise ValueError(f"{x.size} values but {here.size} sides")
    sides = [proportion(x[at], ids[at].tolist(), level=level) for at in (here, ~here)]
    pulls = [
        np.bincount(ids, weights=np.where(at, x - side.value, 0.0) / max(side.rows, 1), minlength=count)
        for at, side in zip((here, ~here), sides, strict=True)
    ]
    return newcombe(sides[0], sides[1], float(pulls[0] @ pulls[1]), x.size, count)


def newcombe(a: Interval, b: Interval, shared: float, rows: int, clusters: int) -> Interval:
    """Return the interval that `difference` describes, from the intervals of both sides. `shared` is the sum over
    clusters of the product of the two sides' influences.
    """
    if math.isnan(a.error) or math.isnan(b.error):
        return Interval(a.value - b.value, math.nan, math.nan, math.nan, rows, clusters)
    shared *= clusters / (clusters - 1)
    together = max(-1.0, min(1.0, shared / (a.error * b.error))) if a.error > 0 and b.error > 0 else 0.0

    def reach(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one**2 + other**2 - 2 * together * one * other))

    value = a.value - b.value
    error = math.sqrt(max(0.0, a.error**2 + b.error**2 - 2 * shared))
    low, high = reach(a.value - a.low, b.high - b.value), reach(a.high - a.value, b.value - b.low)
    return Interval(value, error, max(-1.0, value - low), min(1.0, value + high), rows, clusters)


def ratio(numerators: Numbers, denominators: Numbers, clusters: Labels, *, level: float = 0.95) -> Interval:
    """Return Σ numerators ÷ Σ denominators (a corpus error rate). By linearisation, a row's influence is (n − R·d) ÷
    Σd.
    """
    top, ids, count = _check(numerators, clusters)
    bottom = np.asarray(denominators, dtype=np.float64)
    if bottom.shape != top.shape:
        raise ValueError(f"{top.size} numerators but {bottom.size} denominators")
    total = float(bottom.sum())
    if top.size == 0 or total == 0:
        return _nothing()
    value = float(top.sum()) / total
    error = _clustered_error((top - value * bottom) / total, ids, count)
    return student(value, error, top.size, count, level)


def mean_of_means(values: Numbers, strata: Labels, clusters: Labels, *, level: float = 0.95) -> Interval:
    """Return the unweighted mean of the strata's means: each task counts the same, however many questions it has."""
    x, ids, count = _check(values, clusters)
    if len(strata) != x.size:
        raise ValueError(f"{x.size} values but {len(strata)} strata")
    if x.size == 0:
        return _nothing()
    within, strata_count = codes(strata)
    sizes = np.bincount(within, minlength=strata_count)
    means = np.bincount(within, weights=x, minlength=strata_count) / sizes
    influence = (x - means[within]) / (sizes[within] * strata_count)
    return student(float(means.mean()), _clustered_error(influence, ids, count), x.size, count, level)


@functools.lru_cache(maxsize=10_000)
def student_quantile(p: float, df: int) -> float:
    """Return the quantile of Student's t, after Hill (1970): exact for 1 and 2 degrees of freedom, else 5 digits."""
    if not 0.5 < p < 1 or df < 1:
        raise ValueError(f"needs 0.5 < p < 1 and df >= 1, not p={p}, df={df}")
    tail = 2 * (1 - p)
    if df == 1:
        return 1 / math.tan(tail * math.pi / 2)
    if df == 2:
        return math.sqrt(2 / (tail * (2 - tail)) - 2)
    a = 1 / (df - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * df
    y = (d * tail) ** (2 / df)
    if y > 0.05 + a:
        x = -normal_quantile(p)
        y = x**2
        if df < 5:
            c += 0.3 * (df - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y**2)
    else:
        y = ((1 / (((df + 6) / (df * y) - 0.089 * d - 0.822) * (df + 2) * 3) + 0.5 / (df + 4)) * y - 1) * (df + 1) / (
            df + 2
        ) + 1 / y
    return math.sqrt(df * y)


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def clustered_error(influence: npt.NDArray[np.float64], clusters: Labels) -> float:
    """Return the standard error of a sum of rows' influences, clustered; NaN with fewer than two clusters."""
    ids, count = codes(clusters)
    return _clustered_error(influence, ids, count)


def codes(labels: Labels) -> tuple[npt.NDArray[np.intp], int]:
    """Return cluster labels as numbers from 0 up, in order of first use, and the number of clusters."""
    known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.fromiter(map(known.__getitem__, labels), dtype=np.intp, count=len(labels)), len(known)


def _check(values: Numbers, clusters: Labels) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp], int]:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or len(clusters) != x.size:
        raise ValueError(f"{x.size} values but {len(clusters)} cluster labels")
    if not np.isfinite(x).all():
        raise ValueError("a value is not a finite number; leave unscored rows out before averaging")
    ids, count = codes(clusters)
    return x, ids, count


def _clustered_error(influence: npt.NDArray[np.float64], ids: npt.NDArray[np.intp], count: int) -> float:
    if count < 2:
        return math.nan
    sums = np.bincount(ids, weights=influence, minlength=count)
    return math.sqrt(count / (count - 1) * float(sums @ sums))


def student(value: float, error: float, rows: int, clusters: int, level: float) -> Interval:
    """Return the Student interval of a value, given its clustered error."""
    if math.isnan(error):
        return Interval(value, math.nan, math.nan, math.nan, rows, clusters)
    half = student_quantile(0.5 + level / 2, clusters - 1) * error
    return Interval(value, error, value - half, value + half, rows, clusters)


def _nothing() -> Interval:
    return Interval(math.nan, math.nan, math.nan, math.nan, 0, 0)
