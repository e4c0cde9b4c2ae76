"""The rule by which a sentence calls a difference significant."""

from __future__ import annotations

import itertools

import pytest

from overtone.results import significance
from overtone.results.measures import Estimate
from overtone.stats import multiplicity, paired


def made(value: float, low: float | None = None, high: float | None = None, scripts: int = 40) -> Estimate:
    return Estimate(value, low, high, scripts, scripts, scripts=scripts)


def test_each_family_is_corrected_by_itself_and_a_missing_test_does_not_count() -> None:
    p_values = [0.01, 0.02, None, 0.03, 0.04]
    found = significance.holm_by_family(p_values, ["a", "a", "a", "b", "c"])
    assert found == [(0.02, 2), (0.02, 2), (None, 2), (0.03, 1), (0.04, 1)]


def test_the_verdict_follows_the_corrected_p_value_and_not_the_interval() -> None:
    clear = significance.by_test(made(0.1, 0.05, 0.15), 0.012, 4)
    assert clear == (
        ", which is statistically significant (p = 0.012, two-sided paired test clustered by script, Holm correction "
        "over 4 tests)"
    )
    unclear = significance.by_test(made(0.1, 0.01, 0.19), 0.08, 4)
    assert unclear.startswith(", which is not statistically significant (p = 0.080, ")
    assert "the 95 % interval applies to this row alone, so it can exclude 0" in unclear
    assert "row alone" not in significance.by_test(made(0.1, -0.01, 0.19), 0.08, 4)
    assert significance.by_test(made(0.1), None, 0) == ", which was not tested"


@pytest.mark.parametrize("p", [0.0499999, 0.05, 0.05 + 1e-15, 0.0500001, 0.0504, 0.0506])
def test_a_written_p_value_lies_on_the_side_of_the_level_that_the_verdict_says(p: float) -> None:
    written = significance.p_value(p).removeprefix("p = ")
    assert (float(written) <= significance.LEVEL) == significance.significant(p)


def test_p_values_are_written_with_three_digits() -> None:
    written = [significance.p_value(p) for p in (0.0004, 0.0123, 1.0)]
    assert written == ["p < 0.001", "p = 0.012", "p = 1.000"]
    assert significance.p_number(None) == "–"


@pytest.mark.parametrize("tests", [1, 2, 3, 10, 18, 39])
def test_the_scripts_a_test_needs_are_those_from_which_it_can_find_anything(tests: int) -> None:
    least = significance.least_scripts(tests)
    for scripts, possible in ((least, True), (least - 1, False)):
        names = [f"s{n}" for n in range(scripts)]
        p = paired.permutation([1.0] * scripts, [0.0] * scripts, names, seed=1).p
        best = float(multiplicity.holm([p, *itertools.repeat(1.0, tests - 1)])[0])
        assert significance.significant(best) is possible
    text = significance.by_test(made(1.0, scripts=least - 1), 1.0, tests)
    assert text.startswith(f"; not enough data to test it: {least - 1} scripts are too few, {tests} test")


def test_without_p_values_the_interval_is_described_and_nothing_is_called_significant() -> None:
    assert significance.by_interval(made(0.1, 0.05, 0.2)) == "; the 95 % interval of this row alone excludes 0"
    assert significance.by_interval(made(0.1, 0.0, 0.2)) == "; the 95 % interval of this row alone includes 0"
    assert significance.by_interval(made(0.1)) == ""
