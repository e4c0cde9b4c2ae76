"""The clustered bootstrap: its two paths agree, it covers, copies add nothing, and it is fast."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from overtone.stats import cluster
from overtone.stats.binomial import at_most
from overtone.stats.bootstrap import Method, clustered, resamples
from overtone.stats.correlation import pearson
from tests.stats.reference import clustered_means

REPLICATES = 300


def test_the_fast_path_of_means_draws_what_the_general_one_draws() -> None:
    rng = np.random.default_rng(1)
    x, ids = rng.exponential(size=90), list(rng.integers(0, 25, 90))
    fast = clustered_means(x, ids, seed=7, draws=300)
    slow = clustered(lambda rows: float(x[rows].mean()), ids, seed=7, draws=300)
    for part in ("value", "error", "low", "high"):
        assert getattr(fast, part) == pytest.approx(getattr(slow, part), abs=1e-9)
    assert (fast.rows, fast.clusters) == (slow.rows, slow.clusters) == (90, len(set(ids)))


def test_clusters_are_drawn_whole() -> None:
    ids = [0, 1, 0, 2, 1, 0]
    seen: list[list[int]] = []

    def look(rows: np.ndarray) -> float:
        seen.append(rows.tolist())
        return float(len(rows))

    clustered(look, ids, seed=0, draws=50)
    for rows in seen:
        times = [rows.count(row) for row in range(6)]
        assert times[0] == times[2] == times[5] and times[1] == times[4]
        assert times[0] + times[1] + times[3] == 3
    assert len({tuple(sorted(rows)) for rows in seen}) > 5


def test_blocks_of_draws_do_not_change_the_draws() -> None:
    blocks = np.concatenate(list(resamples(1_500, seed=3, draws=3_000)))
    rng = np.random.default_rng(3)
    for row in blocks[:5].tolist():
        assert row == np.bincount(rng.integers(1_500, size=1_500), minlength=1_500).tolist()
    assert blocks.shape == (3_000, 1_500) and (blocks.sum(1) == 1_500).all()
    late = np.random.default_rng(3).integers(1_500, size=(3_000, 1_500))[-1]
    assert blocks[-1].tolist() == np.bincount(late, minlength=1_500).tolist(), "the last block's too"


def test_the_error_is_that_of_the_sandwich() -> None:
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(80), 4)
    x = rng.normal(size=80)[ids] + 0.5 * rng.normal(size=ids.size)
    drawn, formula = clustered_means(x, list(ids), seed=1, draws=4000), cluster.mean(x, list(ids))
    assert drawn.error == pytest.approx(formula.error, rel=0.05)
    assert drawn.low == pytest.approx(formula.low, abs=0.2 * formula.error)


def test_ten_copies_of_each_row_do_not_narrow_the_interval() -> None:
    x = np.random.default_rng(0).normal(size=30)
    once = clustered_means(x, range(30), seed=2)
    copied = clustered_means(np.tile(x, 10), list(range(30)) * 10, seed=2)
    assert (copied.low, copied.high) == pytest.approx((once.low, once.high))


def test_a_paired_difference_is_narrower_than_what_the_pairs_share() -> None:
    rng = np.random.default_rng(4)
    a = 5 * rng.normal(size=100)
    b = a + 0.1 + 0.1 * rng.normal(size=100)
    found = clustered_means(b - a, range(100), seed=0)
    assert 0.05 < found.low < found.value < found.high < 0.15
    assert clustered_means(a - b, range(100), seed=0).value == pytest.approx(-found.value)


def _covered(method: Method, statistic: str) -> int:
    hits = 0
    for seed in range(REPLICATES):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(60), 3)
        shared = rng.normal(size=60)[ids]
        x = shared + rng.normal(size=ids.size)
        if statistic == "mean":
            found = clustered_means(x + 2, list(ids), seed=seed, draws=400, method=method)
            truth = 2.0
        else:
            y = shared + rng.normal(size=ids.size)
            found = clustered(lambda rows: pearson(x[rows], y[rows]), list(ids), seed=seed, draws=150)  # noqa: B023
            truth = 0.5
        hits += found.low <= truth <= found.high
    return hits


@pytest.mark.parametrize(
    ("method", "statistic"),
    [("percentile", "mean"), ("bca", "mean"), pytest.param("percentile", "r", marks=pytest.mark.full)],
)
def test_it_covers_about_as_often_as_it_says(method: Method, statistic: str) -> None:
    hits = _covered(method, statistic)
    assert at_most(hits, REPLICATES, 0.935) > 0.001, (
        f"{hits} of {REPLICATES}"
    )  # percentiles of 60 clusters fall a little short
    assert hits / REPLICATES < 0.99


def test_draws_without_a_value_are_left_out_and_no_spread_is_not_known_from_one_cluster() -> None:
    x = np.array([1.0, 1.0, 1.0, 2.0])

    def varies(rows: np.ndarray) -> float:
        return float(x[rows].max() - x[rows].min()) or math.nan

    found = clustered(varies, range(4), seed=0, draws=100)
    assert (found.value, found.low, found.high) == (1, 1, 1)
    lonely = clustered(lambda _: 1.5, "aa", seed=0)
    assert lonely.value == 1.5 and math.isnan(lonely.low) and lonely.clusters == 1
    assert math.isnan(clustered(lambda _: math.nan, "abc", seed=0).low)


def test_ten_thousand_draws_of_three_thousand_rows_take_at_most_a_second_and_a_half() -> None:
    x = np.random.default_rng(0).normal(size=3000)
    start = time.process_time()
    clustered_means(x, range(3000), seed=0, draws=10_000)
    assert time.process_time() - start < 1.5


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="two draws"):
        clustered(lambda _: 1.5, "ab", seed=0, draws=1)
    with pytest.raises(ValueError, match="level between 0 and 1"):
        clustered(lambda _: 1.5, "ab", seed=0, level=95)
