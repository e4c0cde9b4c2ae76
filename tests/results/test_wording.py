"""Numbers within sentences."""

from __future__ import annotations

from overtone.results import wording
from overtone.results.measures import Estimate


def made(value: float | None, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low, high, 10, 10)


def test_rates_differences_and_other_numbers_are_written_with_their_intervals() -> None:
    assert wording.percent(made(0.614, 0.52, 0.704)) == "61 % (52 to 70)"
    assert wording.points(made(-0.05, -0.12, 0.03)) == "−5 points (−12 to 3)"
    assert wording.plain(made(0.314, -0.001, 0.5)) == "0.31 (0.00 to 0.50)", "no minus before a zero"
    assert wording.percent(made(0.5)) == "50 % (no interval)" and wording.percent(made(None)) == "unknown"
