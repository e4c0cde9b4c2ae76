"""Krippendorff's α: his own worked values, another implementation's to the last digits, and where it is not defined."""

from __future__ import annotations

import math
import time

import krippendorff
import numpy as np
import pytest

from overtone.stats.agreement import Level, agreement, alpha, percent

N = None
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), section C: four observers, twelve units.
WORKED: list[list[float | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_the_published_worked_values_come_out(level: Level, published: float) -> None:
    assert alpha(WORKED, level) == pytest.approx(published, abs=0.0006)


def test_binary_data_of_two_observers_gives_the_published_value() -> None:
    # the same paper, section A: two observers, ten units
    assert alpha([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]) == pytest.approx(0.095, abs=0.0006)


def test_nominal_letters_of_two_observers_give_the_published_value() -> None:
    # section B: two observers, twelve units
    letters = [[float(ord(x)) for x in row] for row in ("aabbdcccedda", "babbbccceddd")]
    assert alpha(letters) == pytest.approx(0.692, abs=0.0006)


@pytest.mark.parametrize("level", LEVELS)
def test_it_agrees_with_the_krippendorff_package_on_random_tables_with_gaps(level: Level) -> None:
    rng = np.random.default_rng(3)
    for raters, units, kinds in [(2, 30, 3), (3, 12, 5), (6, 50, 2), (4, 9, 7)]:
        table = rng.integers(1, kinds + 1, (raters, units)).astype(float)
        table[1:] = np.where(rng.random((raters - 1, units)) < 0.5, table[0], table[1:])
        table[rng.random(table.shape) < 0.25] = np.nan
        theirs = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
        assert alpha(table, level) == pytest.approx(theirs, abs=1e-10)


def test_perfect_agreement_is_one_and_its_interval_too() -> None:
    found = agreement([[1, 2, 3, 1], [1, 2, 3, 1]], "ordinal", seed=0, draws=200)
    assert (found.alpha, found.low, found.high, found.percent) == (1, 1, 1, 1)
    assert (found.units, found.raters) == (4, 2)


def test_nothing_is_said_where_nobody_rated_the_same_unit_or_nothing_varied() -> None:
    for table in ([[1, N], [N, 2]], [[1, 1, 1], [1, 1, 1]], []):
        found = agreement(table, seed=0, draws=20)  # type: ignore[arg-type]
        assert math.isnan(found.alpha)
        assert math.isnan(found.low)
    assert percent([[1, 1, 1], [1, 1, 1]]) == 1
    assert math.isnan(percent([[1, N], [N, 2]]))


def test_the_interval_holds_the_value_and_narrows_with_more_units() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 400)
    table = np.stack([np.where(rng.random(400) < 0.7, truth, rng.integers(0, 3, 400)) for _ in range(3)]).astype(float)
    few, many = (agreement(table[:, :n], seed=0, draws=300) for n in (40, 400))
    for found in (few, many):
        assert found.low < found.alpha < found.high
    assert many.high - many.low < (few.high - few.low) / 2


def test_percent_agreement_counts_pairs() -> None:
    assert percent([[1, 1], [1, 2], [2, 2]]) == pytest.approx(2 / 6)


def test_raters_with_rows_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="None where a rating is missing"):
        alpha([[1, 2], [1]])


def test_values_below_zero_are_no_ratio_data() -> None:
    with pytest.raises(ValueError, match="below 0"):
        alpha([[-1, 2], [1, 2]], "ratio")


def test_units_of_one_cluster_are_drawn_together_so_copies_add_nothing() -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(1, 6, 40)
    table = np.stack([np.where(rng.random(40) < 0.6, truth, rng.integers(1, 6, 40)) for _ in range(2)]).astype(float)
    for level in LEVELS:
        once = agreement(table, level, seed=0, draws=1000)
        copied = np.repeat(table, 5, axis=1)
        clusters = np.repeat(np.arange(40), 5).tolist()
        together = agreement(copied, level, seed=0, draws=1000, clusters=clusters)
        apart = agreement(copied, level, seed=0, draws=1000)
        assert together.high - together.low == pytest.approx(once.high - once.low, rel=0.05)
        assert apart.high - apart.low < 0.6 * (once.high - once.low)
    assert math.isnan(agreement(table, seed=0, clusters=["a"] * 40).low), "one cluster shows no spread"
    with pytest.raises(ValueError, match="40 units but 2 cluster labels"):
        agreement(table, seed=0, clusters="ab")


@pytest.mark.parametrize("level", LEVELS)
def test_every_draw_is_the_alpha_of_the_drawn_units(level: Level) -> None:
    rng = np.random.default_rng(4)
    table = rng.integers(1, 5, (3, 25)).astype(float)
    table[rng.random(table.shape) < 0.2] = np.nan
    table = table[:, (~np.isnan(table)).sum(0) >= 2]
    again = np.random.default_rng(6)
    drawn = [alpha(table[:, again.integers(table.shape[1], size=table.shape[1])], level) for _ in range(200)]
    found = agreement(table, level, seed=6, draws=200)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=1e-9)


def test_two_thousand_draws_of_a_thousand_ordinal_units_take_seconds_at_most() -> None:
    table = np.random.default_rng(0).integers(1, 6, (3, 1000)).astype(float)
    start = time.process_time()
    agreement(table, "ordinal", seed=0)
    assert time.process_time() - start < 3
