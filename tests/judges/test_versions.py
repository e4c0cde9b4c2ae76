"""What a judge is told cannot change while its rubric's version stays: equal names would hide unequal scores."""

from __future__ import annotations

import msgspec
import pytest

from overtone.judges import judge_messages, rubric
from tests.judges import refresh
from tests.judges.refresh import CONTRACT, TOLD, Stamp, drifted, names, now, stored


@pytest.mark.parametrize("name", names())
def test_words_and_versions_move_together(name: str) -> None:
    was = stored().get(name)
    assert was is not None, f"{name} is not in versions.json; run 'python -m tests.judges.refresh'"
    assert not (problem := drifted(name, was, now(name))), problem


def test_a_changed_word_of_a_rubric_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    was, found = now("ves"), rubric.load("ves")
    other = msgspec.structs.replace(found, system=found.system.replace("voice", "tone", 1))
    monkeypatch.setattr(refresh.rubric, "load", lambda name: other)
    problem = drifted("ves", was, now("ves"))
    assert TOLD in problem and "version in ves.toml" in problem
    assert "same-behaviour" not in problem, "other words are another question"


def test_a_changed_form_of_the_request_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    was = now("echomind")
    monkeypatch.setattr(judge_messages, "_scale", lambda dimension: dimension.question)
    assert TOLD in drifted("echomind", was, now("echomind"))


def test_a_changed_reader_of_answers_is_caught() -> None:
    stamp = now("ves")
    was = Stamp(stamp.version, {**stamp.hashes, CONTRACT: "0" * 64})
    assert "same-behaviour" in drifted("ves", was, stamp)


def test_a_raised_version_asks_for_a_new_stamp() -> None:
    stamp = now("ves")
    assert "changed; run" in drifted("ves", Stamp("0", stamp.hashes), stamp)
