"""The paired tests: known answers, the agreement of test and interval, invariances, and false alarms by simulation."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import binomial, paired
from tests.stats.reference import mcnemar

ROWS = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 4)), min_size=1, max_size=14)


def _flip(values: list[tuple[int, int]], **more: Any) -> paired.Comparison:
    a = [float(v) for v, _ in values]
    return paired.permutation(a, [0.0] * len(a), [c for _, c in values], seed=0, **more)


def test_every_sign_pattern_is_tried_where_there_are_few() -> None:
    found = paired.permutation([3, 2, 4, 1], [1, 1, 1, 1.5], range(4), seed=0)
    # of 16 patterns of (2, 1, 3, -0.5) only four reach ±5.5: all plus but the last, all plus, and their opposites
    assert found.exact and found.value == pytest.approx(1.375) and found.p == 4 / 16
    one_sided = paired.permutation([3, 2, 4, 1], [1, 1, 1, 1.5], range(4), seed=0, alternative="greater")
    assert one_sided.p == 2 / 16


@given(ROWS)
@settings(max_examples=50, deadline=None)
def test_the_p_value_is_the_share_of_sign_patterns_that_reach_as_far(values: list[tuple[int, int]]) -> None:
    sums: dict[int, int] = {}
    for value, cluster in values:
        sums[cluster] = sums.get(cluster, 0) + value
    totals = [sum(s * v for s, v in zip(signs, sums.values(), strict=True))
              for signs in itertools.product((1, -1), repeat=len(sums))]  # fmt: skip
    seen = sum(sums.values())
    assert _flip(values).p == pytest.approx(np.mean([abs(t) >= abs(seen) for t in totals]))
    assert _flip(values, alternative="less").p == pytest.approx(np.mean([t <= seen for t in totals]))


@given(ROWS, st.floats(-3, 3), st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=100, deadline=None)
def test_the_interval_holds_what_the_test_does_not_reject(
    values: list[tuple[int, int]], null: float, level: float
) -> None:
    found = _flip(values, null=null, level=level)
    if min(abs(null - found.low), abs(null - found.high)) > 1e-6:
        assert (found.p > 1 - level + 1e-12) == (found.low < null < found.high)


@given(ROWS)
@settings(max_examples=50, deadline=None)
def test_swapping_the_sides_mirrors_everything(values: list[tuple[int, int]]) -> None:
    a = [float(v) for v, _ in values]
    clusters = [c for _, c in values]
    one = paired.permutation(a, [0.0] * len(a), clusters, seed=1, draws=200)
    other = paired.permutation([0.0] * len(a), a, clusters, seed=1, draws=200)
    assert (one.value, one.low, one.high, one.p) == pytest.approx(
        (-other.value, -other.high, -other.low, other.p), nan_ok=True
    )


def test_drawn_signs_are_mirrored_too_and_agree_with_their_interval() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        x = rng.normal(rng.uniform(0, 0.8), 1, 25)
        one = paired.permutation(x, np.zeros(25), range(25), seed=3, draws=400)
        other = paired.permutation(np.zeros(25), x, range(25), seed=3, draws=400)
        assert (one.value, one.low, one.high, one.p) == pytest.approx((-other.value, -other.high, -other.low, other.p))
        assert (one.p > 0.05) == (one.low < 0 < one.high)


def test_copies_of_rows_within_clusters_add_nothing() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 30))
    once = paired.permutation(a, b, range(30), seed=0)
    copied = paired.permutation(np.tile(a, 5), np.tile(b, 5), list(range(30)) * 5, seed=0)
    assert (once.low, once.high, once.p) == pytest.approx((copied.low, copied.high, copied.p))
    assert (copied.rows, copied.clusters) == (150, 30)


def test_drawn_signs_come_close_to_all_signs() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(0.5, 1, 16)
    exact = paired.permutation(x, np.zeros(16), range(16), seed=0)
    # sixteen clusters and four without any difference: the same test, but too many patterns to try
    drawn = paired.permutation([*x, 0, 0, 0, 0], np.zeros(20), range(20), seed=0, draws=100_000)
    assert exact.exact and not drawn.exact
    assert drawn.p == pytest.approx(exact.p, rel=0.1)


def test_on_zeros_and_ones_it_is_mcnemars_exact_test() -> None:
    a, b = [1] * 9 + [0] * 2, [0] * 9 + [1] * 2
    assert paired.permutation(a, b, range(11), seed=0).p == pytest.approx(mcnemar(a, b))


def test_too_few_clusters_say_nothing_rather_than_something_wrong() -> None:
    found = paired.permutation([1.0, 2.0], [0.0, 0.0], range(2), seed=0)
    assert (found.low, found.high, found.p) == (-math.inf, math.inf, 0.5)
    assert math.isnan(paired.permutation([], [], [], seed=0).p)


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="both for every row"):
        paired.permutation([1.0], [1.0, 2.0], [0], seed=0)
    with pytest.raises(ValueError, match="finite"):
        paired.permutation([math.nan], [1.0], [0], seed=0)
    with pytest.raises(ValueError, match="alternative"):
        paired.permutation([1.0], [1.0], [0], seed=0, alternative="better")  # type: ignore[arg-type]


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(9)
    replicates, clusters = 300, 40
    hits = alarms = 0
    for replicate in range(replicates):
        sizes = rng.integers(1, 4, clusters)
        labels = np.repeat(np.arange(clusters), sizes)
        a = 0.3 + rng.normal(size=clusters)[labels] + rng.normal(size=labels.size)
        found = paired.permutation(a, np.zeros(labels.size), labels.tolist(), seed=replicate, draws=500)
        hits += found.low <= 0.3 <= found.high
        shifted = np.full(labels.size, 0.3)
        alarms += paired.permutation(a, shifted, labels.tolist(), seed=replicate, draws=500).p <= 0.05
    # at least 93 % coverage must not look unlikely (the test is near-exact)
    assert binomial.at_most(hits, replicates, 0.93) > 0.001
    assert binomial.at_least(alarms, replicates, 0.07) > 0.001


def test_a_whole_benchmark_is_tested_in_seconds() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 16_000))
    start = time.perf_counter()
    paired.permutation(a, b, (np.arange(16_000) // 3).tolist(), seed=0)
    assert time.perf_counter() - start < 5
