"""The findings on a real run of a model that does not listen: it answers A to every question, sound or not."""

from __future__ import annotations

from typing import Any

import pytest

from overtone.findings.analysis import cases_behind
from overtone.findings.funnel.compute import funnel
from overtone.findings.sensitivity.compute import counterfactual
from overtone.findings.text_only.compute import text_only
from overtone.results.load import Reading, open_run
from overtone.scoring import score_run
from tests.benchmarks.built import write_built
from tests.runs.helpers import run
from tests.servers import OpenAIServer


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    folder = tmp_path_factory.mktemp("deaf")
    built = write_built(folder / "set")
    asked: dict[str, Any] = {"benchmark": "open", "input": "audio,transcript", "prompt": "enhance,oracle", "repeats": 2}
    asked |= {"styles": "target,alternative,neutral,control", "parts": "core,control,false-cue"}
    with OpenAIServer(answer=lambda _: "The answer is A.") as server:
        outcome = run(built, server.base_url, folder / "run", **asked)
    assert outcome.failed == 0
    score_run(folder / "run")
    return open_run(folder / "run", light=True)


def test_the_funnel_joins_the_levels_of_each_case(reading: Reading) -> None:
    rows = {row.key: row for row in funnel(reading).rows}
    cue, reasoned = rows["funnel/enhance/audio/overall/cue"], rows["funnel/enhance/audio/overall/reasoned"]
    # s1's two clips (sad, happy) were asked twice each, s3's (male, female) about reasoning only; A is the target's
    assert (cue.reached.scored, cue.reached.value, cue.reached.asked) == (4, 0.5, 8)
    assert (reasoned.reached.scored, reasoned.reached.value) == (8, 0.5)
    assert reasoned.step is not None and reasoned.step.difference.value == 1.0, "both right on s1's target alone"
    assert cases_behind([reading], f"{reasoned.key}/passed") == ["synthesis/s1/target", "synthesis/s3/target"]
    assert rows["funnel/enhance/transcript/overall/words"].reached.scored == 0, "no transcript of a transcript"


def test_answers_that_never_change_have_no_direction_and_always_stay(reading: Reading) -> None:
    found = counterfactual(reading)
    moved = [row for row in found.sensitivity if row.by == "overall"]
    assert moved and all(row.direction.value == row.changed.value == 0.0 for row in moved)
    assert found.specificity
    assert all(row.stays.value == 1.0 and row.excess.value in (0.0, None) for row in found.specificity)
    assert all((row.detection.d_prime.value or 0) == pytest.approx(0.0) for row in found.false_cues)


def test_the_sound_adds_nothing(reading: Reading) -> None:
    found = text_only(reading)
    rows = [row for row in found.rows if row.measure.endswith("accuracy")]
    assert rows and all(row.difference.value == 0.0 and row.p == 1.0 for row in rows)
    assert all(row.accuracy.value in (0.0, None) for row in found.unsolved), "it gets what the words give"
