"""Known answers and simulations for the clustered intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overtone.stats import cluster

RUNS = 400


def test_with_every_row_its_own_cluster_the_error_is_the_textbook_one() -> None:
    x = [1.0, 2.0, 4.0, 9.0]
    found = cluster.mean(x, range(4))
    assert found.value == 4.0
    assert found.error == pytest.approx(np.std(x, ddof=1) / 2)
    assert found.high - found.value == pytest.approx(3.182446 * found.error, rel=1e-4)


def test_ten_copies_of_each_row_do_not_narrow_the_interval() -> None:
    x = [0.1, 0.5, 0.4, 0.8, 0.3]
    once = cluster.mean(x, range(5))
    copied = cluster.mean(x * 10, list(range(5)) * 10)
    assert copied.error == pytest.approx(once.error)
    assert (copied.rows, copied.clusters) == (50, 5)


@pytest.mark.parametrize(
    ("df", "expected"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (5, 2.57058), (10, 2.22814),
                         (30, 2.04227), (120, 1.97993), (5000, 1.96044)]
)  # fmt: skip
def test_the_student_quantile_matches_the_tables(df: int, expected: float) -> None:
    assert cluster.student_quantile(0.975, df) == pytest.approx(expected, rel=2e-4)


def _coverage(draw: object, truth: float, estimate: object) -> float:
    hits = 0
    for seed in range(RUNS):
        found = estimate(*draw(np.random.default_rng(seed)))  # type: ignore[operator]
        hits += found.low <= truth <= found.high
    return hits / RUNS


def test_the_mean_covers_the_truth_where_a_naive_interval_would_not() -> None:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        ids = np.repeat(np.arange(60), 6)
        return 3 + rng.normal(size=60)[ids] + 0.3 * rng.normal(size=ids.size), ids

    assert 0.92 <= _coverage(draw, 3.0, lambda x, ids: cluster.mean(x, list(ids))) <= 0.98
    assert _coverage(draw, 3.0, lambda x, ids: cluster.mean(x, range(x.size))) < 0.75


def test_the_proportion_covers_the_truth_when_clusters_agree() -> None:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        ids = np.repeat(np.arange(50), 4)
        easy = rng.beta(1.8, 0.6, size=50)[ids]  # mean 0.75, strongly clustered
        return (rng.random(ids.size) < easy).astype(float), ids

    assert 0.92 <= _coverage(draw, 0.75, lambda x, ids: cluster.proportion(x, list(ids))) <= 0.985


def test_the_ratio_of_sums_covers_the_truth() -> None:
    def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ids = np.repeat(np.arange(80), 3)
        words = rng.integers(5, 20, size=80)[ids].astype(float)
        rate = np.clip(rng.normal(0.1, 0.04, size=80), 0, 1)[ids]
        return rng.binomial(words.astype(int), rate).astype(float), words, ids

    assert 0.92 <= _coverage(draw, 0.1003, lambda n, d, ids: cluster.ratio(n, d, list(ids))) <= 0.98


def test_the_ratio_weighs_by_its_denominator() -> None:
    assert cluster.ratio([1, 0], [10, 90], ["a", "b"]).value == pytest.approx(0.01)
    assert cluster.ratio([1, 2, 3], [10, 20, 30], "abc").error == pytest.approx(0, abs=1e-12)


def test_the_mean_of_means_counts_each_stratum_once() -> None:
    values = [1.0] * 90 + [0.0] * 10
    strata = ["big"] * 90 + ["small"] * 10
    assert cluster.mean_of_means(values, strata, range(100)).value == pytest.approx(0.5)
    x = [0.2, 0.9, 0.4]
    assert cluster.mean_of_means(x, "aaa", range(3)).error == pytest.approx(cluster.mean(x, range(3)).error)


def test_a_proportion_of_all_right_is_not_certain() -> None:
    found = cluster.proportion([1.0] * 20, range(20))
    assert found.value == found.high == 1.0
    assert 0.8 < found.low < 0.9
    assert cluster.proportion([1.0] * 20, [0, 1] * 10).low < found.low


def test_one_cluster_gives_a_value_without_an_interval() -> None:
    for found in (cluster.mean([1, 0], "aa"), cluster.proportion([1, 0], "aa"), cluster.ratio([1, 0], [2, 2], "aa")):
        assert not math.isnan(found.value)
        assert math.isnan(found.low)
        assert math.isnan(found.error)


def test_nothing_gives_nothing_and_bad_input_is_refused() -> None:
    assert math.isnan(cluster.mean([], []).value)
    assert math.isnan(cluster.ratio([0.0], [0.0], "a").value)
    with pytest.raises(ValueError, match="cluster labels"):
        cluster.mean([1.0], [])
    with pytest.raises(ValueError, match="finite"):
        cluster.mean([math.nan, 1.0], "ab")
    with pytest.raises(ValueError, match="between 0 and 1"):
        cluster.proportion([2.0, 1.0], "ab")


def test_a_difference_of_proportions_is_newcombes_where_rows_are_independent() -> None:
    x = [1.0] * 56 + [0.0] * 14 + [1.0] * 48 + [0.0] * 32
    found = cluster.difference(x, [True] * 70 + [False] * 80, range(150))
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=0.005), "Newcombe 1998; ours has Student’s t"


def test_a_difference_of_proportions_covers_the_truth_where_clusters_span_both_sides() -> None:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(RUNS):
        easy = rng.beta(1, 1, size=40) * 0.4
        labels = np.repeat(np.arange(40), 6)
        side = rng.random(240) < 0.5
        x = (rng.random(240) < easy[labels] + np.where(side, 0.5, 0.2)).astype(float)
        found = cluster.difference(x, side.tolist(), labels.tolist())
        covered += found.low <= 0.3 <= found.high
    assert 0.92 <= covered / RUNS <= 0.985


def test_sides_that_all_agree_leave_room_and_a_side_of_one_cluster_has_no_interval() -> None:
    found = cluster.difference([1.0] * 6 + [0.0] * 6, [True] * 6 + [False] * 6, range(12))
    assert found.value == 1.0 and found.low < 0.6 and found.high == 1.0
    alone = cluster.difference([1.0, 0.0, 1.0], [True, False, False], "abc")
    assert alone.value == 0.5 and math.isnan(alone.low)
    assert math.isnan(cluster.difference([1.0], [True], "a").value), "no other side"
