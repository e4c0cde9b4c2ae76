"""Rubrics that ask about some items only, judge what is heard in a reply, and need no judge where nothing is said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from overtone.judges import reply_audio
from overtone.judges.judge_run import judge_run
from overtone.judges.policy import parse_judge
from overtone.results.judge_scores import judged, read_dimensions
from overtone.results.load import open_run
from overtone.runs.store import Ask, Store
from overtone.schema import Clip, Item, Reply, Score, Turn
from tests.judges.helpers import QUICK
from tests.judges.server import JudgeServer
from tests.servers import Asked, tone

RUBRIC = """
version = 1
title = "T"
measures = "M"
cannot_see = "C"
source = "S"
shows = ["words", "context", "wanted", "reply", "references"]
system = "Judge."
transcribes = true
wordless = 0
[[dimension]]
key = "first"
label = "First"
question = "?"
scale = [1, 5]
only = { category = ["one"], language = ["en", ""] }
[[dimension]]
key = "second"
label = "Second"
question = "?"
scale = [1, 5]
only = { category = ["two"] }
"""


def item(name: str, category: str, *turns: Turn, **more: str) -> Item:
    return Item(
        name, "toy", 3, "converse", category, name, name, "", turns or (Turn(Clip("a.wav"), f"Words of {name}."),),
        references=() if turns else ("One.", "Two."), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def stored(folder: Path, replies: list[tuple[Item, list[Reply]]]) -> Path:
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "toy"})
        store.plan([(one, ["zero/audio"]) for one, _ in replies], 1)
        asks = {ask.item.id: ask for ask in store.open_asks(0, 100)}
        for one, said in replies:
            _add(store, asks[one.id], said)
        store.commit()
    return folder


def _add(store: Store, ask: Ask, said: list[Reply]) -> None:
    asked = [turn for turn, one in enumerate(ask.item.turns) if not one.given]
    for turn, reply in zip(asked, said, strict=True):
        store.add_reply(ask, turn, reply, sent=b"[]", latency=0.1, attempts=1)


def judge(folder: Path, tmp_path: Path) -> tuple[list[Asked], dict[str, dict[str, float | None]]]:
    path = tmp_path / "mine.toml"
    path.write_text(RUBRIC)

    def verdict(asked: Asked) -> dict[str, int | str]:
        return {key: 4 for key in ("first", "second") if f'"{key}"' in asked.text}

    with JudgeServer(verdict=verdict) as server:
        spec = parse_judge(server.spec(f"rubrics={path}"))
        with Store.create(folder) as store:
            asyncio.run(judge_run(store, [spec], retries=QUICK))
    answers = open_run(folder).answers
    return server.asked, {a.item.id: {k.partition("@")[0]: s.value for k, s in a.scores.items()} for a in answers}


def test_a_question_is_asked_of_the_items_it_is_for(tmp_path: Path) -> None:
    rows = [(item("a", "one"), [Reply("Yes.")]), (item("b", "two"), [Reply("No.")]), (item("c", "x"), [Reply("So.")])]
    asked, values = judge(stored(tmp_path / "run", rows), tmp_path)
    assert len(asked) == 2
    assert values == {"a": {"first": 4}, "b": {"second": 4}, "c": {}}
    reading = open_run(tmp_path / "run")
    dimensions = read_dimensions(reading.meta, reading.signatures)
    rows_of = judged(reading.answers, dimensions, reading.signatures)
    assert [(row.dimension.key, row.headline.asked) for row in rows_of] == [("first", 1), ("second", 1)]


def test_what_is_heard_is_judged_and_every_reference_and_earlier_reply_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sounds = {tone(number): f"Heard {number}." for number in range(3)}
    monkeypatch.setattr(reply_audio, "transcript", lambda path: sounds[path.read_bytes()])
    said = [Reply("Text 0.", tone(0)), Reply("Text 1.", tone(1))]
    turns = (
        Turn(Clip("a.wav"), "Hello.", given="Given."),
        Turn(Clip("a.wav"), "And?", reference="R1."),
        Turn(Clip("a.wav"), "Bye.", reference="R2."),
    )
    rows = [(item("d", "two", *turns), said), (item("a", "one", gold="a joke"), [Reply("Text 2.", tone(2))])]
    asked, _ = judge(stored(tmp_path / "run", rows), tmp_path)
    dialogue, single = sorted((one.text for one in asked), key=lambda text: "R1." not in text)
    assert "The reply was: Given.\nThe user said: And?\nThe reply was: Heard 0." in dialogue
    assert "<reply>\nHeard 1.\n</reply>" in dialogue and "2. R1.\n3. R2." in dialogue
    assert "Text" not in dialogue + single
    assert "<reply>\nHeard 2.\n</reply>" in single and "One. / Two." in single and "<wanted>\na joke" in single


def test_a_reply_without_a_word_counts_what_the_rubric_says_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_audio, "transcript", lambda path: "")
    rows = [(item("a", "one"), [Reply("Written, but silent.", tone())]), (item("b", "one"), [Reply(" ")])]
    asked, values = judge(stored(tmp_path / "run", rows), tmp_path)
    assert asked == [] and values == {"a": {"first": 0}, "b": {"first": 0}}


def test_a_reply_in_another_language_is_not_transcribed_by_ear_for_english(tmp_path: Path) -> None:
    rows = [
        (item("a", "two", language="zh"), [Reply("好的。", tone())]),
        (item("b", "two", language="zh"), [Reply("好")]),
    ]
    asked, values = judge(stored(tmp_path / "run", rows), tmp_path)
    assert len(asked) == 1, "a reply in writing needs no recogniser"
    assert values == {"a": {"second": None}, "b": {"second": 4}}
    (score,) = open_run(tmp_path / "run").answers[0].scores.values()
    assert "hears English alone" in score.reason


def test_what_another_recogniser_wrote_down_is_judged_under_its_name(tmp_path: Path) -> None:
    turns = (Turn(Clip("a.wav"), "Hello."), Turn(Clip("a.wav"), "Bye."))
    rows = [(item("d", "two", *turns, language="zh"), [Reply("一", tone(0)), Reply("二", tone(1))])]
    folder = stored(tmp_path / "run", rows)
    with Store.create(folder) as store:
        for turn, heard in ((0, "第一"), (None, "第二")):
            score = Score("consistency_wer", "consistency_wer|v1|recogniser:large-v3@1", 0.5, "", {"transcript": heard})
            store.add_scores([(1, score)], turn=turn)
        store.commit()
    (asked,), values = judge(folder, tmp_path)
    assert "The reply was: 第一" in asked.text and "<reply>\n第二\n</reply>" in asked.text
    assert values["d"]["second"] == 4
    assert any(s.endswith("|text:transcript:large-v3@1") for s in open_run(folder).signatures.values())


def test_a_rubric_that_asks_about_a_field_no_item_has_is_refused(tmp_path: Path) -> None:
    from overtone.errors import UsageError
    from overtone.judges import rubric

    path = tmp_path / "mine.toml"
    path.write_text(RUBRIC.replace("category", "kategory", 1))
    with pytest.raises(UsageError, match="unknown fields of items: kategory"):
        rubric.load(str(path))
