"""Estimates from paired predictions: items are clustered, and seeds are a random effect (Satterthwaite).

The variance of an estimate has two parts: that of the items, clustered by document, dialogue or script (from influence
values), and that of the seeds. If every seed has a group of its own (a fold), the spread over the groups contains both
parts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from overtone.rated_sentences import Array
from overtone.stats.beta import student_cdf
from overtone.stats.cluster import student_quantile

At = tuple[str, int]  # a group of items (a genre, a fold, "" for all) and a seed


@dataclass(frozen=True)
class Cell:
    """One arm's statistic for one seed on one group of items. `influence` is the influence of each item on the
    statistic."""

    value: float
    influence: Array  # (n,), sums to zero
    clusters: Array  # (n,) names


@dataclass(frozen=True)
class Estimate:
    """A mean over groups and seeds with its standard error."""

    value: float
    error: float
    df: float
    seeds: int
    seed_variance: float  # the part of error² that more seeds would lower
    cells: int

    def interval(self, level: float) -> tuple[float, float]:
        width = student_quantile((1 + level) / 2, max(1, int(self.df))) * self.error
        return self.value - width, self.value + width

    @property
    def p(self) -> float:
        """The two-sided p-value of no difference; NaN without a standard error."""
        return 2 * student_cdf(-abs(self.value / self.error), self.df) if self.error > 0 else math.nan


def pearson(x: Array, y: Array) -> tuple[float, Array]:
    """Return Pearson's r and the influence of each item on it; 0 if one side does not vary."""
    zx, zy = ((v - v.mean()) / (v.std() or 1.0) for v in (np.asarray(x, float), np.asarray(y, float)))
    r = float((zx * zy).mean())
    return r, zx * zy - r * (zx**2 + zy**2) / 2


def mean_cell(values: Array, clusters: Array) -> Cell:
    """Return a cell whose statistic is the mean of `values`, which has one value per item."""
    values = np.asarray(values, float)
    return Cell(float(values.mean()), values - values.mean(), clusters)


def estimate(cells: Mapping[At, Cell]) -> Estimate:
    """Average cells over the seeds of each group and then over the groups."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for (group, _), cell in sorted(cells.items(), key=lambda entry: entry[0]):
        groups[group].append(cell)
    count = len(groups)
    means = [float(np.mean([cell.value for cell in members])) for members in groups.values()]
    value = float(np.mean(means))
    fewest = min(len(members) for members in groups.values())
    seeds = len({seed for _, seed in cells})
    if fewest == 1 and seeds == count > 1:  # a fold per seed
        error = float(np.std(means, ddof=1)) / math.sqrt(count)
        return Estimate(value, error, count - 1, seeds, error**2, len(cells))
    parts: list[tuple[float, float]] = []  # variance, degrees of freedom
    of_seeds = 0.0
    for members in groups.values():
        parts.append(item_variance(members))
        if len(members) > 1:
            variance = float(np.var([cell.value for cell in members], ddof=1)) / len(members)
            parts.append((variance, len(members) - 1))
            of_seeds += variance / count**2
    total = sum(variance for variance, _ in parts)
    spent = sum(variance**2 / df for variance, df in parts)
    df = total**2 / spent if spent else math.inf
    return Estimate(value, math.sqrt(total) / count, min(df, 1e6), seeds, of_seeds, len(cells))


def item_variance(members: Sequence[Cell]) -> tuple[float, float]:
    """Return the variance that the choice of items causes in the mean over seeds, and its degrees of freedom."""
    influence = np.mean([cell.influence for cell in members], axis=0)
    _, at = np.unique(members[0].clusters, return_inverse=True)
    sums = np.bincount(at, weights=influence) / len(influence)
    many = len(sums)
    return (float((sums**2).sum()) * many / (many - 1), many - 1) if many > 1 else (0.0, 1.0)


def difference(a: Mapping[At, Cell], b: Mapping[At, Cell]) -> dict[At, Cell]:
    """Return a − b for the cells that both have."""
    return {
        at: Cell(a[at].value - b[at].value, a[at].influence - b[at].influence, a[at].clusters)
        for at in sorted(a.keys() & b.keys())
    }
