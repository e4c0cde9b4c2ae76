"""Accuracy: right or wrong for every answered question, and its summary with chance, bounds and failures."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.audio import Samples
from overtone.errors import OvertoneError
from overtone.metrics.choice import Accuracy, load
from overtone.schema import Score
from tests.metrics.answers import answered, item
from tests.metrics.speech import spoken

QUESTION = item("choose", options=("surprise", "fear", "disgust", "happiness"), gold="B")


def both(text: str, refused: bool = False) -> tuple[float | None, float | None]:
    first, second = load().score([answered(QUESTION, text, refused)])[0]
    assert (first.metric, second.metric) == ("accuracy", "accuracy_strict")
    return first.value, second.value


def test_a_reply_in_the_format_is_right_both_ways() -> None:
    assert both("The answer is: [B]") == (1.0, 1.0)
    assert both("The answer is: [C]") == (0.0, 0.0)


def test_a_verbose_reply_is_right_leniently_only() -> None:
    assert both("The voice trembles, so I'd go with option B.") == (1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("It's either A or B.", "hedged"),
        ("I can't listen to audio.", "refused"),
        ("The answer is: [E]", "beyond"),
        ("Lovely weather today.", "unparsable"),
        ("", "empty"),
    ],
)
def test_an_answer_that_makes_no_choice_is_wrong_with_its_status(text: str, status: str) -> None:
    score = load().score([answered(QUESTION, text)])[0][0]
    assert score.value == 0.0
    assert (score.detail["status"], score.detail["answer"], score.detail["gold"]) == (status, None, "B")


def test_the_endpoints_refusal_outranks_the_text() -> None:
    assert both("B", refused=True) == (0.0, 0.0)


def test_detail_holds_the_chosen_options_provenance() -> None:
    score = load().score([answered(QUESTION, "The answer is: [C]")])[0][0]
    assert score.detail["provenance"] == "words"
    assert score.detail["options"] == 4
    assert score.signature == "accuracy|v1|extract:lenient-3"


def test_a_question_without_gold_is_unscored() -> None:
    for score in load().score([answered(item("choose", options=("x", "y")), "A")])[0]:
        assert (score.value, score.reason) == (None, "no gold answer")


def test_only_choices_are_scored() -> None:
    assert load().applies(QUESTION) and not load().applies(item("converse"))


class Heard:
    """A recogniser that hears the same words in every sound, or fails."""

    def __init__(self, words: str | None) -> None:
        self.words = words

    def identity(self) -> str:
        return "fake@1"

    def transcribe(self, samples: Samples, rate: int, language: str = "") -> str:
        if self.words is None:
            raise OvertoneError("nothing can hear it")
        return self.words


def said(folder: Path, words: str | None, text: str = "") -> tuple[Score, Score]:
    reply = msgspec.structs.replace(spoken(folder, text, (np.zeros(800, np.float32), 8_000)), item=QUESTION)
    first, second = Accuracy(Heard(words)).score([reply])[0]
    return first, second


def test_a_reply_in_speech_only_is_read_from_its_transcript_with_letters_as_they_sound(tmp_path: Path) -> None:
    first, second = said(tmp_path, "The answer is bee.")
    assert (first.value, second.value) == (1.0, 1.0)
    assert first.detail["transcript"] == "The answer is bee."
    assert first.signature == "accuracy|v1|extract:lenient-3|text:transcript:fake@1"
    assert said(tmp_path, "See.")[0].detail["answer"] == "C"
    assert said(tmp_path, "")[0].detail["status"] == "empty"


def test_the_text_of_a_spoken_reply_is_read_where_it_has_one(tmp_path: Path) -> None:
    first, _ = said(tmp_path, None, text="The answer is B.")
    assert (first.value, first.signature) == (1.0, "accuracy|v1|extract:lenient-3")


def test_speech_that_nothing_can_transcribe_is_unscored_and_not_wrong(tmp_path: Path) -> None:
    for score in said(tmp_path, None):
        assert (score.value, score.reason) == (None, "nothing can hear it")
