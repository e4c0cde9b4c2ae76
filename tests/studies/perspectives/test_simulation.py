"""The verdicts of simulated studies err as seldom as they promise; the documentation has the table of 2,000 each."""

from __future__ import annotations

import re

import pytest

from bench.perspectives import BEGIN, CORPORA, END, LARGE, PAGE, SCENARIOS, SMALL, STUDIES, Corpus, measure, problems
from overtone.studies.perspectives.design import Study

STUDY = Study.read()


@pytest.mark.full
@pytest.mark.parametrize("corpus", CORPORA, ids=("large", "small"))
def test_two_thousand_studies_of_every_scenario_err_as_seldom_as_promised(corpus: Corpus) -> None:
    for scenario in SCENARIOS:
        assert not problems(measure(corpus, scenario, STUDIES, STUDY))


@pytest.mark.parametrize("scenario", [SCENARIOS[0], SCENARIOS[4]], ids=lambda scenario: scenario.name)
def test_a_few_studies_without_a_difference_do_not_improve(scenario) -> None:
    found = measure(SMALL, scenario, 25, STUDY, seed=1)
    assert sum(counts["improves"] for counts in found.kinds.values()) <= 4  # of 100 tests
    if scenario.base < 0.3:
        assert found.share("open told", "not testable") == 1


def test_a_few_studies_find_twice_the_margin_and_none_calls_it_equivalent() -> None:
    found = measure(LARGE, SCENARIOS[3], 12, STUDY, seed=1)
    for outcome in ("genre V", "open told"):
        assert found.share(outcome, "improves") >= 0.8
        assert found.share(outcome, "equivalent") == 0


def test_a_simulation_that_errs_too_often_is_reported() -> None:
    found = measure(SMALL, SCENARIOS[3], 4, STUDY)
    claimed = type(found)(LARGE, SCENARIOS[0], 4, found.kinds, found.any_gain)
    assert any("without a difference" in line for line in problems(claimed))


def test_the_documentation_has_the_whole_simulation_and_it_holds() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(BEGIN)[2].partition(END)[0]
    assert f"{STUDIES:,} studies per row" in shown
    rows = [line.split(" | ") for line in re.findall(r"^\| (.* \| `.*` \| .*) \|$", shown, re.M)]
    assert len(rows) == 2 * len(CORPORA) * len(SCENARIOS)
    for corpus, planted, _, improves, _, equivalent, *_ in rows:
        if planted.startswith("no difference"):
            assert float(improves) <= 6
        if planted.endswith("of the margin"):
            assert float(equivalent) <= 6
        if "twice" in planted and corpus == LARGE.name:
            assert float(improves) >= 80
