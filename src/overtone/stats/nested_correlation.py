"""Correlations of grouped data: rows within groups, cell means within groups, and correlations across groups.

For a correlation within groups, each group's mean is subtracted first (for ranks, each group is ranked by itself), so
that differences between groups do not count. Intervals respect clusters that cut across groups, as scripts cut across
models.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from overtone.stats import bootstrap
from overtone.stats.cluster import Interval, Labels, Numbers, codes, normal_quantile, student_quantile
from overtone.stats.correlation import STILL

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

_NONE = 1e-12  # relative to the sum of squares of a variable: a smaller spread is rounding noise
_ALMOST = 1 - 1e-9  # the largest correlation whose atanh is used, so that it stays finite
_CELLS = 4_000_000  # number of comparisons at once when means are ranked


def pearson(
    a: Numbers,
    b: Numbers,
    groups: Labels | Codes,
    clusters: Labels | Codes,
    *,
    seed: int,
    draws: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Return Pearson's r within groups. The interval (BCa) resamples clusters and centres each draw's groups again."""
    x, y, g, c = _rows(a, b, groups, clusters)
    count, many = int(c.max()) + 1 if c.size else 0, int(g.max()) + 1 if g.size else 0
    if not count:
        return Interval(math.nan, math.nan, math.nan, math.nan, 0, 0)
    x, y = x - _means(x, g)[g], y - _means(y, g)[g]  # centred once before, so that the squares keep small differences
    x, y = x / (np.abs(x).max() or 1.0), y / (np.abs(y).max() or 1.0)
    place, size = c * many + g, count * many
    parts = [np.bincount(place, weights=w, minlength=size) for w in (np.ones_like(x), x, y, x * x, y * y, x * y)]
    totals = np.stack(parts, axis=1).reshape(count, many * 6)

    def coefficient(sums: Array) -> Array:
        n, sx, sy, sxx, syy, sxy = np.moveaxis(sums.reshape(len(sums), many, 6), 2, 0)
        n = np.maximum(n, 1)  # all sums of a group that was not drawn are 0
        return _ratio(*((p - q).sum(1) for p, q in ((sxy, sx * sy / n), (sxx, sx * sx / n), (syy, sy * sy / n))))

    value = float(coefficient(totals.sum(0, keepdims=True))[0])
    if count < 2:
        return Interval(value, math.nan, math.nan, math.nan, x.size, count)
    drawn = [coefficient(times @ totals) for times in bootstrap.resamples(count, seed=seed, draws=draws)]
    without = coefficient(totals.sum(0) - totals)
    return bootstrap.interval(value, np.concatenate(drawn), without, x.size, count, level=level, method="bca")


def spearman(
    a: Numbers, b: Numbers, groups: Labels | Codes, clusters: Labels | Codes, *, level: float = 0.95
) -> Interval:
    """Return Spearman's ρ of ranks taken within groups (mid-ranks as shares; larger groups weigh more).

    The error sums the rows' influences within clusters, including their influence on the ranks of other rows. The
    interval is a Student interval on the atanh scale, so that it stays within −1 and 1.
    """
    x, y, g, c = _rows(a, b, groups, clusters)
    count = int(c.max()) + 1 if c.size else 0
    tops, left, right = (np.zeros(x.size) for _ in range(3))
    order = np.argsort(g, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(g[order])) + 1) if x.size else ():
        u, v = _Shares(x[rows]), _Shares(y[rows])
        tops[rows] = _influence(u, v)
        left[rows] = _influence(u, u)
        right[rows] = _influence(v, v)
    value = float(_ratio(np.array([tops.sum()]), np.array([left.sum()]), np.array([right.sum()]))[0])
    if count < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan, math.nan, x.size, count)
    influence = tops / math.sqrt(left.sum() * right.sum()) - value / 2 * (left / left.sum() + right / right.sum())
    sums = np.bincount(c, weights=influence)
    error = math.sqrt(count / (count - 1) * float(sums @ sums))
    room = 1 - value**2
    if room < _NONE:
        return Interval(value, error, value, value, x.size, count)
    half = student_quantile(0.5 + level / 2, count - 1) * error / room
    low, high = (math.tanh(math.atanh(value) + step) for step in (-half, half))
    return Interval(value, error, low, high, x.size, count)


def across(
    a: Numbers, b: Numbers, clusters: Labels, *, seed: int, draws: int = 2000, level: float = 0.95
) -> tuple[Interval, Interval]:
    """Return Pearson's r and Spearman's ρ of a few rows, such as models, with BCa intervals that resample whole
    clusters.
    """
    x, y, _, c = _rows(a, b, [0] * len(clusters), clusters)
    count = int(c.max()) + 1 if c.size else 0
    above = [_above(side) for side in (x, y)]

    def both(times: Array) -> tuple[Array, Array]:
        """Return r and ρ for each draw. `times` (draws, rows) is how often each row occurs in each draw."""
        plain = [np.broadcast_to(side, times.shape) for side in (x, y)]
        return _weighted(times, *plain), _weighted(times, *(times @ step.T for step in above))

    one = [float(r[0]) for r in both(np.ones((1, x.size)))]
    if count < 2:
        return tuple(Interval(r, math.nan, math.nan, math.nan, x.size, count) for r in one)  # type: ignore[return-value]
    drawn = [both(times[:, c]) for times in bootstrap.resamples(count, seed=seed, draws=draws)]
    without = both(1.0 - (np.arange(count)[:, None] == c[None, :]))
    intervals = [
        bootstrap.interval(
            one[k], np.concatenate([d[k] for d in drawn]), without[k], x.size, count, level=level, method="bca"
        )
        for k in (0, 1)
    ]
    return intervals[0], intervals[1]


class Means:
    """The mean of each cell of each group, for the data and for draws of clusters; NaN if a cell has no value.

    `all` is (1 + draws, groups, cells); the first entry is the data itself. Two Means with the same `clusters`, `seed`
    and `draws` use the same draws. `ranked()` returns the rank of each cell within its group.
    """

    def __init__(
        self, values: Numbers, groups: Codes, cells: Codes, clusters: Codes, shape: tuple[int, int, int], *, seed: int,
        draws: int,
    ) -> None:  # fmt: skip
        many, wide, count = shape
        x = np.asarray(values, dtype=np.float64)
        place = (clusters * many + groups) * wide + cells
        sums, often = (
            np.bincount(place, weights=w, minlength=count * many * wide).reshape(count, many * wide)
            for w in (x, np.ones_like(x))
        )
        once = np.stack([sums.sum(0), often.sum(0)])
        used = np.flatnonzero(once[1])
        out = np.full((1 + draws, many * wide), np.nan)
        out[0, used] = once[0, used] / once[1, used]
        slim, counts = (part[:, used].astype(np.float32) for part in (sums, often))
        at = 1
        for times in bootstrap.resamples(count, seed=seed, draws=draws) if count > 1 else ():
            few = times.astype(np.float32)
            top, bottom = few @ slim, few @ counts
            rows = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)
            out[at : at + len(rows), used] = rows
            at += len(rows)
        self.all: Array = _steady_cells(out.reshape(1 + draws, many, wide))
        self.known = ~np.isnan(self.all)
        self._ranked: Array | None = None

    def ranked(self) -> Array:
        if self._ranked is None:
            self._ranked = _ranks_within(self.all)
        return self._ranked


def of_means(a: Means, b: Means, rows: int, clusters: int, *, level: float = 0.95) -> tuple[Interval, Interval]:
    """Return Pearson's r and Spearman's ρ of cell means within groups. Cells without a mean in `a` or `b` are left out.

    Noise in the means pulls r and ρ towards 0, and more so in the draws. So the draws give only the error, on the atanh
    scale, and the interval is centred on the value itself. The result applies to means over this number of rows, not to
    means without noise.
    """
    both = a.known & b.known
    sides, ranked = [], []
    for one in (a, b):
        same = np.array_equal(one.known, both)
        plain = one.all if same else np.where(both, one.all, np.nan)
        sides.append(plain)
        ranked.append(one.ranked() if same else _ranks_within(plain))
    intervals = []
    for x, y in (sides, ranked):
        r = _within(x, y, both)
        value = float(r[0])
        drawn = np.arctanh(np.clip(r[1:][~np.isnan(r[1:])], -_ALMOST, _ALMOST))
        if math.isnan(value) or drawn.size < 2:
            intervals.append(Interval(value, math.nan, math.nan, math.nan, rows, clusters))
            continue
        centre = math.atanh(min(max(value, -_ALMOST), _ALMOST))
        half = normal_quantile(0.5 + level / 2) * float(drawn.std(ddof=1))
        error = float(drawn.std(ddof=1)) * (1 - value**2)
        low, high = min(value, math.tanh(centre - half)), max(value, math.tanh(centre + half))
        intervals.append(Interval(value, error, low, high, rows, clusters))
    return intervals[0], intervals[1]


def _steady_cells(means: Array) -> Array:
    """Apply `_steady` to the cells of each draw and group; NaN stays NaN."""
    none = np.isnan(means)
    low = np.where(none, np.inf, means).min(2, keepdims=True)
    high = np.where(none, -np.inf, means).max(2, keepdims=True)
    still = high - low <= STILL * np.maximum(np.abs(low), np.abs(high))
    return np.where(still & ~none, low, means)


def _within(x: Array, y: Array, known: npt.NDArray[np.bool_]) -> Array:
    """Return Pearson's r within groups of arrays (draws, groups, cells)."""
    n = np.maximum(known.sum(2, keepdims=True), 1)
    x, y = (np.where(known, side, 0.0) for side in (x, y))
    x, y = (np.where(known, side - side.sum(2, keepdims=True) / n, 0.0) for side in (x, y))
    return _ratio((x * y).sum((1, 2)), (x * x).sum((1, 2)), (y * y).sum((1, 2)))


def _ranks_within(means: Array) -> Array:
    """Return mid-ranks along the last axis, computed in blocks; NaN is not ranked."""
    flat = means.reshape(-1, means.shape[2])
    out = np.empty_like(flat)
    block = max(1, _CELLS // max(1, flat.shape[1] ** 2))
    for start in range(0, len(flat), block):
        part = flat[start : start + block]
        less, same = (f(part[:, None, :], part[:, :, None]).sum(2) for f in (np.less, np.equal))
        out[start : start + block] = less + same / 2
    return np.where(np.isnan(means), np.nan, out.reshape(means.shape))


class _Shares:
    """For each row, the share of rows below it, and weighted sums over the rows above it; ties count half."""

    def __init__(self, x: Array) -> None:
        _, self.codes, often = np.unique(x, return_inverse=True, return_counts=True)
        self.u: Array = ((np.cumsum(often) - often / 2) / x.size)[self.codes]

    def above(self, weights: Array) -> Array:
        """Return for each row the sum of `weights` over the rows above it ÷ the number of all rows; ties count half."""
        by = np.bincount(self.codes, weights=weights)
        return np.asarray((by.sum() - np.cumsum(by) + by / 2)[self.codes] / weights.size)


def _influence(u: _Shares, v: _Shares) -> Array:
    """Return the influence of each row on n · (mean(U·V) − ¼), where U and V are the rows' shares. The influences sum
    to that number."""
    mean = float((u.u * v.u).mean())
    return u.u * v.u + u.above(v.u) + v.above(u.u) - 2 * mean - 0.25


def _above(x: Array) -> Array:
    """Return a table (row, other): 1 if the other is below the row, ½ if they are equal, else 0."""
    return np.asarray((x[None, :] < x[:, None]) + (x[None, :] == x[:, None]) / 2, dtype=np.float64)


def _weighted(times: Array, x: Array, y: Array) -> Array:
    total = times.sum(1, keepdims=True)
    x, y = (side - (times * side).sum(1, keepdims=True) / np.maximum(total, 1) for side in (x, y))
    return _ratio((times * x * y).sum(1), (times * x * x).sum(1), (times * y * y).sum(1))


def _ratio(top: Array, left: Array, right: Array) -> Array:
    """Return top ÷ √(left · right), NaN if a side does not vary."""
    some = (left > _NONE) & (right > _NONE)
    bottom = np.sqrt(np.where(some, left, 1.0)) * np.sqrt(np.where(some, right, 1.0))
    return np.where(some, np.clip(top / bottom, -1, 1), np.nan)


def _codes(labels: Labels | Codes) -> Codes:
    if isinstance(labels, np.ndarray):
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)
    return codes(labels)[0]


def _means(x: Array, g: Codes) -> Array:
    return np.asarray(np.bincount(g, weights=x) / np.bincount(g), dtype=np.float64)


def _rows(
    a: Numbers, b: Numbers, groups: Labels | Codes, clusters: Labels | Codes
) -> tuple[Array, Array, Codes, Codes]:
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(groups) != x.size or len(clusters) != x.size:
        raise ValueError(
            f"{x.size} numbers, {y.size} others, {len(groups)} groups, {len(clusters)} clusters: lengths must match"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a number is not finite; leave unscored rows out before correlating")
    of = _codes(groups)
    return _steady(x, of), _steady(y, of), of, _codes(clusters)


def _steady(x: Array, g: Codes) -> Array:
    """Return the values, made equal within each group whose spread is only rounding noise."""
    if not x.size:
        return x
    many = int(g.max()) + 1
    low, high = np.full(many, np.inf), np.full(many, -np.inf)
    np.minimum.at(low, g, x)
    np.maximum.at(high, g, x)
    still = high - low <= STILL * np.maximum(np.abs(low), np.abs(high))
    return np.where(still[g], low[g], x)
