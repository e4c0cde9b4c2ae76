"""Transcription: people's word error rate is the project's own."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overtone.metrics.normalise import units as normalised
from overtone.metrics.wer import align
from overtone.studio import designs
from tests.studio.designs.helpers import gold_of, labels_of, reply, run_of, study_of, units_of, values_of


def rate(said: str, typed: str, language: str = "") -> object:
    study = study_of("transcribe", "run")
    one = replace(reply("run"), texts={**reply("run").texts, "reply": said}, language=language)
    (unit,) = units_of(study, replace(run_of("run"), replies=(one,)))
    return values_of(labels_of(study, unit, {"typed": typed, "understood": "part"})).get("wer_people")


@pytest.mark.parametrize(
    ("said", "typed", "wanted"),
    [
        ("I am so sorry to hear that.", "i am so sorry to hear that", 0.0),
        ("I am so sorry to hear that.", "I am so sorry too hear", 2 / 7),
        ("It costs 20 dollars", "it costs twenty dollars", 0.0),  # the normaliser of the metric
        ("你好吗", "你好", 1 / 3),  # characters
        ("[laughs]", "haha", None),  # no words
    ],
)
def test_the_error_rate_counts_normalised_words_or_characters(said: str, typed: str, wanted: float | None) -> None:
    assert rate(said, typed) == (None if wanted is None else pytest.approx(wanted))


def test_the_rate_is_that_of_the_metric() -> None:
    said, typed = "That sounds hard. Do you want to talk about it?", "that sound hard do you want talk about"
    assert rate(said, typed, "en") == align(normalised(said, "en"), normalised(typed, "en")).rate


def test_nothing_understood_is_an_error_rate_of_one() -> None:
    study = study_of("transcribe", "run")
    (unit, *_) = units_of(study, run_of("run"))
    given = labels_of(study, unit, {"typed": "", "understood": "none"})
    assert values_of(given) == {"understood": "none", "wer_people": 1.0}


@pytest.mark.parametrize("understood", ["none", "part"])
def test_a_question_mark_says_that_no_word_was_understood(understood: str) -> None:
    study = study_of("transcribe", "run")
    (unit, *_) = units_of(study, run_of("run"))
    assert values_of(labels_of(study, unit, {"typed": "?", "understood": understood}))["wer_people"] == 1.0


def test_an_empty_text_of_a_person_who_understood_something_is_missing() -> None:
    study = study_of("transcribe", "run")
    (unit, *_) = units_of(study, run_of("run"))
    assert values_of(labels_of(study, unit, {"typed": " ", "understood": "part"})) == {"understood": "part"}


def test_the_gold_question_is_speech_that_nobody_understands() -> None:
    assert gold_of(study_of("transcribe", "run"), 0) == {"understood": ["none"]}


def test_only_the_reply_is_heard_because_the_users_words_would_help() -> None:
    study = study_of("transcribe", "run", play_clip=True)
    (unit, *_) = units_of(study, run_of("run"))
    assert [one.name for one in designs.played(designs.find("transcribe"), unit, study)] == ["reply"]
