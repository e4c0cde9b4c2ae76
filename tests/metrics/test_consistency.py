"""Consistency: a voice that says its text has few word errors, one that says something else has many."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from overtone.embedded import recogniser
from overtone.embedded.espeak_voice import speak
from overtone.errors import MissingExtra
from overtone.metrics.consistency import load
from overtone.schema import Score
from tests.metrics.answers import item
from tests.metrics.speech import Sound, spoken

TEXT = "Please take your coat, because it is raining outside and the train leaves soon."


@cache
def say(text: str) -> Sound:
    return speak(text, rate_wpm=150)


def one(folder: Path, text: str, sound: Sound | None) -> Score:
    ((score,),) = load().score([spoken(folder, text, sound)])
    return score


@pytest.mark.local
def test_a_voice_that_says_its_text_has_few_errors_and_keeps_the_counts(tmp_path: Path) -> None:
    score = one(tmp_path, TEXT, say(TEXT))
    assert score.value is not None and score.value <= 0.3
    assert score.signature.endswith(f"|recogniser:{recogniser.identity()}")
    counts = {name: score.detail[name] for name in ("hits", "substitutions", "deletions", "insertions")}
    hits, substitutions, deletions, insertions = (int(str(n)) for n in counts.values())
    assert hits + substitutions + deletions == score.detail["reference_words"] == 14
    assert score.value == pytest.approx((substitutions + deletions + insertions) / 14)


@pytest.mark.local
def test_a_voice_that_says_something_else_or_stops_early_has_many(tmp_path: Path) -> None:
    other = one(tmp_path, "My grandmother bakes bread every Sunday morning.", say(TEXT))
    samples, rate = say(TEXT)
    cut = one(tmp_path, TEXT, (samples[: len(samples) // 2], rate))
    assert other.value is not None and other.value > 0.8
    assert cut.value is not None and cut.value > 0.35


@pytest.mark.local
def test_silence_has_one_and_what_cannot_be_compared_says_why(tmp_path: Path) -> None:
    silent = one(tmp_path, TEXT, (np.zeros(16_000, np.float32), 16_000))
    assert (silent.value, silent.detail["deletions"], silent.detail["transcript"]) == (1.0, 14, "")
    assert one(tmp_path, TEXT, None).reason == "the reply has no audio"
    assert one(tmp_path, " !? ", say(TEXT)).reason == "the reply has no words"


@pytest.mark.local
def test_a_missing_recogniser_is_a_reason_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def transcribe(samples: np.ndarray, rate: int) -> str:
        raise MissingExtra("the recogniser is not installed; run 'overtone setup local'")

    monkeypatch.setattr(recogniser, "transcribe", transcribe)
    monkeypatch.setattr("overtone.embedded.present", lambda package: False)
    score = one(tmp_path, TEXT, say(TEXT))
    assert score.value is None and "overtone setup local" in score.reason
    assert score.signature.endswith("|recogniser:missing")


def test_it_scores_conversation_only() -> None:
    assert load().applies(item("converse")) and not load().applies(item("transcribe"))
