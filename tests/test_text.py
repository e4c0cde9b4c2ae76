"""How numbers are written: one minus sign, no sign before a zero, one dash for what is missing."""

from __future__ import annotations

import pytest

from overtone.results.measures import Estimate
from overtone.text import by_kind, count, interval, number, percent, plain, points, rate, seconds, value_of


@pytest.mark.parametrize(
    ("x", "digits", "sign", "text"),
    [
        (-0.314, 2, False, "−0.31"),
        (0.314, 2, True, "+0.31"),
        (-0.004, 2, False, "0.00"),
        (-0.004, 2, True, "0.00"),
        (0.0, 1, True, "0.0"),
        (12345.6, 0, False, "12,346"),
        (-12345.6, 1, True, "−12,345.6"),
        (None, 2, False, "–"),
    ],
)
def test_a_number_has_a_real_minus_and_a_zero_has_no_sign(x: float | None, digits: int, sign: bool, text: str) -> None:
    assert number(x, digits, sign=sign) == text


def test_shares_are_percentages_and_their_differences_points() -> None:
    assert (by_kind(-0.0512, "points", sign=True), by_kind(0.612, "percent"), by_kind(3.456, "number", 1)) == (
        "−5.1", "61.2", "3.5",
    )  # fmt: skip
    assert (percent(0.5), percent(0.1234, 1), percent(None)) == ("50 %", "12.3 %", "–")


def test_an_estimate_is_written_with_its_interval() -> None:
    e = Estimate(0.61, 0.52, 0.704, 10, 10)
    assert (rate(e), value_of(e, "percent"), interval(e)) == ("61 % (52 to 70)", "61.0", "52.0 to 70.4")
    gap = Estimate(-0.01, -0.12, 0.03, 10, 10)
    assert points(gap) == "−1 point (−12 to 3)" and plain(gap) == "−0.01 (−0.12 to 0.03)"
    assert rate(Estimate(0.5, None, None, 1, 1)) == "50 % (no interval)"
    assert (rate(Estimate(None, None, None, 0, 1)), value_of(None, "percent"), interval(None)) == ("unknown", "–", "")


def test_other_amounts() -> None:
    assert (seconds(0.517), seconds(None)) == ("0.52 s", "–")
    assert (count(1, "script"), count(1137, "script")) == ("1 script", "1,137 scripts")
