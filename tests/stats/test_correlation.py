"""Correlations: known values, the definition by brute force, invariances, and where they are not defined."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overtone.stats.correlation import kendall, kendall_p, partial, pearson, spearman

VALUES = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=2, max_size=40)


def same(a: float, b: float) -> bool:
    return a == pytest.approx(b, abs=1e-12) or (math.isnan(a) and math.isnan(b))


def by_pairs(a: list[int], b: list[int]) -> float:
    """τ-b from its definition."""
    signs = [(np.sign(a[i] - a[j]), np.sign(b[i] - b[j])) for i in range(len(a)) for j in range(i)]
    untied = math.prod(sum(bool(s[k]) for s in signs) for k in (0, 1))
    return float(sum(x * y for x, y in signs) / math.sqrt(untied)) if untied else math.nan


def test_the_probability_of_a_tau_is_that_of_all_orders() -> None:
    for rows in (2, 3, 4, 5, 6):
        taus = [kendall(range(rows), order) for order in itertools.permutations(range(rows))]
        for tau in set(taus):
            expected = sum(abs(t) >= abs(tau) - 1e-9 for t in taus) / len(taus)
            assert kendall_p(tau, rows) == pytest.approx(expected)
    assert kendall_p(1.0, 3) == pytest.approx(1 / 3)


def test_known_values_come_out() -> None:
    assert pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert pearson([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert spearman([1, 2, 3, 4], [1, 9, 4, 100]) == pytest.approx(0.8)
    assert kendall([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(4 / 6)


@given(VALUES)
def test_kendall_is_its_definition(pairs) -> None:  # type: ignore[no-untyped-def]
    a, b = (list(side) for side in zip(*pairs, strict=True))
    assert same(kendall(a, b), by_pairs(a, b))


@given(VALUES, st.randoms(use_true_random=False))
def test_correlations_are_symmetric_bounded_and_blind_to_the_order_of_rows(pairs, random) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(pairs)
    random.shuffle(shuffled)
    for measure in (pearson, spearman, kendall):
        a, b = (list(side) for side in zip(*pairs, strict=True))
        value = measure(a, b)
        assert same(measure(b, a), value)
        assert same(measure(*(list(side) for side in zip(*shuffled, strict=True))), value)
        assert same(measure([-x for x in a], b), -value)
        assert same(measure([3 * x + 7 for x in a], b), value)
        assert math.isnan(value) or -1 <= value <= 1


@given(VALUES)
def test_rank_correlations_do_not_change_under_a_monotone_transform(pairs) -> None:  # type: ignore[no-untyped-def]
    a, b = (list(side) for side in zip(*pairs, strict=True))
    for measure in (spearman, kendall):
        assert same(measure([math.exp(x) for x in a], b), measure(a, b))
    assert same(partial(a, [x**3 for x in b], range(len(a)), ranked=True), partial(a, b, range(len(a)), ranked=True))


def test_a_partial_correlation_is_the_textbook_formula_and_removes_what_is_shared() -> None:
    rng = np.random.default_rng(2)
    c = rng.normal(size=400)
    a, b = c + rng.normal(size=400), c + rng.normal(size=400)
    ab, ac, bc = pearson(a, b), pearson(a, c), pearson(b, c)
    assert partial(a, b, c) == pytest.approx((ab - ac * bc) / math.sqrt((1 - ac**2) * (1 - bc**2)))
    assert ab > 0.4 and abs(partial(a, b, c)) < 0.12
    assert partial(a, b, [c, 5 * c - 3, np.ones(400)]) == pytest.approx(partial(a, b, c)), "repeats change nothing"
    assert partial(a, b, np.ones(400)) == pytest.approx(ab)


def test_what_does_not_vary_has_no_correlation() -> None:
    for measure in (pearson, spearman, kendall):
        assert math.isnan(measure([1, 1, 1], [1, 2, 3]))
        assert math.isnan(measure([0.1] * 3, [1, 2, 3]))
        assert math.isnan(measure([1], [2])) and math.isnan(measure([], []))
        assert math.isnan(measure([1.0000000000000002, 0.9999999999999998, 1.0], [1, 2, 3])), "rounding noise"
        assert math.isnan(measure([1, 2, 3], [0.7, 0.7 + 1e-8, 0.7 - 1e-8])), "rounding noise"
    assert math.isnan(partial([1, 2, 4], [3, 1, 2], [2, 4, 8]))
    assert math.isnan(partial([1, 1 - 1e-15, 1 + 1e-15, 1], [3, 1, 2, 5], [2, 4, 1, 1], ranked=True))


def test_very_small_and_very_large_numbers_are_no_trouble() -> None:
    a, b = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0])
    assert pearson(a * 1e-200, b * 1e200) == pytest.approx(pearson(a, b))


def test_kendall_of_a_hundred_thousand_rows_takes_less_than_a_second() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=100_000)
    start = time.process_time()
    assert kendall(x, x + rng.normal(size=x.size)) == pytest.approx(0.5, abs=0.01)  # 2/π · asin(√½)
    assert time.process_time() - start < 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one number for every row"):
        pearson([1, 2], [1])
    with pytest.raises(ValueError, match="leave unscored rows out"):
        spearman([1, math.nan], [1, 2])
    with pytest.raises(ValueError, match="held fixed"):
        partial([1, 2, 3], [1, 3, 2], [1, 2])
