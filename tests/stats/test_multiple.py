"""Holm's and Benjamini and Hochberg's adjustments: known answers, order, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import multiple

P = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_the_textbook_values() -> None:
    assert multiple.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert multiple.benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(P)
@settings(deadline=None)
def test_adjusting_never_makes_smaller_nor_changes_the_order(p: list[float]) -> None:
    strict, mild = multiple.holm(p), multiple.benjamini_hochberg(p)
    assert (mild >= np.array(p) - 1e-15).all() and (strict >= mild - 1e-12).all() and strict.max() <= 1
    order = np.argsort(p, kind="stable")
    assert (np.diff(strict[order]) >= 0).all() and (np.diff(mild[order]) >= 0).all()


@given(P, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_tests_does_not_matter(p: list[float], random: object) -> None:
    order = list(range(len(p)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for adjust in (multiple.holm, multiple.benjamini_hochberg):
        assert adjust([p[i] for i in order]).tolist() == adjust(p)[order].tolist()


def test_a_test_that_was_not_made_does_not_count() -> None:
    found = multiple.holm([0.01, math.nan, 0.04])
    assert found[[0, 2]].tolist() == multiple.holm([0.01, 0.04]).tolist() and math.isnan(found[1])
    assert multiple.benjamini_hochberg([]).size == 0


def test_no_p_value_lies_outside_0_and_1() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        multiple.holm([0.5, 1.2])


def test_holm_raises_a_false_alarm_as_rarely_as_it_says() -> None:
    rng = np.random.default_rng(0)
    alarms = [(multiple.holm(rng.random(10)) <= 0.05).any() for _ in range(2000)]
    assert 0.03 < np.mean(alarms) < 0.07
