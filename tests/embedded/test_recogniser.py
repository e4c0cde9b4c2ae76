"""Moonshine through its C library: words are recognised, silence is empty, order does not matter."""

from __future__ import annotations

import jiwer
import numpy as np
import pytest

from overtone.embedded import espeak_voice, recogniser

pytestmark = pytest.mark.local
SENTENCES = (
    "We are having dinner with my grandmother on Sunday.",
    "The meeting was moved to the big room upstairs.",
    "I will send you the letter tomorrow morning.",
    "She bought apples and bread at the market.",
)


def heard(name: str) -> list[str]:
    return [recogniser.transcribe(*espeak_voice.speak(s, voice=name, rate_wpm=150)) for s in SENTENCES]


def test_spoken_words_are_recognised() -> None:
    clean = jiwer.Compose([jiwer.ToLowerCase(), jiwer.RemovePunctuation(), jiwer.ReduceToListOfListOfWords()])
    found = heard("en-us+m3")
    wer = jiwer.wer(list(SENTENCES), found, reference_transform=clean, hypothesis_transform=clean)
    assert wer < 0.25, found  # a synthetic voice is harder than a person's


def test_a_transcript_does_not_depend_on_what_was_heard_before() -> None:
    clip = espeak_voice.speak(SENTENCES[0], voice="en-us+whisper")
    first = recogniser.transcribe(*clip)
    for other in (
        espeak_voice.speak("Yes!", voice="en-us+f4"),
        espeak_voice.speak(SENTENCES[1], voice="en-us+whisperf"),
    ):
        recogniser.transcribe(*other)
        assert recogniser.transcribe(*clip) == first


@pytest.mark.parametrize("rate", [8_000, 44_100])
def test_silence_and_steady_noise_have_no_words(rate: int) -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 3 * rate).astype(np.float32)
    assert recogniser.transcribe(np.zeros(2 * rate, np.float32), rate) == ""
    assert recogniser.transcribe(noise, rate) == ""
    assert recogniser.transcribe(np.zeros(0, np.float32), rate) == ""
    assert recogniser.transcribe(np.zeros(10, np.float32), rate) == ""


def test_a_long_recording_is_cut_where_it_is_quiet_and_loses_nothing() -> None:
    samples = np.concatenate([espeak_voice.speak(s, voice="en-us+m3", rate_wpm=150)[0] for s in SENTENCES * 3])
    text = recogniser.transcribe(samples, 22_050).lower()
    assert len(samples) / 22_050 > 30
    assert all(text.count(word) >= 2 for word in ("sunday", "upstairs", "letter", "market")), text
