"""Numbers within sentences."""

from __future__ import annotations

import math

import pytest

from overtone.analysis import said
from overtone.analysis.measures import Estimate


def made(value: float | None, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low, high, 10, 10)


def test_rates_differences_and_other_numbers_are_written_with_their_intervals() -> None:
    assert said.percent(made(0.614, 0.52, 0.704)) == "61 % (52 to 70)"
    assert said.points(made(-0.05, -0.12, 0.03)) == "−5 points (−12 to 3)"
    assert said.plain(made(0.314, -0.001, 0.5)) == "0.31 (0.00 to 0.50)", "no minus before a zero"
    assert said.percent(made(0.5)) == "50 % (no interval)" and said.percent(made(None)) == "unknown"


@pytest.mark.parametrize(("low", "high", "told"), [(0.1, 0.2, True), (-0.2, -0.1, True), (0.0, 0.2, False)])
def test_a_difference_is_told_where_the_interval_excludes_none(low: float, high: float, told: bool) -> None:
    assert said.tells(made(0.1, low, high)) == told
    assert not said.tells(made(0.1)), "without an interval nothing is told"


def test_p_values_are_written_with_three_digits() -> None:
    assert [said.p_value(p) for p in (0.0004, 0.0123, 1.0, math.nan, None)] == [
        "p < 0.001",
        "p = 0.012",
        "p = 1.000",
        "",
        "",
    ]
