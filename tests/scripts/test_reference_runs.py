"""The program behind the reference runs answers as the wire asks for, and every run that is compared is made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from overtone.judges import rubric
from overtone.judges.contract import Contract, Unread
from scripts import reference_runs
from scripts.reference_runs import ARENA, MINDS, REFERENCE, RUNS, answer, verdict


def replies(folder: Path, kind: str, name: str, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the program writes to these requests, as Overtone starts it."""
    lines = "\n".join(json.dumps({"id": n, "parameters": {}, **one}) for n, one in enumerate(requests))
    command = [sys.executable, reference_runs.__file__, kind, name]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=folder)
    return [json.loads(line) for line in done.stdout.splitlines()]


def question(sound: str, task: str = "choose") -> dict[str, Any]:
    parts = [{"audio": "", "sha256": sound, "seconds": 1.0}, {"text": "How does it sound?"}]
    options = ["sad", "happy", "tired", "angry"] if task == "choose" else []
    return {"messages": [{"role": "user", "parts": parts}], "speech": False, "task": task, "options": options}


def test_an_answer_depends_on_the_sound_unless_the_model_is_deaf(tmp_path: Path) -> None:
    asked = [question(f"{n:064}") for n in range(60)]
    hearing, again, deaf = (replies(tmp_path, "answer", name, asked) for name in ("plain", "plain", "deaf"))
    assert hearing == again
    assert len({one.get("text") for one in hearing}) > 8, "several forms of four letters"
    assert any("error" in one for one in hearing)
    assert len({one.get("text") for one in deaf}) == 1
    assert len((tmp_path / "asked.log").read_text().splitlines()) == 3 * 60


@pytest.mark.parametrize("name", ["echomind", "aeq", "pair", "sd-eval", "reader"])
def test_a_verdict_is_on_the_menu_of_every_question_or_unread(name: str) -> None:
    contract = Contract(rubric.load(name).dimensions)
    given = [contract.read(verdict(contract.instruction, n)["text"]) for n in range(1, 17)]
    for d in contract.dimensions:
        values = {one.values[d.key] for one in given}
        assert len(values) > 1 and values <= set(d.menu)
    with pytest.raises(Unread):
        contract.read(verdict(contract.instruction, 17)["text"])


def test_conversations_are_answered_refused_cut_off_left_empty_and_failed() -> None:
    asked = question("", "converse")
    given = [answer("plain", asked, [], n) for n in range(1, 600)]
    assert {one["finish"] for one in given if "finish" in one} == {"stop", "length"}
    assert any(one.get("refused") for one in given) and any(one.get("text") == "" for one in given)
    assert {one["error"]["reason"] for one in given if "error" in one} == set(reference_runs.FAILURES)


def test_every_run_that_is_compared_is_made() -> None:
    made = {run.name for run in RUNS} | set(MINDS) | {f"once-{name}" for name in MINDS[:2]}
    groups = REFERENCE["groups"]
    assert isinstance(groups, dict)
    named = {name for members in groups.values() for name in members} | set(REFERENCE["rescore"]) | set(ARENA)
    assert named <= made
    assert set(REFERENCE["formats"]) | set(REFERENCE["quick"]) <= set(groups)
