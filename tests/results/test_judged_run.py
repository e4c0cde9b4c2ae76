"""The findings on real runs with a judge: a model that speaks of any cue it is told, and one that never does."""

from __future__ import annotations

import pytest

import overtone
from bench.data import make
from overtone.findings.analysis import cases_behind
from overtone.findings.leaderboard.compute import leaderboard
from overtone.findings.levels.compute import levels
from overtone.findings.prompts.compute import prompts
from overtone.findings.source.compute import source
from overtone.findings.upper.compute import sentences, upper
from overtone.results.load import Reading, open_run
from tests.judges.server import JudgeServer, keys_asked, menus
from tests.servers import Asked, OpenAIServer

PROMPTS = "zero,basic,enhance,oracle,oracle-false"


def parrot(asked: Asked) -> str:
    """Says that it noticed something wherever it is told what can be heard, whatever that is."""
    if "[A/B" in asked.text or "Options" in asked.text:
        return "The answer is: A"
    return "I noticed that." if "What can be heard" in asked.text else "Fine."


def verdict(asked: Asked) -> dict[str, int | str]:
    found: dict[str, int | str] = {key: menus()[key][0] for key in keys_asked(asked.text)}
    return found | ({"cspeechrel": 5 if "I noticed that." in asked.text else 2} if "cspeechrel" in found else {})


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    folder = tmp_path_factory.mktemp("findings")
    data = make(folder / "data", scripts=4, questions=8, seconds=0.2)
    found = []
    for name, answer in (("parrot", parrot), ("mute", lambda _: "The answer is: A")):
        with OpenAIServer(answer=answer) as model, JudgeServer(verdict=verdict) as judge:
            spec = f"openai:{name}?base_url={model.base_url}"
            judges = [judge.spec("rubrics=echomind")]
            overtone.run("echomind", data=data, model=spec, out=folder / name, prompt=PROMPTS, judges=judges).close()
        found.append(open_run(folder / name, light=True))
    return found


def test_a_gain_from_any_cue_is_told_from_one_of_the_right_cue(readings: list[Reading]) -> None:
    row = upper(readings[0]).row("cspeechrel")
    assert row is not None and row.survives is not None and row.beyond is not None
    assert (row.base.value, row.gain.value, row.survives.value, row.beyond.value) == (2, 3, 3, 0)
    assert row.gain.scored == row.gain.asked > 0
    assert "C4 with the cue stated (4 of 6)" in sentences(upper(readings[0]))[0].text


def test_prompts_that_change_nothing_give_no_optimism(readings: list[Reading]) -> None:
    found = prompts(readings[0])
    assert [r.prompt for r in found.rows] == ["zero", "basic", "enhance"]
    assert found.choices and all(c.overall == "zero" for c in found.choices), "ties go to the plainer prompt"
    assert all(c.optimism["cspeechrel"].value == 0 for c in found.choices)
    assert cases_behind([readings[0]], f"{found.choices[0].key}/cspeechrel")


def test_runs_are_read_together(readings: list[Reading]) -> None:
    found = levels(readings)
    assert len(found.models) == 2
    assert set(found.conditions) == {"enhance/audio"}
    row = found.row("model", "between", "voice_accuracy", "cspeechrel")
    assert row is not None and row.pearson.value is None, "two models are no correlation"
    board = leaderboard(readings)
    cells = board.entrants[-1].cells
    assert cells["c4"].value == 2 and any(d.startswith("judge:") for d in cells["c4"].differs)
    assert "One source only (synthesis)" in source(readings[0]).notes[0]
