"""Power and size: against simulated tests, against each other, and in the directions they must move."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import binomial, cluster, power
from tests.stats.reference import mcnemar

REPLICATES = 400


def _plausible(found: int, expected: float, slack: float) -> bool:
    """Whether so many finds fit a power of `expected`, give or take `slack`."""
    low, high = max(0.0, expected - slack), min(1.0, expected + slack)
    return binomial.at_most(found, REPLICATES, low) > 0.001 and binomial.at_least(found, REPLICATES, high) > 0.001


@pytest.mark.parametrize(("clusters", "per_cluster", "alike"), [(20, 1, 0.0), (40, 3, 0.4), (60, 3, 0.0)])
def test_simulated_tests_of_means_find_as_often_as_said(clusters: int, per_cluster: int, alike: float) -> None:
    rng = np.random.default_rng(0)
    difference = 2.5 * math.sqrt(power.design_effect(per_cluster, alike) / (clusters * per_cluster))
    expected = power.mean_power(difference, 1.0, clusters, per_cluster=per_cluster, alike=alike)
    labels = np.repeat(np.arange(clusters), per_cluster).tolist()
    found = 0
    for _ in range(REPLICATES):
        shared = rng.normal(size=clusters).repeat(per_cluster)
        x = difference + math.sqrt(alike) * shared + math.sqrt(1 - alike) * rng.normal(size=shared.size)
        found += cluster.mean(x, labels).low > 0
    assert 0.6 < expected < 0.8 and _plausible(found, expected, 0.02)


def test_simulated_tests_of_proportions_find_as_often_as_said() -> None:
    rng = np.random.default_rng(1)
    only_a, only_b = power.discordant(0.62, 0.55, 0.4)
    design = power.proportion_size(only_a, only_b, power=0.8)
    kinds = rng.multinomial(design.rows, [only_a, only_b, 1 - only_a - only_b], size=REPLICATES)
    found = 0
    for a, b, _ in kinds:
        zeros_and_ones = [1.0] * a + [0.0] * b
        found += mcnemar(zeros_and_ones, [1 - x for x in zeros_and_ones]) <= 0.05
    assert _plausible(found, 0.8, 0.04)  # the exact test is a little more careful than its approximation


@given(st.floats(0.01, 1), st.floats(0.3, 3), st.sampled_from([1, 3]), st.floats(0, 0.9), st.floats(0.3, 0.95))
@settings(deadline=None)
def test_a_size_is_the_smallest_that_reaches_the_power(
    difference: float, spread: float, per_cluster: int, alike: float, wanted: float
) -> None:
    design = power.mean_size(difference, spread, power=wanted, per_cluster=per_cluster, alike=alike)
    assert design.power >= wanted and design.rows == design.clusters * per_cluster
    if design.clusters > 2:
        fewer = power.mean_power(difference, spread, design.clusters - 1, per_cluster=per_cluster, alike=alike)
        assert fewer < wanted


def test_the_textbook_sizes() -> None:
    # (1.96 + 0.8416)² · 100 = 784.9 rows for a tenth of a standard deviation, and two more for Student's tails
    assert power.mean_size(0.1, 1.0).rows == pytest.approx(787, abs=1)
    # Connor (1987): (1.96·√0.3 + 0.8416·√(0.3 − 0.01))² ÷ 0.01
    assert power.proportion_size(0.2, 0.1).rows == 234
    assert power.proportion_size(0.2, 0.1, per_cluster=3, alike=0.5).rows == pytest.approx(2 * 234, abs=3)


def test_nothing_is_found_as_often_as_the_level_allows() -> None:
    assert power.mean_power(0, 1, 30) == pytest.approx(0.05, abs=1e-5)
    assert power.proportion_power(0.1, 0.1, 500) == pytest.approx(0.05)


def test_alike_rows_cost_and_alike_systems_save() -> None:
    assert power.design_effect(3, 0.5) == 2
    assert power.mean_power(0.2, 1, 50, per_cluster=3, alike=0.5) < power.mean_power(0.2, 1, 50, per_cluster=3)
    assert power.spread_of_difference(1, 1, 0.5) == pytest.approx(1)
    assert sum(power.discordant(0.6, 0.5, 0.5)) < sum(power.discordant(0.6, 0.5, 0))
    assert power.discordant(0.6, 0.5) == pytest.approx((0.3, 0.2))


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="difference of 0"):
        power.mean_size(0, 1)
    with pytest.raises(ValueError, match="power must be between"):
        power.mean_size(0.1, 1, power=1)
    with pytest.raises(ValueError, match="cannot have a correlation"):
        power.discordant(0.9, 0.1, 0.9)
    with pytest.raises(ValueError, match="two clusters"):
        power.mean_power(0.1, 1, 1)
    with pytest.raises(ValueError, match="such a small"):
        power.mean_size(1e-9, 1)
