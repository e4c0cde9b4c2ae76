"""The linked view of one case."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import UsageError
from overtone.results.cases import case, failure, how_read, right, state
from overtone.results.measures import chosen, picked
from overtone.runs.store import Store
from tests.results.small import Maker, item


def test_a_case_holds_its_levels_side_by_side(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.transcript(item("t", "transcribe", category="asr"), 1, 4)
    make.choice(item("v", "choose"), "A")
    make.choice(item("r", "choose", level=2, category="intent"), "B")
    make.answered(item("c", "converse", level=3), "zero", condition="zero/audio")
    make.failed(item("c", "converse", level=3), condition="enhance/audio")
    make.choice(item("elsewhere", "choose", script="s2"), "A")
    with Store.read(make.done()) as store:
        view = case(store, "synthesis/s1/target")
    assert view.transcripts[0].answers[0].value("wer") == 0.25
    assert right(view.voice[0].answers[0]) is True
    wrong = view.reasoning[0].answers[0]
    assert (right(wrong), chosen(wrong), picked(wrong)) == (False, "B", "words")
    assert [(answer.condition, state(answer)) for answer in view.replies[0].answers] == [
        ("zero/audio", "answered"),
        ("enhance/audio", "failed"),
    ]
    assert failure(view.replies[0].answers[1]) == "timeout: detail"
    assert (view.words, view.cue, len(view.all())) == ("one two three four", "sad", 4)


def test_a_reply_that_was_not_read_as_an_option_has_no_choice(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.choice(item("v", "choose"), "Z", "beyond")
    with Store.read(make.done()) as store:
        (answer,) = case(store, "synthesis/s1/target").voice[0].answers
    assert (chosen(answer), how_read(answer), right(answer)) == ("", "beyond", False)


def test_an_unknown_case_is_a_clear_error(tmp_path: Path) -> None:
    with Store.read(Maker(tmp_path).done()) as store, pytest.raises(UsageError, match="has no case and no item 'x'"):
        case(store, "x")


def test_a_case_is_found_by_the_id_of_one_of_its_items(tmp_path: Path) -> None:
    maker = Maker(tmp_path)
    maker.choice(item("toy/emotion/7", "choose", script="s7"), "A")
    maker.choice(item("toy/emotion/8", "choose", script="s8"), "B")
    with Store.read(maker.done()) as store:
        assert case(store, "toy/emotion/8") == case(store, "synthesis/s8/target")
