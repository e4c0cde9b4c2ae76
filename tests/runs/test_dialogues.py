"""A dialogue in a run: the second turn is sent with the first and the model's own reply, and each turn is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from overtone.results.load import open_run
from overtone.runs.cost_plan import Plan, make_plan
from overtone.runs.export_rows import rows
from overtone.runs.store import Store
from overtone.scoring import score_run
from overtone.spec import parse_spec
from tests.benchmarks.built import write_built
from tests.runs.helpers import run, settings
from tests.servers import Asked, OpenAIServer

ONLY: dict[str, Any] = {"benchmark": "open", "parts": "dialogue", "prompt": "zero"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return write_built(tmp_path / "set")


def answer(asked: Asked) -> str:
    return f"My reply to {len(asked.sounds)} clips."


def test_the_second_turn_comes_with_the_first_clip_and_the_models_own_reply(built: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer=answer) as server:
        outcome = run(built, server.base_url, tmp_path / "run", **ONLY)
        assert (outcome.answered, outcome.requests) == (2, 4)
        second = [a for a in server.asked if len(a.sounds) == 2]
        first = {a.sounds[0] for a in server.asked if len(a.sounds) == 1}
    assert len(second) == 2 and {a.sounds[0] for a in second} == first, "both variants open with the same clip"
    for asked in second:
        messages = asked.body["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant", "user"]
        assert "My reply to 1 clips." in str(messages[1]["content"])
        assert asked.sounds[0] != asked.sounds[1]


def test_a_dialogue_that_stopped_between_its_turns_goes_on_with_the_reply_it_has(built: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer=answer) as server:
        first = run(built, server.base_url, tmp_path / "run", limit=1, budget_requests=1, **ONLY)
        assert (first.answered, first.stopped) == (0, "budget")
        server.answer = lambda asked: "Another reply."
        again = run(built, server.base_url, tmp_path / "run", limit=1, **ONLY)
        assert (again.answered, again.requests) == (1, 1)
        assert "My reply to 1 clips." in str(server.asked[-1].body["messages"][1]["content"])
    with Store.read(tmp_path / "run") as store:
        assert [r.text for r in store.replies()] == ["My reply to 1 clips.", "Another reply."]


@pytest.mark.local
def test_each_reply_is_scored_against_the_reference_of_its_turn(built: Path, tmp_path: Path) -> None:
    said = {1: "I am sorry to hear that.", 2: "Now that is good news!"}
    with OpenAIServer(answer=lambda asked: said[len(asked.sounds)]) as server:
        run(built, server.base_url, tmp_path / "run", **ONLY)
    assert score_run(tmp_path / "run")["semsim"] == 4
    changed, steady = open_run(tmp_path / "run").answers
    assert [changed.value("semsim", 0), changed.value("semsim")] == pytest.approx([1.0, 1.0])
    assert steady.value("semsim", 0) == pytest.approx(1.0) and (steady.value("semsim") or 0) < 0.7
    with Store.read(tmp_path / "run") as store:
        table = [(r["turn"], r["reference"], r["scores"]["semsim"]) for r in rows(store)]
    assert [t[:2] for t in table[:2]] == [(0, said[1]), (1, said[2])] and table[0][2] == pytest.approx(1.0)


def test_parts_choose_what_is_asked(built: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        run(built, server.base_url, tmp_path / "run", benchmark="open", parts="false-cue,fixed")
    with Store.read(tmp_path / "run") as store:
        assert sorted({i.part for i in store.items()}) == ["false-cue", "fixed"]


def test_a_plan_counts_both_turns_and_the_clip_that_is_sent_again(built: Path, tmp_path: Path) -> None:
    plan = make_plan(settings(built, "http://localhost:1", tmp_path / "run", **ONLY))
    assert (plan.items, plan.requests, plan.by_task) == (2, 4, {"converse": 4})
    assert plan.audio_seconds == pytest.approx(2 * (0.1 + 0.2), abs=1e-6), "clips of 0.1 s; the first goes out twice"


@pytest.mark.parametrize("kind", ["realtime", "gemini-live"])
def test_a_plan_for_a_realtime_model_contains_the_duration_of_paced_clips(
    built: Path, tmp_path: Path, kind: str
) -> None:
    def plan(keys: str) -> Plan:
        given = settings(built, "http://localhost:1", tmp_path / "run", **ONLY, max_connections=2)
        return make_plan(replace(given, model=parse_spec(f"{kind}:x?base_url=ws://localhost:1/v1{keys}")))

    paced, fast = plan(""), plan("&pace=fast")
    played = 4 * 0.1 / 2  # four turns of 0.1 s, two at a time; the history is not spoken again
    assert [mine - other for mine, other in zip(paced.seconds, fast.seconds, strict=True)] == pytest.approx(
        [played] * 2
    )
    assert paced.clips == "resampled to the rate of the model's protocol"
    assert plan("&audio_rate=16000").clips == "resampled to 16000 Hz (audio_rate of the model's SPEC)"
