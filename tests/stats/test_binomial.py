"""Exact binomial tails and intervals."""

from __future__ import annotations

import pytest

from overtone.stats.binomial import at_least, at_most, exact_interval


def test_tails_of_coin_tosses_are_counted_by_hand() -> None:
    assert at_least(9, 10, 0.5) == pytest.approx(11 / 1024)
    assert at_most(1, 10, 0.5) == pytest.approx(11 / 1024)
    assert at_least(0, 10, 0.5) == at_most(10, 10, 0.5) == 1
    assert at_least(50, 50, 0.1) == pytest.approx(1e-50), "a tiny tail keeps its digits"


def test_the_two_tails_and_certain_chances_add_up() -> None:
    for k in range(1, 13):
        assert at_least(k, 12, 0.3) + at_most(k - 1, 12, 0.3) == pytest.approx(1)
    assert (at_least(1, 5, 0), at_least(5, 5, 1), at_most(0, 5, 0)) == (0, 1, 1)


def test_the_exact_interval_covers_at_least_as_often_as_it_says() -> None:
    intervals = [exact_interval(k, 20) for k in range(21)]
    for p in (0.02, 0.1, 0.25, 0.5, 0.9):
        covered = sum(
            at_least(k, 20, p) - (at_least(k + 1, 20, p) if k < 20 else 0)
            for k, (low, high) in enumerate(intervals)
            if low <= p <= high
        )
        assert covered >= 0.95
    assert exact_interval(0, 20)[0] == 0 and exact_interval(20, 20)[1] == 1
    assert exact_interval(0, 0) == (0, 1)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="5 of 4"):
        at_least(5, 4, 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        at_least(1, 4, 1.5)
    with pytest.raises(ValueError, match="level"):
        exact_interval(1, 4, level=95)
