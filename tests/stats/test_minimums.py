"""The least data of each kind of sentence: stated once, documented, and true to its reason."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from overtone.stats import cluster, paired
from overtone.stats.correlation import kendall_p
from overtone.stats.minimums import CORRELATION, DIFFERENCE, LARGEST_LOSS, MINIMUMS, RATE, SAME_ORDER, shortfall

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "findings" / "minimums.md"


def test_the_page_has_every_minimum_with_its_reason() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    assert rows == [f"| {m.kind} | {m.least} {m.unit} | {m.reason} |" for m in MINIMUMS]


def test_what_lacks_is_said_once_with_what_there_is_and_how_to_get_more() -> None:
    assert shortfall(RATE, []) == ""
    one = shortfall(RATE, [("a", 3), ("b", 0), ("a", 3)])
    assert one.startswith("Not enough data for a sentence on: a (3 of 10); b (0 of 10). It needs at least 10")
    assert "`overtone run`" in one
    many = shortfall(RATE, [(f"s{n}", n) for n in range(9)])
    assert "s3 (3 of 10); 5 more." in many


def test_the_reasons_hold() -> None:
    def smallest(scripts: int) -> float:
        ones, groups = [1.0] * scripts, [str(n) for n in range(scripts)]
        return paired.permutation(ones, [0.0] * scripts, groups, seed=1, draws=100).p

    assert smallest(DIFFERENCE.least) <= 0.05 < smallest(DIFFERENCE.least - 1)
    assert kendall_p(1.0, SAME_ORDER.least) <= 0.05 < kendall_p(1.0, SAME_ORDER.least - 1)
    assert 1 / RATE.least <= 0.1 < 1 / (RATE.least - 1)
    assert math.comb(2 * CORRELATION.least - 1, CORRELATION.least) == 6435

    def width(scripts: int) -> float:
        found = cluster.proportion(np.arange(scripts) % 2, [str(n) for n in range(scripts)])
        return found.high - found.low

    assert round(width(LARGEST_LOSS.least - 1), 2) == 0.44
