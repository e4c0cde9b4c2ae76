"""The incomplete beta function where its values are known in closed form, and Student's law from it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import beta, binomial


def test_closed_forms_are_met() -> None:
    assert beta.incomplete(1, 1, 0.3) == pytest.approx(0.3, rel=1e-14)
    assert beta.incomplete(3, 1, 0.7) == pytest.approx(0.7**3, rel=1e-14)
    assert beta.incomplete(1, 4, 0.2) == pytest.approx(1 - 0.8**4, rel=1e-14)
    assert (beta.incomplete(2, 5, 0), beta.incomplete(2, 5, 1)) == (0, 1)
    assert beta.student_cdf(1, 1) == pytest.approx(0.75, rel=1e-14)
    assert beta.student_cdf(-math.sqrt(2), 2) == pytest.approx(0.5 - math.sqrt(2) / (2 * 2), rel=1e-14)
    assert beta.student_cdf(1.6448536, math.inf) == pytest.approx(0.95, abs=1e-8)


def test_a_binomial_tail_is_an_incomplete_beta() -> None:
    for successes, trials, chance in [(1, 10, 0.2), (7, 20, 0.25), (300, 1000, 0.25), (990, 1000, 0.97)]:
        tail = beta.incomplete(successes, trials - successes + 1, chance)
        assert tail == pytest.approx(binomial.at_least(successes, trials, chance), rel=1e-9)


@given(st.floats(0.5, 500), st.floats(0.5, 500), st.floats(0.001, 0.999))
@settings(deadline=None)
def test_the_two_sides_add_up_to_one(a: float, b: float, x: float) -> None:
    assert beta.incomplete(a, b, x) + beta.incomplete(b, a, 1 - x) == pytest.approx(1, abs=1e-10)
    assert 0 <= beta.incomplete(a, b, x) <= 1


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="a, b > 0"):
        beta.incomplete(0, 1, 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        beta.incomplete(1, 1, 1.5)
    with pytest.raises(ValueError, match="degrees of freedom"):
        beta.student_cdf(1, 0)
