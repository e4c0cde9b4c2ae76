"""The paired permutation test: is A better than B on the same rows? It flips the signs of whole clusters.

If A and B are equally good, both signs of a cluster's difference are equally likely. The permutation test compares the
mean difference with its values under other sign patterns: all patterns if there are at most 2^16, else seeded draws.
The interval consists of exactly the differences that the test does not reject. (With the signs of a subset flipped, the
shifted mean difference is at least as large as the observed one exactly if the mean of the subset is below the shift.
So the ends of the interval are quantiles of the means of subsets: Hartigan 1969.) The test assumes that the
differences are distributed symmetrically around their centre.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Labels, Numbers, codes

Alternative = Literal["two-sided", "greater", "less"]
Array = npt.NDArray[np.float64]

EXACT_CLUSTERS = 16  # up to here all sign patterns are tried
_CELLS = 1_000_000  # size of a block of the matrix of signs


@dataclass(frozen=True)
class Comparison:
    """The mean of a − b, its interval, and the p-value of the hypothesis that it is `null`.

    The interval is two-sided for every alternative. An end is infinite if there are too few clusters to reject a value
    on that side. Both ends and p are NaN if the test is undefined.
    """

    value: float
    low: float
    high: float
    p: float
    null: float
    alternative: Alternative
    exact: bool
    rows: int
    clusters: int


def permutation(
    values_a: Numbers,
    values_b: Numbers,
    clusters: Labels,
    *,
    seed: int,
    draws: int = 10_000,
    level: float = 0.95,
    null: float = 0.0,
    alternative: Alternative = "two-sided",
) -> Comparison:
    """Run the paired permutation test of mean(a − b) = `null`, flipping the signs of whole clusters.

    For "no worse than by a margin" pass `null=-margin, alternative="greater"`.
    """
    sums, sizes = _totals(values_a, values_b, clusters)
    if draws < 2 or not 0 < level < 1:
        raise ValueError(f"needs at least two draws and a level between 0 and 1, not {draws} and {level}")
    if alternative not in ("two-sided", "greater", "less"):
        raise ValueError(f"unknown alternative {alternative!r}; known: two-sided, greater, less")
    rows, count = float(sizes.sum()), sums.size
    if count == 0:
        return Comparison(math.nan, math.nan, math.nan, math.nan, null, alternative, False, 0, 0)
    value = float(sums.sum()) / rows
    exact = count <= EXACT_CLUSTERS
    shifted = sums - null * sizes
    close = 1e-9 * float(np.abs(sums).sum() + abs(null) * rows)  # equal sums in another order differ in the last digits
    greater = less = patterns = 0 if exact else 1  # besides the draws, the observed signs count
    means = []
    table = np.stack([shifted, sizes], axis=1)
    for part in _flipped(table, exact, draws, seed):
        # Σ flipped ≤ 0 means that the total with these signs is at least the observed total
        greater += int((part[:, 0] <= close).sum())
        less += int((part[:, 0] >= -close).sum())
        patterns += len(part)
        some = part[:, 1] > 0
        means.append(part[some, 0] / part[some, 1] + null)
    p = {
        "greater": greater / patterns,
        "less": less / patterns,
        "two-sided": min(1.0, 2 * min(greater, less) / patterns),
    }[alternative]
    low, high = _edges(np.concatenate(means), patterns, level)
    return Comparison(value, low, high, p, null, alternative, exact, int(rows), count)


def _flipped(table: Array, exact: bool, draws: int, seed: int) -> Iterator[Array]:
    """Yield the sums of the rows (clusters) with a flipped sign, (patterns, columns), for all patterns or for draws.

    The opposite of each drawn pattern is also used, because it is equally likely and costs nothing.
    """
    count, whole = len(table), table.sum(0)
    if exact:
        every = np.arange(2**count, dtype=np.uint32)
        yield ((every[:, None] >> np.arange(count, dtype=np.uint32)) & 1).astype(np.float64) @ table
        return
    rng = np.random.default_rng(seed)
    half, block = (draws + 1) // 2, max(1, _CELLS // count)
    for start in range(0, half, block):
        rows = min(block, half - start)
        bits = rng.integers(0, 256, size=(rows, (count + 7) // 8), dtype=np.uint8)
        part = np.unpackbits(bits, axis=1, count=count).astype(np.float64) @ table
        yield part
        yield whole - part


def _edges(means: Array, patterns: int, level: float) -> tuple[float, float]:
    """Return both ends of the interval, from the means of all subsets of clusters.

    An end is the difference at which the one-sided test reaches p = (1 − level) ÷ 2 (see the module's docstring).
    """
    often = math.floor((1 - level) / 2 * patterns + 1e-9)
    if often < max(1, patterns - means.size):
        return -math.inf, math.inf
    place = often - (patterns - means.size)  # the observed signs have no subset, but count
    means = np.partition(means, [place, means.size - 1 - place])
    return float(means[place]), float(means[means.size - 1 - place])


def _totals(values_a: Numbers, values_b: Numbers, clusters: Labels) -> tuple[Array, Array]:
    a, b = np.asarray(values_a, dtype=np.float64), np.asarray(values_b, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"{a.size} values against {b.size}: a paired test needs both for every row")
    if len(clusters) != a.size:
        raise ValueError(f"{a.size} rows but {len(clusters)} cluster labels")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a value is not a finite number; leave out rows that only one side has a score for")
    ids, count = codes(clusters)
    sums = np.bincount(ids, weights=a - b, minlength=count)
    return sums.astype(np.float64), np.bincount(ids, minlength=count).astype(np.float64)
