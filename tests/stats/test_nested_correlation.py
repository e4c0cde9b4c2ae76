"""Correlations within and across groups, against the plain coefficients and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overtone.stats import correlation, nested_correlation


def test_within_one_group_they_are_the_plain_coefficients() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 5, 80).astype(float)
    y = x + rng.integers(0, 4, 80).astype(float)
    clusters = list(range(80))
    assert nested_correlation.pearson(x, y, [0] * 80, clusters, seed=1).value == pytest.approx(
        correlation.pearson(x, y)
    )
    assert nested_correlation.spearman(x, y, [0] * 80, clusters).value == pytest.approx(correlation.spearman(x, y))
    both = nested_correlation.across(x, y, clusters, seed=1)
    assert [b.value for b in both] == pytest.approx([correlation.pearson(x, y), correlation.spearman(x, y)])


def test_what_differs_between_groups_plays_no_part_within_them() -> None:
    x = [1.0, 2.0, 3.0, 101.0, 102.0, 103.0]
    y = [3.0, 2.0, 1.0, 503.0, 502.0, 501.0]
    groups = ["a"] * 3 + ["b"] * 3
    scripts = ["s1", "s2", "s3"] * 2
    assert nested_correlation.pearson(x, y, groups, scripts, seed=1).value == pytest.approx(-1)
    assert nested_correlation.spearman(x, y, groups, scripts).value == pytest.approx(-1)


def test_the_error_of_spearman_is_that_of_leaving_clusters_out() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(60), 4)
    lift = np.repeat(rng.normal(size=60), 4)
    groups = np.tile([0, 0, 1, 1], 60)
    x = np.round(rng.normal(size=240) + lift)
    y = np.round(0.6 * x + rng.normal(size=240) + lift, 1)
    found = nested_correlation.spearman(x, y, groups.tolist(), clusters.tolist())
    left = []
    for c in range(60):
        keep = clusters != c
        left.append(nested_correlation.spearman(x[keep], y[keep], groups[keep].tolist(), clusters[keep].tolist()).value)
    error = math.sqrt(59 / 60 * float(((np.array(left) - np.mean(left)) ** 2).sum()))
    assert found.error == pytest.approx(error, rel=0.06)
    assert -1 < found.low < found.value < found.high < 1


def test_the_interval_of_pearson_is_about_fishers_where_rows_are_independent() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    y = 0.5 * x + rng.normal(size=400)
    found = nested_correlation.pearson(x, y, [0] * 400, list(range(400)), seed=1, draws=2000)
    centre, half = math.atanh(correlation.pearson(x, y)), 1.959964 / math.sqrt(397)
    low, high = math.tanh(centre - half), math.tanh(centre + half)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)


@pytest.mark.parametrize("ranked", [False, True])
def test_intervals_cover_the_truth_as_often_as_they_say(ranked: bool) -> None:
    rng = np.random.default_rng(11)
    r, hit = 0.5, 0
    truth = 6 / math.pi * math.asin(r / 2) if ranked else r
    for number in range(200):
        shared = rng.normal(size=(60, 1, 2))
        rows = (shared + rng.normal(size=(60, 3, 2))) / math.sqrt(2)
        y = r * rows[..., 0] + math.sqrt(1 - r**2) * rows[..., 1]
        x, y, scripts = rows[..., 0].ravel(), y.ravel(), np.repeat(np.arange(60), 3).tolist()
        if ranked:
            found = nested_correlation.spearman(x, y, [0] * 180, scripts)
        else:
            found = nested_correlation.pearson(x, y, [0] * 180, scripts, seed=number, draws=400)
        hit += found.low <= truth <= found.high
    assert 180 <= hit <= 199


def test_intervals_over_ten_models_keep_about_what_they_promise() -> None:
    rng = np.random.default_rng(1)
    hits = np.zeros(2)
    for number in range(200):
        x = rng.normal(size=10)
        y = 0.5 * x + math.sqrt(0.75) * rng.normal(size=10)
        pearson, spearman = nested_correlation.across(x, y, list(range(10)), seed=number, draws=400)
        hits += [pearson.low <= 0.5 <= pearson.high, spearman.low <= 6 / math.pi * math.asin(0.25) <= spearman.high]
    assert (hits >= 178).all()


def test_means_within_groups_correlate_as_if_worked_out_by_hand() -> None:
    rng = np.random.default_rng(2)
    groups, cells, clusters = (rng.integers(0, n, 300) for n in (2, 5, 40))
    x, y = rng.normal(size=300), rng.normal(size=300)
    first, second = (nested_correlation.Means(v, groups, cells, clusters, (2, 5, 40), seed=1, draws=50) for v in (x, y))
    means = [np.array([[v[(groups == g) & (cells == k)].mean() for k in range(5)] for g in range(2)]) for v in (x, y)]
    centred = [(m - m.mean(1, keepdims=True)).ravel() for m in means]
    pearson, spearman = nested_correlation.of_means(first, second, rows=10, clusters=40)
    assert pearson.value == pytest.approx(correlation.pearson(*centred))
    ranked = [np.concatenate([correlation._ranks(row) - 3 for row in m]) for m in means]
    assert spearman.value == pytest.approx(correlation.pearson(*ranked))
    assert pearson.low < pearson.high


def test_the_interval_of_means_covers_what_means_over_so_many_rows_correlate_like() -> None:
    rng = np.random.default_rng(1)
    cells, scripts, hits = np.repeat(np.arange(20), 12), np.arange(240), 0
    for number in range(100):
        truth = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=20) * 0.5
        again = truth + rng.normal(size=(100, 20, 2)) / math.sqrt(12)
        expected = float(np.mean([correlation.pearson(one[:, 0], one[:, 1]) for one in again]))
        sides = [truth[cells, k] + rng.normal(size=240) for k in (0, 1)]
        group = np.zeros(240, dtype=np.intp)
        first, second = (
            nested_correlation.Means(v, group, cells, scripts, (1, 20, 240), seed=number, draws=200) for v in sides
        )
        found, _ = nested_correlation.of_means(first, second, rows=20, clusters=240)
        hits += found.low <= expected <= found.high
    assert 84 <= hits <= 99


def test_where_nothing_varies_or_nothing_is_there_no_number_is_given() -> None:
    assert math.isnan(nested_correlation.pearson([1, 1, 1], [1, 2, 3], [0] * 3, [0, 1, 2], seed=1).value)
    assert math.isnan(nested_correlation.spearman([1, 1, 1], [1, 2, 3], [0] * 3, [0, 1, 2]).value)
    assert math.isnan(nested_correlation.pearson([], [], [], [], seed=1).value)
    assert math.isnan(nested_correlation.spearman([], [], [], []).value)
    assert math.isnan(nested_correlation.across([], [], [], seed=1)[0].value)
    alone = nested_correlation.pearson([1, 2], [1, 2], [0, 0], ["s", "s"], seed=1)
    assert alone.value == pytest.approx(1)
    assert math.isnan(alone.low)
    with pytest.raises(ValueError, match="lengths must match"):
        nested_correlation.pearson([1, 2], [1], [0, 0], [0, 0], seed=1)
    with pytest.raises(ValueError, match="not finite"):
        nested_correlation.spearman([1, math.nan], [1, 2], [0, 0], [0, 0])


def test_rounding_noise_is_no_variation_in_any_of_the_coefficients() -> None:
    rng = np.random.default_rng(5)
    noise, real = 1.0 + rng.integers(-2, 3, 40) * 2.3e-16, rng.normal(size=40)
    groups, clusters = [n % 2 for n in range(40)], [n // 2 for n in range(40)]
    assert math.isnan(nested_correlation.pearson(noise, real, groups, clusters, seed=1).value)
    assert math.isnan(nested_correlation.spearman(real, noise, groups, clusters).value)
    assert all(math.isnan(found.value) for found in nested_correlation.across(noise, real, clusters, seed=1))
    places = [np.arange(40) % 2, np.arange(40) % 5, np.arange(40) // 2]
    sides = [nested_correlation.Means(x, *places, (2, 5, 20), seed=1, draws=50) for x in (noise, real)]  # type: ignore[arg-type]
    assert all(math.isnan(found.value) for found in nested_correlation.of_means(*sides, 10, 20))
