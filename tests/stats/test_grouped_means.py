"""Many parts at once give what `cluster` gives for each of them."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.stats import cluster
from overtone.stats.cluster import Interval
from overtone.stats.grouped_means import Parts

RNG = np.random.default_rng(5)
SIZE = 200
CLUSTERS = RNG.integers(0, 40, SIZE)
PLACES = [np.arange(SIZE), *(np.flatnonzero(RNG.random(SIZE) < share) for share in (0.5, 0.2, 0.03, 0.0))]
PLACES += [np.flatnonzero(CLUSTERS == 3), np.array([7])]


def some(values: np.ndarray, missing: float) -> np.ndarray:
    return np.where(RNG.random(SIZE) < missing, np.nan, values)


def same(one: Interval, other: Interval) -> None:
    for name in ("value", "error", "low", "high", "rows", "clusters"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_means_and_proportions_of_each_part_are_those_of_the_part_alone(missing: float) -> None:
    parts = Parts(PLACES, CLUSTERS)
    for values, many, alone in (
        (some(RNG.normal(size=SIZE), missing), parts.means, cluster.mean),
        (some(RNG.integers(0, 2, SIZE), missing), parts.proportions, cluster.proportion),
        (some(np.ones(SIZE), missing), parts.proportions, cluster.proportion),
    ):
        for found, rows in zip(many(values), PLACES, strict=True):
            known = rows[~np.isnan(values[rows])]
            same(found, alone(values[known], CLUSTERS[known].tolist()))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_differences_of_each_part_are_those_of_the_part_alone(missing: float) -> None:
    values, first = some(RNG.integers(0, 2, SIZE), missing), RNG.random(SIZE) < 0.4
    for found, rows in zip(Parts(PLACES, CLUSTERS).differences(values, first), PLACES, strict=True):
        known = rows[~np.isnan(values[rows])]
        same(found, cluster.difference(values[known], first[known].tolist(), CLUSTERS[known].tolist()))


def test_no_parts_and_values_beyond_a_share_are_refused() -> None:
    assert Parts([], CLUSTERS).means(np.zeros(SIZE)) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        Parts(PLACES, CLUSTERS).proportions(np.full(SIZE, 2.0))
