"""Means of systems that people rated: crossed effects of raters and scripts.

Every rater meets many scripts and every script many raters, so two ratings share a rater, a script, or both. The means
are generalised least squares with both effects, so that a strict rater or a hard script that one system happened to get
does not count against it. The variances of the effects come from moments (Gao and Owen 2017). The intervals add the
ratings' influences up within raters and within scripts (Cameron, Gelbach and Miller 2011), so they stay valid if the
effects are not equal for all systems.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overtone.stats.beta import student_cdf
from overtone.stats.cluster import Interval, Labels, Numbers, codes, student_quantile

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Components:
    """The variance of one rating: between raters, between scripts, and the rest. None is below 0."""

    raters: float
    scripts: float
    rest: float


@dataclass(frozen=True)
class Severity:
    """How much higher (positive) or lower a rater rates than the average rater, on the scale of the ratings.

    `value` is shrunk towards 0 by the rater's number of ratings; `error` is its standard error.
    """

    rater: Hashable
    ratings: int
    value: float
    error: float


@dataclass(frozen=True)
class SystemMeans:
    """The mean of every system, with the data needed to compare any two.

    Intervals are NaN with fewer than two scripts. With one rater they hold for this rater alone.
    """

    systems: tuple[Hashable, ...]
    values: Array
    rows: Codes  # ratings of each system
    by_script: Array  # influences (systems, scripts)
    by_rater: Array
    by_cell: Array
    met_scripts: npt.NDArray[np.bool_]  # (systems, scripts): whether the system was rated on the script
    met_raters: npt.NDArray[np.bool_]
    components: Components
    severities: tuple[Severity, ...]
    level: float

    def of(self, system: Hashable) -> Interval:
        """Return the mean of a system with its interval."""
        weights = np.zeros(len(self.systems))
        weights[self.systems.index(system)] = 1.0
        return self._interval(weights, int(self.rows[self.systems.index(system)]))

    def difference(self, a: Hashable, b: Hashable) -> Interval:
        """Return the mean of `a` minus the mean of `b`. Raters and scripts that both share cancel out."""
        weights = np.zeros(len(self.systems))
        i, j = self.systems.index(a), self.systems.index(b)
        weights[i] += 1.0
        weights[j] -= 1.0
        return self._interval(weights, int(self.rows[i] + self.rows[j]))

    def p_value(self, a: Hashable, b: Hashable | None = None) -> float | None:
        """Return the two-sided p-value of the difference of two systems, or, for one system, of its mean being 0.

        Return None without an interval, or if nothing varies.
        """
        found = self.of(a) if b is None else self.difference(a, b)
        if not found.error > 0:  # also NaN
            return None
        df = self._freedom([self.systems.index(one) for one in (a, b) if one is not None])
        return float(2 * (1 - student_cdf(abs(found.value) / found.error, df)))

    def _freedom(self, systems: Sequence[int]) -> int:
        scripts, raters = (int(part[systems].any(axis=0).sum()) for part in (self.met_scripts, self.met_raters))
        return (scripts if raters < 2 else min(scripts, raters)) - 1

    def _interval(self, weights: Array, rows: int) -> Interval:
        value = float(weights @ self.values)
        rated = weights != 0
        scripts, raters = (int(part[rated].any(axis=0).sum()) for part in (self.met_scripts, self.met_raters))
        if scripts < 2:
            return Interval(value, math.nan, math.nan, math.nan, rows, scripts)
        one = raters < 2
        script, rater, cell = (
            _squared(weights, part, count)
            for part, count in ((self.by_script, scripts), (self.by_rater, raters), (self.by_cell, scripts * raters))
        )
        error = math.sqrt(script if one else max(script, rater, script + rater - cell))
        half = student_quantile(0.5 + self.level / 2, self._freedom(np.flatnonzero(rated).tolist())) * error
        return Interval(value, error, value - half, value + half, rows, scripts)


def system_means(
    values: Numbers, systems: Labels, raters: Labels, scripts: Labels, *, level: float = 0.95
) -> SystemMeans:
    """Return the mean of every system in the order of first use. Raises ValueError for lists of different lengths."""
    y = np.asarray(values, dtype=np.float64)
    if not len(systems) == len(raters) == len(scripts) == y.size:
        raise ValueError(f"{y.size} ratings, {len(systems)} systems, {len(raters)} raters, {len(scripts)} scripts")
    if not y.size or not np.isfinite(y).all():
        raise ValueError("needs at least one rating, and only finite numbers")
    system, count = codes(systems)
    rater, raters_n = codes(raters)
    script, scripts_n = codes(scripts)
    x = np.eye(count)[system]
    found = components(y - (np.bincount(system, y) / np.bincount(system))[system], rater, script)
    z = np.concatenate([np.eye(raters_n)[rater], np.eye(scripts_n)[script]], axis=1)
    spread = np.r_[np.full(raters_n, found.raters), np.full(scripts_n, found.scripts)]
    rest = max(found.rest, 1e-6 * float(y.var()), 1e-12)
    used = spread > 0
    inner = z[:, used].T @ z[:, used] + np.diag(rest / spread[used])
    solved = np.linalg.solve(inner, z[:, used].T @ np.c_[x, y]) if used.any() else np.zeros((0, count + 1))
    whitened = (np.c_[x, y] - z[:, used] @ solved) / rest  # V⁻¹ X and V⁻¹ y
    project = np.linalg.solve(x.T @ whitened[:, :count], whitened[:, :count].T)  # (systems, ratings)
    means = project @ y
    influence = project * (y - means[system])
    cell, cells_n = codes(list(zip(rater.tolist(), script.tolist(), strict=True)))
    return SystemMeans(
        tuple(dict.fromkeys(systems)),
        means,
        np.bincount(system, minlength=count),
        _summed(influence, script, scripts_n),
        _summed(influence, rater, raters_n),
        _summed(influence, cell, cells_n),
        _met(system, script, count, scripts_n),
        _met(system, rater, count, raters_n),
        found,
        _severities(list(dict.fromkeys(raters)), rater, found.raters, z, used, inner, rest, y - means[system]),
        level,
    )


def two_way_error(influence: Array, raters: Labels, scripts: Labels) -> float:
    """Return the standard error of a sum of rows' influences, clustered by rater and by script; NaN with fewer than
    two scripts. With one rater it is clustered by script alone."""
    (rater, raters_n), (script, scripts_n) = codes(raters), codes(scripts)
    if scripts_n < 2:
        return math.nan
    cell, cells_n = codes(list(zip(rater.tolist(), script.tolist(), strict=True)))
    one = np.ones(1)
    by_script, by_rater, by_cell = (
        _squared(one, np.bincount(ids, influence, minlength=n).astype(np.float64)[None], n)
        for ids, n in ((script, scripts_n), (rater, raters_n), (cell, cells_n))
    )
    return math.sqrt(by_script if raters_n < 2 else max(by_script, by_rater, by_script + by_rater - by_cell))


def components(residuals: Array, raters: Codes, items: Codes) -> Components:
    """Estimate variances from moments: exact for balanced data, unbiased for any. Negative estimates become 0."""
    n = residuals.size
    if n < 2:
        return Components(0.0, 0.0, 0.0)
    sizes = [np.bincount(ids).astype(np.float64) for ids in (raters, items)]
    within = []  # Σ over groups of the squared deviations from the group's mean
    for ids, size in zip((raters, items), sizes, strict=True):
        mean = np.bincount(ids, residuals) / np.maximum(size, 1)
        within.append(float(((residuals - mean[ids]) ** 2).sum()))
    total = n * float(((residuals - residuals.mean()) ** 2).sum())
    squares = [float((size**2).sum()) for size in sizes]
    groups = [float((size > 0).sum()) for size in sizes]
    # rows: E[within raters], E[within items], E[total]; columns: raters, items, rest
    table = np.array(
        [
            [0.0, n - groups[0], n - groups[0]],
            [n - groups[1], 0.0, n - groups[1]],
            [n**2 - squares[0], n**2 - squares[1], n**2 - n],
        ]
    )
    found = np.linalg.lstsq(table, np.array([*within, total]), rcond=None)[0]
    a, b, rest = (max(0.0, float(value)) for value in found)
    return Components(a, b, rest)


def _severities(
    names: list[Hashable], rater: Codes, variance: float, z: Array, used: npt.NDArray[np.bool_], inner: Array,
    rest: float, residuals: Array,
) -> tuple[Severity, ...]:  # fmt: skip
    often = np.bincount(rater, minlength=len(names)).tolist()
    if variance <= 0:
        return tuple(Severity(name, n, 0.0, 0.0) for name, n in zip(names, often, strict=True))
    covariance = np.linalg.inv(inner)
    effects = covariance @ (z[:, used].T @ residuals)
    errors = np.sqrt(np.maximum(np.diag(covariance) * rest, 0.0))
    return tuple(
        Severity(name, n, float(effects[at]), float(errors[at]))
        for at, (name, n) in enumerate(zip(names, often, strict=True))
    )


def _summed(influence: Array, ids: Codes, count: int) -> Array:
    return np.stack([np.bincount(ids, row, minlength=count) for row in influence])


def _met(system: Codes, ids: Codes, systems: int, count: int) -> npt.NDArray[np.bool_]:
    met = np.zeros((systems, count), dtype=np.bool_)
    met[system, ids] = True
    return met


def _squared(weights: Array, part: Array, count: int) -> float:
    """Return the squared sums of influences over `count` clusters, with the correction for few clusters."""
    sums = weights @ part
    return float(sums @ sums) * (count / (count - 1) if count > 1 else 1.0)
