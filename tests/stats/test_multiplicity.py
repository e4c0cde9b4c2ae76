"""Holm's adjustment: known answers, order, and what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import multiplicity

P = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_the_textbook_values() -> None:
    assert multiplicity.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(P)
@settings(deadline=None)
def test_adjusting_never_makes_smaller_nor_changes_the_order(p: list[float]) -> None:
    adjusted = multiplicity.holm(p)
    assert (adjusted >= np.array(p) - 1e-15).all() and adjusted.max() <= 1
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


@given(P, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_tests_does_not_matter(p: list[float], random: object) -> None:
    order = list(range(len(p)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert multiplicity.holm([p[i] for i in order]).tolist() == multiplicity.holm(p)[order].tolist()


def test_a_test_that_was_not_made_does_not_count() -> None:
    found = multiplicity.holm([0.01, math.nan, 0.04])
    assert found[[0, 2]].tolist() == multiplicity.holm([0.01, 0.04]).tolist() and math.isnan(found[1])
    assert multiplicity.holm([]).size == 0


def test_no_p_value_lies_outside_0_and_1() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        multiplicity.holm([0.5, 1.2])


def test_holm_raises_a_false_alarm_as_rarely_as_it_says() -> None:
    rng = np.random.default_rng(0)
    alarms = [(multiplicity.holm(rng.random(10)) <= 0.05).any() for _ in range(2000)]
    assert 0.03 < np.mean(alarms) < 0.07
