"""Scores of a whole corpus from counts summed over its rows, with jackknife intervals over clusters.

A corpus score is a function of sums over rows, not a mean of the rows' scores. So the score without one cluster takes
only one subtraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Interval, Labels, codes, student_quantile

Sums = npt.NDArray[np.float64]


def jackknife(
    rows: npt.ArrayLike, clusters: Labels, score: Callable[[Sums], float], *, level: float = 0.95
) -> Interval:
    """Return the score of the sums over `rows` (n, k), with a Student interval from the scores without each cluster."""
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or len(clusters) != len(table):
        raise ValueError(f"a table of {table.shape} but {len(clusters)} cluster labels")
    if not len(table):
        return Interval(math.nan, math.nan, math.nan, math.nan, 0, 0)
    ids, count = codes(clusters)
    parts = np.zeros((count, table.shape[1]))
    np.add.at(parts, ids, table)
    total = parts.sum(axis=0)
    value = score(total)
    if count < 2:
        return Interval(value, math.nan, math.nan, math.nan, len(table), count)
    without = np.array([score(total - part) for part in parts])
    error = math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))
    half = student_quantile(0.5 + level / 2, count - 1) * error
    return Interval(value, error, value - half, value + half, len(table), count)


def bleu(length: float, reference: float, correct: Sequence[float], total: Sequence[float]) -> float:
    """Return BLEU (0 to 1) from n-gram counts. Orders without a match are smoothed exponentially, as is sacreBLEU's
    default.

    For each order, `correct` counts the n-grams that are also in the reference and `total` counts all n-grams.
    """
    if not any(correct) or not all(total):
        return 0.0
    logs, doubled = [], 1
    for right, of in zip(correct, total, strict=True):
        if not right:
            doubled *= 2  # each order without a match counts half of the one before
        logs.append(math.log(right / of if right else 1 / (doubled * of)))
    return brevity(length, reference) * math.exp(sum(logs) / len(logs))


def brevity(length: float, reference: float) -> float:
    """Return BLEU's brevity penalty, a factor below 1 for a text shorter than its reference."""
    return 1.0 if length >= reference else math.exp(1 - reference / length) if length else 0.0
