"""An outcome at its baseline, or one that a positive control does not move, is not testable and never equivalent."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.rated_sentences import Array, Bank
from overtone.studies.perspectives.answers import Answers, Key
from overtone.studies.perspectives.design import CONTROL_SPLIT, Job, Study
from overtone.studies.perspectives.outcomes import Results, catalogue, cells
from overtone.studies.perspectives.results import Result
from overtone.studies.perspectives.study_analysis import Analysis, analyse
from overtone.studies.perspectives.testability import check

QUESTIONS, SEEDS = 400, 4
STUDY = Study.read()


@pytest.fixture
def key(bank: Bank) -> Key:
    """400 questions of two options, two to a script."""
    gold = [i % 2 for i in range(QUESTIONS)]
    answers = Answers.of([[1, 1]] * QUESTIONS, gold, [f"s{i // 2}" for i in range(QUESTIONS)], [2] * QUESTIONS)
    return Key.of("toy", bank, {"open": answers})


def _answered(key: Key, share: float, seed: int) -> Array:
    """Return likelihoods with which this share of the questions is answered right."""
    rng = np.random.default_rng(seed)
    right = rng.permutation(QUESTIONS) < share * QUESTIONS
    gold = key.answers["open"].gold
    scores = np.full((QUESTIONS, 2), -5.0)
    scores[np.arange(QUESTIONS), np.where(right, gold, 1 - gold)] = -1.0
    return scores


def _results(key: Key, base: float, arms: float, control: float | None) -> Results:
    """Return a study in which all arms answer alike, so that only the checks can prevent equivalence."""
    flat = np.full((QUESTIONS, 2), -5.0)
    out = {Job("official", "", "base", 0): {
        "open/told": _answered(key, base, 0), "open/words": _answered(key, 0.5, 1), "open/none": flat,
        "emobank": np.random.default_rng(0).uniform(1, 5, (len(key.ids), 2, 3)),
    }}  # fmt: skip
    for seed in range(SEEDS):
        for arm in ("both", "merged", "shuffled"):
            out[Job("document", str(seed), arm, seed)] = {"open/told": _answered(key, arms, 2), "open/none": flat}
        for half in (0, 1):
            if control is not None:
                job = Job(CONTROL_SPLIT, str(half), "base", seed, True)
                out[job] = {"open/told": _answered(key, control, 10 + seed), "open/none": flat}
    return out


def _analysis(key: Key, results: Results) -> Analysis:
    return analyse({job: Result(job, {}, arrays) for job, arrays in results.items()}, key, STUDY)


@pytest.mark.parametrize(
    ("base", "control", "kind", "said"),
    [
        (0.70, 0.90, "equivalent", "equivalent within ±0.04"),
        (0.50, 0.90, "not testable", "not testable with this model: the base model is not above its text baseline"),
        (0.70, 0.70, "not testable", "not testable with this model: the positive control does not move it"),
        (0.70, None, "not testable", "not testable yet: the positive control has not run"),
    ],
)
def test_only_a_testable_outcome_can_be_equivalent(
    key: Key, base: float, control: float | None, kind: str, said: str
) -> None:
    analysis = _analysis(key, _results(key, base, base, control))
    tests = [test for test in analysis.primary if test.outcome == "open told"]
    assert len(tests) == 2
    for test in tests:
        assert test.kind == kind and test.text.startswith(said)
        assert abs(test.number.value) < 0.04
    arm = analysis.table("open told").arm("merged")
    assert arm is not None and arm.contrast is not None and arm.contrast.kind == kind


def test_a_large_difference_has_no_verdict_where_the_base_model_is_at_its_baseline(key: Key) -> None:
    results = dict(_results(key, 0.5, 0.5, 0.9))
    for seed in range(SEEDS):
        results[Job("document", str(seed), "both", seed)]["open/told"] = _answered(key, 0.8, 40 + seed)
    test = next(test for test in _analysis(key, results).primary if test.outcome == "open told")
    assert test.number.value > 0.2 and test.kind == "not testable"


def test_ratings_that_tuning_does_not_raise_are_not_testable(key: Key) -> None:
    rng = np.random.default_rng(5)
    results: dict[Job, dict[str, Array]] = {
        Job("official", "", "base", 0): {"emobank": key.means + rng.normal(0, 0.4, key.means.shape)}
    }
    for seed in range(SEEDS):
        for arm in ("both", "merged"):
            for genre in sorted(set(key.genres)):
                job = Job("genre", genre, arm, seed)
                truth = key.means[key.tested(job)]
                results[job] = {"emobank": truth + rng.normal(0, 0.4, truth.shape)}
    outcome = next(one for one in catalogue(key, STUDY.tests) if one.name == "genre V")
    found = check(results, key, outcome, cells(results, outcome))
    assert found.text == "not testable with this model: tuning on EmoBank does not move it"
    for job, arrays in results.items():
        if job.arm != "base":
            arrays["emobank"] = rng.normal(3, 1, arrays["emobank"].shape)
    found = check(results, key, outcome, cells(results, outcome))
    assert "is not above a constant prediction" in found.text


def test_recognised_words_have_no_positive_control_and_are_never_equivalent(key: Key) -> None:
    results = dict(_results(key, 0.7, 0.7, 0.9))
    for job, arrays in results.items():
        if job.split != CONTROL_SPLIT:
            arrays["open/heard"] = arrays["open/told"]
    arm = _analysis(key, results).table("open heard").arm("merged")
    assert arm is not None and arm.contrast is not None
    assert "no positive control for this condition (heard)" in arm.contrast.text
