"""The intraclass correlations on Shrout and Fleiss's own table, in the extremes, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import binomial, icc

# Shrout and Fleiss (1979), table 2: four judges (columns there) of six targets
SHROUT = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float).T
TABLES = st.integers(2, 5).flatmap(
    lambda raters: st.lists(st.lists(st.integers(1, 5), min_size=raters, max_size=raters), min_size=3, max_size=8)
)


def test_the_published_values_are_met() -> None:
    found = {kind: icc.icc(SHROUT, kind).value for kind in icc.KINDS}
    expected = {"ICC1": 0.17, "ICC2": 0.29, "ICC3": 0.71, "ICC1k": 0.44, "ICC2k": 0.62, "ICC3k": 0.91}
    assert {kind: round(value, 2) for kind, value in found.items()} == expected


def test_the_published_interval_of_single_ratings_is_met() -> None:
    found = icc.icc(SHROUT, "ICC1")
    assert (found.low, found.high) == pytest.approx((-0.133, 0.723), abs=0.001)
    assert (found.units, found.raters) == (6, 4)


def test_a_rater_a_point_higher_matters_to_icc2_and_not_to_icc3() -> None:
    table = [[1.0, 2, 3, 4, 5], [2.0, 3, 4, 5, 6]]
    assert icc.icc(table, "ICC3").value == pytest.approx(1)
    found = icc.icc(table, "ICC2")
    assert 0.8 < found.value < 0.9
    assert found.low < found.value < found.high


def test_raters_who_contradict_each_other_are_below_0_with_an_interval() -> None:
    found = icc.icc([[1.0, 2, 4, 2], [4.0, 3, 1, 3.5]], "ICC2")
    assert found.value < 0 and found.low < found.value < found.high < 1
    assert icc.icc([[2.0, 2, 3], [4.0, 4, 3]], "ICC2").value == pytest.approx(-1 / 3)
    assert math.isnan(icc.icc([[1.0, 2], [2.0, 1]], "ICC2").value)  # no variance is left to share


def test_raters_who_agree_fully_have_1_and_those_who_never_vary_have_nothing() -> None:
    table = [[1.0, 2, 3]] * 3
    for kind in icc.KINDS:
        found = icc.icc(table, kind)
        assert (found.value, found.low, found.high, found.p) == (1, 1, 1, 0)
        assert math.isnan(icc.icc([[2.0, 2, 2]] * 3, kind).value)


@given(TABLES, st.sampled_from(icc.KINDS), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_and_the_scale_do_not_matter(rows: list[list[int]], kind: icc.Kind, random: object) -> None:
    table = np.array(rows, dtype=float).T
    order = list(range(table.shape[1]))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = table[::-1][:, order]
    one, two, three = icc.icc(table, kind), icc.icc(shuffled, kind), icc.icc(3 * table - 7, kind)
    for other in (two, three):
        assert (one.value, one.low, one.high) == pytest.approx(
            (other.value, other.low, other.high), rel=1e-6, abs=1e-9, nan_ok=True
        )
    if math.isfinite(one.low):
        assert one.low <= one.value + 1e-12 and one.value <= one.high + 1e-12


@pytest.mark.parametrize("kind", ["ICC1", "ICC2", "ICC3"])
def test_the_intervals_hold_the_truth_as_often_as_they_say(kind: icc.Kind) -> None:
    rng = np.random.default_rng(1)
    replicates, hits = 300, 0
    # raters' own habits have the variance 0.5 and are noise to ICC1 and ICC2; to ICC3 they do not count
    habit = 0.0 if kind == "ICC1" else math.sqrt(0.5)
    truth = {"ICC1": 1 / 2, "ICC2": 1 / 2.5, "ICC3": 1 / 2}[kind]
    for _ in range(replicates):
        table = rng.normal(size=(1, 25)) + habit * rng.normal(size=(6, 1)) + rng.normal(size=(6, 25))
        found = icc.icc(table, kind)
        hits += found.low <= truth <= found.high
    assert binomial.at_most(hits, replicates, 0.95) > 0.001
    assert binomial.at_least(hits, replicates, 0.95) > 0.001


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        icc.icc([[1.0, math.nan], [1.0, 2.0]])
    with pytest.raises(ValueError, match="at least two raters"):
        icc.icc([[1.0, 2.0]])
    with pytest.raises(ValueError, match="ICC1k"):
        icc.icc(SHROUT, "ICC4")  # type: ignore[arg-type]
