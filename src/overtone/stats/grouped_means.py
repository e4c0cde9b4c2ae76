"""Means, proportions and differences of many parts of one table at once; a row may be in several parts.

The results equal those of `cluster` for each part. The clusters within each part are computed once for all results, so
a table of forty cues costs little more than one of its rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Interval, newcombe, student, wilson

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class Parts:
    """The parts of a table: `rows` holds the row numbers of each part, `clusters` the cluster of every table row."""

    def __init__(self, rows: Sequence[Rows], clusters: Rows) -> None:
        self.rows = np.concatenate(rows) if rows else np.empty(0, dtype=np.intp)
        self.sizes = [len(part) for part in rows]
        self._part = np.repeat(np.arange(len(rows)), self.sizes)
        width = int(clusters.max(initial=0)) + 1
        cells, self._cell = np.unique(self._part * width + clusters[self.rows], return_inverse=True)
        self._owner = cells // width  # the part of each cell; a cell is the rows of one cluster within one part
        self._cells = cells.size

    def means(self, values: Array, *, level: float = 0.95) -> list[Interval]:
        """Return the mean of each part, as `cluster.mean` computes it. `values` has a number or NaN per table row; NaN
        is left out."""
        mean, error, rows, clusters, _ = self._sums(values[self.rows])
        return [
            student(*part, level)
            for part in zip(mean.tolist(), error.tolist(), rows.tolist(), clusters.tolist(), strict=True)
        ]

    def proportions(self, values: Array, *, level: float = 0.95) -> list[Interval]:
        """Return the proportion of ones in each part, as `cluster.proportion` computes it. `values` has 0, 1 or NaN per
        table row; NaN is left out.
        """
        return self._proportions(values[self.rows], level)[0]

    def differences(self, values: Array, first: Flags, *, level: float = 0.95) -> list[Interval]:
        """Return, for each part, the proportion among the `first` rows minus the proportion among its other rows, as
        `cluster.difference` computes it.
        """
        x, here = values[self.rows], first[self.rows]
        known = ~np.isnan(x)
        a, pull_a = self._proportions(np.where(here, x, np.nan), level)
        b, pull_b = self._proportions(np.where(here, np.nan, x), level)
        rows = np.bincount(self._part[known], minlength=len(self.sizes)).tolist()
        clusters = self._count(known).tolist()
        shared = np.bincount(self._owner, weights=pull_a * pull_b, minlength=len(self.sizes)).tolist()
        return [newcombe(*part) for part in zip(a, b, shared, rows, clusters, strict=True)]

    def _proportions(self, x: Array, level: float) -> tuple[list[Interval], Array]:
        if np.nanmin(x, initial=0.0) < 0 or np.nanmax(x, initial=0.0) > 1:
            raise ValueError("the values of a proportion must be between 0 and 1")
        mean, error, rows, clusters, pulls = self._sums(x)
        parts = zip(mean.tolist(), error.tolist(), rows.tolist(), clusters.tolist(), strict=True)
        return [wilson(*part, level) for part in parts], pulls

    def _sums(self, x: Array) -> tuple[Array, Array, Rows, Rows, Array]:
        """Return the mean, clustered error, number of rows and number of clusters of every part, and the influence of
        every cell on the mean of its part.
        """
        known = ~np.isnan(x)
        part, cell, x = self._part[known], self._cell[known], x[known]
        size = len(self.sizes)
        rows = np.bincount(part, minlength=size)
        some = np.maximum(rows, 1)
        mean = np.where(rows > 0, np.bincount(part, weights=x, minlength=size) / some, math.nan)
        pulls: Array = np.bincount(cell, weights=(x - mean[part]) / some[part], minlength=self._cells).astype(
            np.float64
        )
        clusters = self._count(known)
        squares = np.bincount(self._owner, weights=pulls**2, minlength=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.where(clusters > 1, np.sqrt(clusters / (clusters - 1) * squares), math.nan)
        return mean, error, rows, clusters, pulls

    def _count(self, known: Flags) -> Rows:
        """Count, in each part, the clusters with at least one row for which `known` is true."""
        held = np.bincount(self._cell[known], minlength=self._cells) > 0
        return np.bincount(self._owner[held], minlength=len(self.sizes))
