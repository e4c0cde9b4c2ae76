"""Correlations of two numbers: Pearson's r, Spearman's ρ, Kendall's τ-b, and partial correlations.

All are NaN if undefined: fewer than two rows, or a side that does not vary by more than rounding error. Intervals that
respect clusters come from `bootstrap.clustered`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Numbers

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

STILL = 1e-6  # relative to the largest value of a variable: a smaller spread is rounding noise
_NOTHING_LEFT = 1e-20  # relative to the sum of squares of a variable: a smaller remainder is rounding noise


def pearson(a: Numbers, b: Numbers) -> float:
    """Return Pearson's r, the linear correlation."""
    x, y = _pair(a, b)
    return _pearson(x, y)


def spearman(a: Numbers, b: Numbers) -> float:
    """Return Spearman's ρ: Pearson's r of the mid-ranks, so that equal values share their ranks."""
    x, y = _pair(a, b)
    return _pearson(_ranks(x), _ranks(y)) if _varies(x) and _varies(y) else math.nan


def kendall(a: Numbers, b: Numbers) -> float:
    """Return Kendall's τ-b: concordant minus discordant pairs, corrected for ties. Takes n log n steps."""
    x, y = _pair(a, b)
    if not _varies(x) or not _varies(y):
        return math.nan
    first, second = _codes(x), _codes(y)
    pairs = x.size * (x.size - 1) // 2
    tied_first, tied_second = _tied(first), _tied(second)
    tied_both = _tied(_codes(first * (second.max() + 1) + second))
    opposite = _inversions(second[np.lexsort((second, first))])
    same_minus_opposite = pairs - tied_first - tied_second + tied_both - 2 * opposite
    return _bounded(same_minus_opposite / math.sqrt(pairs - tied_first) / math.sqrt(pairs - tied_second))


def kendall_p(tau: float, rows: int) -> float:
    """Return the exact two-sided p-value of τ without ties: the probability that two random orders of `rows` rows have
    a τ at least as far from 0.

    It counts the orders by their number of inversions.
    """
    orders = [1]  # the number of orders of one row with 0 inversions
    for size in range(2, rows + 1):  # the next row passes 0 to size − 1 of those before it
        sums = [0, *itertools.accumulate(orders), *[sum(orders)] * (size - 1)]
        orders = [sums[k + 1] - sums[max(0, k + 1 - size)] for k in range(len(orders) + size - 1)]
    pairs = rows * (rows - 1) // 2
    extreme = sum(
        count for inversions, count in enumerate(orders) if abs(1 - 2 * inversions / max(pairs, 1)) >= abs(tau) - 1e-9
    )
    return extreme / sum(orders)


def partial(a: Numbers, b: Numbers, given: Sequence[Numbers] | Numbers | Array, *, ranked: bool = False) -> float:
    """Return the correlation of the residuals of `a` and `b` after regression on `given` (least squares, intercept).

    `given` is one list of numbers, or several lists. `ranked` uses mid-ranks: Spearman's version. NaN also if `given`
    fully explains `a` or `b`.
    """
    x, y = _pair(a, b)
    others = np.atleast_2d(np.asarray(given, dtype=np.float64))
    if others.ndim != 2 or others.shape[1] != x.size:
        raise ValueError(
            f"{x.size} rows, but the numbers held fixed have {others.shape[-1]}; give one number for every row"
        )
    if not np.isfinite(others).all():
        raise ValueError("a number held fixed is not finite; leave such rows out before correlating")
    if not _varies(x) or not _varies(y):
        return math.nan
    if ranked:
        x, y = _ranks(x), _ranks(y)
        others = np.stack([_ranks(row) for row in others])
    centred = [side - side.mean() for side in (x, y)]
    fixed = others - others.mean(1, keepdims=True)
    scales = np.sqrt((fixed**2).sum(1, keepdims=True))
    fixed = np.divide(fixed, scales, out=np.zeros_like(fixed), where=scales > 0).T  # (rows, others)
    left = [side - fixed @ np.linalg.lstsq(fixed, side, rcond=None)[0] for side in centred]
    if any(float(rest @ rest) <= _NOTHING_LEFT * float(all_ @ all_) for rest, all_ in zip(left, centred, strict=True)):
        return math.nan
    return _cosine(left[0], left[1])


def _pearson(x: Array, y: Array) -> float:
    if x.size < 2 or not _varies(x) or not _varies(y):
        return math.nan
    return _cosine(x - x.mean(), y - y.mean())


def _cosine(x: Array, y: Array) -> float:
    x, y = x / np.abs(x).max(), y / np.abs(y).max()  # squares of very small or large numbers would leave the range
    return _bounded(float(x @ y) / math.sqrt(float(x @ x)) / math.sqrt(float(y @ y)))


def _bounded(r: float) -> float:
    return max(-1.0, min(1.0, r))  # rounding may exceed the range


def _varies(x: Array) -> bool:
    """Return whether the values differ by more than rounding error."""
    return x.size > 1 and bool(x.max() - x.min() > STILL * np.abs(x).max())


def _ranks(x: Array) -> Array:
    _, codes, often = np.unique(x, return_inverse=True, return_counts=True)
    middle = np.cumsum(often) - (often - 1) / 2
    return np.asarray(middle[codes], dtype=np.float64)


def _codes(x: npt.NDArray[np.float64] | Codes) -> Codes:
    return np.unique(x, return_inverse=True)[1].astype(np.intp)


def _tied(codes: Codes) -> int:
    often = np.bincount(codes).astype(np.int64)
    return int((often * (often - 1) // 2).sum())


def _inversions(codes: Codes) -> int:
    """Count the pairs in descending order. Codes are sorted bit by bit; each bit counts the pairs that it decides."""
    inversions = 0
    place = np.arange(codes.size)
    for bit in range(int(codes.max()).bit_length() - 1, -1, -1):
        # the rows are sorted by the bits above this one; rows with equal bits form a block in their original order
        above = codes >> (bit + 1)
        starts = np.flatnonzero(np.concatenate([[True], above[1:] != above[:-1]]))
        block = np.repeat(np.arange(starts.size), np.diff(np.append(starts, codes.size)))
        one = ((codes >> bit) & 1).astype(np.intp)
        ones_before = np.cumsum(one) - one
        ones_before -= ones_before[starts][block]
        zeros_before = place - starts[block] - ones_before
        zero = one == 0
        inversions += int(ones_before[zero].sum())
        zeros = np.bincount(block, weights=zero, minlength=starts.size).astype(np.intp)
        target = starts[block] + np.where(zero, zeros_before, zeros[block] + ones_before)
        moved = np.empty_like(codes)
        moved[target] = codes
        codes = moved
    return inversions


def _finite(values: Numbers) -> Array:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError("needs one row of finite numbers; leave unscored rows out before correlating")
    return x


def _pair(a: Numbers, b: Numbers) -> tuple[Array, Array]:
    x, y = _finite(a), _finite(b)
    if x.size != y.size:
        raise ValueError(f"{x.size} numbers against {y.size}: both sides need one number for every row")
    return x, y
