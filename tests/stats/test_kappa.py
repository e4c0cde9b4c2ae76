"""κ and shares of agreement: textbook values, invariances, and where they are not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.stats.kappa import cohen, confusion, exact, within

PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=30)
WEIGHTS = st.sampled_from([None, "linear", "quadratic"])


def same(a: float, b: float) -> bool:
    return a == pytest.approx(b, abs=1e-12) or (math.isnan(a) and math.isnan(b))


def test_the_textbook_table_of_two_raters_comes_out() -> None:
    # 50 grant applications: both yes 20, only A 5, only B 10, both no 15; agreement 0.7, chance 0.5
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen(a, b) == pytest.approx(0.4)
    assert exact(a, b) == pytest.approx(0.7)
    assert confusion(a, b, ["yes", "no"]).tolist() == [[20, 5], [10, 15]]


def test_weights_are_distances_of_the_values_themselves() -> None:
    a, b = [1, 5, 1, 5], [1, 5, 5, 1]
    assert cohen(a, b, "linear") == cohen(a, b) == 0, "two values are always equally far apart"
    assert cohen([1, 2, 9], [1, 2, 2], "quadratic") == pytest.approx(1 - (49 / 3) / ((1 + 1 + 1 + 64 + 2 * 49) / 9))


def test_within_counts_neighbours() -> None:
    assert within([1, 2, 3, 5], [1, 3, 5, 1]) == 0.5
    assert within([1, 2, 3, 5], [1, 3, 5, 1], by=2) == 0.75
    assert within([0.3], [0.2], by=0.1) == 1, "rounding does not push a neighbour out"


def test_no_variation_gives_no_kappa_and_one_constant_rater_gives_zero() -> None:
    for weights in (None, "linear", "quadratic"):
        assert math.isnan(cohen([3, 3], [3, 3], weights))  # type: ignore[arg-type]
        assert math.isnan(cohen([], [], weights))  # type: ignore[arg-type]
        assert cohen([3, 3, 3], [1, 3, 5], weights) == pytest.approx(0)  # type: ignore[arg-type]
    assert math.isnan(exact([], [])) and math.isnan(within([], []))


@given(PAIRS, WEIGHTS, st.randoms(use_true_random=False))
def test_kappa_does_not_depend_on_who_is_first_on_the_order_of_rows_or_on_the_unit(pairs, weights, random) -> None:  # type: ignore[no-untyped-def]
    a, b = (list(side) for side in zip(*pairs, strict=True))
    value = cohen(a, b, weights)
    assert same(cohen(b, a, weights), value)
    random.shuffle(pairs)
    assert same(cohen([p[0] for p in pairs], [p[1] for p in pairs], weights), value)
    assert same(cohen([7 - 2 * x for x in a], [7 - 2 * x for x in b], weights), value)
    assert math.isnan(value) or -1 - 1e-9 <= value <= 1


@given(PAIRS, st.permutations(["a", "b", "c", "d", "e"]))
def test_plain_kappa_and_exact_agreement_do_not_depend_on_the_names(pairs, names) -> None:  # type: ignore[no-untyped-def]
    a, b = (list(side) for side in zip(*pairs, strict=True))
    renamed = [[names[x - 1] for x in side] for side in (a, b)]
    assert same(cohen(*renamed), cohen(a, b))
    assert exact(*renamed) == exact(a, b) == np.trace(confusion(a, b, range(1, 6))) / len(a)  # type: ignore[arg-type]


def test_bad_input_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="one rating for every row"):
        exact([1, 2], [1])
    with pytest.raises(ValueError, match="leave such rows out"):
        cohen([1.0, math.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match="need numbers"):
        cohen(["a"], ["b"], "linear")
    with pytest.raises(ValueError, match="known: None, linear"):
        cohen([1], [2], "cubic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="outside the categories: 9"):
        confusion([1, 9], [1, 1], [1, 2])
    with pytest.raises(ValueError, match="numbers and the other words"):
        exact([1], ["1"])
