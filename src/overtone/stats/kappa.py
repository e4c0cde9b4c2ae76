"""Agreement of two or more raters: shares of agreement, Cohen's κ (also weighted) and Fleiss's κ.

κ is the agreement beyond chance, given how often each rater uses each rating: 1 is perfect, 0 is chance, below 0 is
worse than chance. κ is NaN without ratings, and if all raters always gave the same rating. If one rater never varies
and another does, κ = 0. Leave out rows with a missing rating, or use Krippendorff's α (`agreement.py`), which accepts
such rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Ratings = Sequence[float] | Sequence[str] | npt.NDArray[Any]
Weights = Literal["linear", "quadratic"]
Counts = npt.NDArray[np.int64]


def exact(a: Ratings, b: Ratings) -> float:
    """Return the share of rows with the same rating from both raters; NaN without rows."""
    x, y = _pair(a, b)
    return float((x == y).mean()) if x.size else math.nan


def within(a: Ratings, b: Ratings, by: float = 1) -> float:
    """Return the share of rows whose two ratings differ by at most `by`; NaN without rows."""
    x, y = _numbers(*_pair(a, b))
    slack = 1e-9 * max(1.0, abs(by))  # 0.3 − 0.2 is not quite 0.1
    return float((np.abs(x - y) <= by + slack).mean()) if x.size else math.nan


def cohen(a: Ratings, b: Ratings, weights: Weights | None = None) -> float:
    """Return Cohen's κ of two raters of the same rows: 1 − observed ÷ expected disagreement.

    Without weights, any two different ratings disagree fully, and ratings may be words. With "linear" weights, two
    ratings disagree by their distance, with "quadratic" weights by its square. The distance is the difference of the
    numbers, so unused ratings have no effect: 1 against 5 is four times as far as 1 against 2 even if 3 and 4 never
    occur. (Implementations that number the observed categories give the same κ if they get the full scale.)
    """
    x, y = _pair(a, b)
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(f"unknown weights {weights!r}; known: None, linear, quadratic")
    if not x.size:
        return math.nan
    if weights is not None:
        x, y = _numbers(x, y)
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    table = _crossed(codes[: x.size], codes[x.size :], len(values)).astype(np.float64)
    if weights is None:
        distances = 1 - np.eye(len(values))
    else:
        distances = np.abs(values[:, None] - values[None, :]) ** (1 if weights == "linear" else 2)
    expected = float(table.sum(1) @ distances @ table.sum(0)) / x.size
    return 1 - float((table * distances).sum()) / expected if expected > 0 else math.nan


def confusion(a: Ratings, b: Ratings, categories: Ratings) -> Counts:
    """Return a table of counts: entry (i, j) is how often `a` gave category i and `b` gave category j."""
    x, y = _pair(a, b)
    names = np.asarray(categories).tolist()
    places = {name: at for at, name in enumerate(names)}
    if len(places) != len(names):
        raise ValueError("duplicate category; list every category once")
    unknown = sorted({str(value) for value in [*x.tolist(), *y.tolist()] if value not in places})
    if unknown:
        raise ValueError(f"ratings outside the categories: {', '.join(unknown[:5])}; name every category, or drop them")
    codes = [np.array([places[value] for value in side.tolist()], dtype=np.intp) for side in (x, y)]
    return _crossed(codes[0], codes[1], len(names))


def _crossed(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp], size: int) -> Counts:
    return np.bincount(rows * size + columns, minlength=size * size).reshape(size, size).astype(np.int64)


def _pair(a: Ratings, b: Ratings) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    x, y = np.asarray(a), np.asarray(b)
    if x.ndim != 1 or y.shape != x.shape:
        raise ValueError(f"{x.size} ratings against {y.size}: both raters need one rating for every row")
    if x.size and (x.dtype.kind in "biuf") != (y.dtype.kind in "biuf"):
        raise ValueError("one rater gave numbers and the other words")
    for side in (x, y):
        if side.dtype.kind not in "biufU" or (side.dtype.kind == "f" and not np.isfinite(side).all()):
            raise ValueError("a rating is missing or not a finite number; leave such rows out before comparing")
    return x, y


def _numbers(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    if x.dtype.kind == "U":
        raise ValueError("distances need numbers, not words")
    return x.astype(np.float64), y.astype(np.float64)
