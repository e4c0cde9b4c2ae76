"""People with known preferences take part through the real store: the analysis returns what was planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.studio import precision
from overtone.studio.designs import Spread
from overtone.studio.labels import Given, collect
from overtone.studio.study_results import QuestionRow, study_results
from tests.studio.simulated_people import ITEM, RATER, REST, SEVERITY, Crowd, simulate

FEW = {"poor": 2.0, "fair": 3.0, "best": 4.0}
MANY = {"poor": 2.2, "fair": 2.8, "good": 3.4, "best": 4.0}
SIZES = [pytest.param(24, 20, FEW, id="24"), pytest.param(200, 80, MANY, id="200", marks=pytest.mark.full)]
CARELESS = 0.25


def check_flags(crowd: Crowd) -> list[Given]:
    """Check that the rules find everybody who did not listen, and nobody else. Return all answers."""
    given = collect.collect(crowd.study, crowd.store)
    assert {one.rater for one in given if not one.usable} == crowd.careless & {one.rater for one in given}
    assert all(one.usable == one.payable for one in given)
    return given


def ranking(worth: dict[str, float]) -> list[str]:
    return sorted(worth, key=worth.__getitem__, reverse=True)


@pytest.mark.parametrize(("people", "scripts", "worth"), SIZES)
def test_ratings_return_the_planted_ranking_spreads_and_careless_people(
    tmp_path: Path, people: int, scripts: int, worth: dict[str, float]
) -> None:
    flags = ("--rubric", "ves", "--votes", "4")
    crowd = simulate(tmp_path, worth, *flags, people=people, careless=CARELESS, scripts=scripts)
    with crowd.store:
        given = check_flags(crowd)
    (row,) = study_results(crowd.study, given, draws=50, judges=False).questions
    means = {one.system: one.mean.value or 0.0 for one in row.systems}
    assert ranking(means) == ranking(worth)
    assert means["best"] - means["poor"] > _everyone(row, "best") - _everyone(row, "poor")  # careless people blur it
    for gap in row.gaps:
        assert gap.gap.value is not None and gap.gap.low is not None and gap.gap.high is not None
        planted = worth[gap.first] - worth[gap.second]
        assert abs(gap.gap.value - planted) < gap.gap.high - gap.gap.low + 0.3  # two half-widths, and the scale's ends
    assert row.alpha.value is not None and 0.1 < row.alpha.value < 0.8
    if people >= 200:
        assert row.spread["raters"] == pytest.approx(SEVERITY, abs=0.12)
        assert row.spread["rest"] == pytest.approx((ITEM**2 + RATER**2 + REST**2) ** 0.5, abs=0.15)


def _everyone(row: QuestionRow, system: str) -> float:
    return next(one.everyone.value or 0.0 for one in row.systems if one.system == system)


@pytest.mark.parametrize("design", ["ab", pytest.param("cmos", marks=pytest.mark.full)])
@pytest.mark.parametrize(("people", "scripts", "worth"), SIZES)
def test_comparisons_return_the_planted_ranking_in_either_order(
    tmp_path: Path, design: str, people: int, scripts: int, worth: dict[str, float]
) -> None:
    flags = ("--design", design, "--votes", "4")
    crowd = simulate(tmp_path, worth, *flags, people=people, careless=CARELESS, scripts=scripts)
    with crowd.store:
        given = [one for one in check_flags(crowd) if one.kind == "real"]
    assert 0.4 < sum(one.swap for one in given) / len(given) < 0.6
    (row,) = study_results(crowd.study, given, draws=50, judges=False).questions
    lead = dict.fromkeys(worth, 0.0)
    for gap in row.gaps:
        assert gap.gap.value is not None
        lead[gap.first] += gap.gap.value
        lead[gap.second] -= gap.gap.value
    assert ranking(lead) == ranking(worth)


@pytest.mark.full
def test_the_interval_is_about_as_wide_as_the_study_file_promised(tmp_path: Path) -> None:
    two = {"monday": 2.8, "friday": 3.2}
    crowd = simulate(tmp_path, two, "--rubric", "ves", "--session", "10", people=40, careless=0.0, scripts=30)
    with crowd.store:
        given = collect.collect(crowd.study, crowd.store)
    result = study_results(crowd.study, given, draws=50, judges=False)
    (gap,) = result.questions[0].gaps
    assert gap.gap.low is not None and gap.gap.high is not None
    units = [one.unit for one in given]
    real = sum(one.kind == "real" for one in given) / 2
    promised = precision.half_width(
        Spread(ITEM, RATER, REST, 4, "points"), items=len({u.group for u in units}), raters=40, answers=real
    )
    assert (gap.gap.high - gap.gap.low) / 2 == pytest.approx(promised, rel=0.5)
