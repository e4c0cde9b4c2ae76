"""The small ear: it comes with its table, hears deliveries apart, and says in words what it measures."""

from __future__ import annotations

import numpy as np
import pytest

from overtone import audio
from overtone.cues import BY_SLUG
from overtone.embedded import espeak_voice, fitted_ear, hearing
from overtone.errors import DataError


def test_the_ear_that_ships_knows_every_cue_and_its_own_accuracy() -> None:
    ear = hearing.load()
    assert set(ear.classes) == set(BY_SLUG)
    assert {row.task for row in ear.table} >= {"gender", "emotion", "background"}
    for row in ear.table:
        assert f"| {row.task} | {row.clips} | {row.accuracy:.3f} | {row.chance:.3f} |" in (hearing.__doc__ or "")
    assert hearing.DATA.stat().st_size < 100_000


def test_the_ear_that_ships_says_what_it_cannot_hear_in_people() -> None:
    described = hearing.load().describe()
    assert {"fear", "cough", "male", "whisper"} <= set(described["ear_cannot_hear"])  # type: ignore[arg-type]
    assert "sad" not in described["ear_cannot_hear"]  # type: ignore[operator]
    assert "not tested on people" in hearing.load().cannot_hear["whisper"]


def test_a_posterior_sums_to_one_over_what_was_asked() -> None:
    x = np.full(len(hearing.FEATURES), np.nan)
    posterior = hearing.load().posterior(x, ["happy", "sad", "angry"])
    assert list(posterior) == ["happy", "sad", "angry"]
    assert sum(posterior.values()) == pytest.approx(1)


def test_silence_is_described_as_such_and_has_features() -> None:
    still = np.zeros(16_000, np.float32)
    assert hearing.described(audio.measure(still, 16_000)) == "Nothing can be heard."
    assert len(hearing.features(still, 16_000)) == len(hearing.FEATURES)
    assert hearing.features(still[:10], 16_000).shape == hearing.features(still, 16_000).shape


@pytest.mark.local
def test_pitch_level_and_pace_are_put_into_words() -> None:
    low, rate = espeak_voice.speak("The ferry leaves from the second pier at noon.", voice="en-us+m7", pitch=20)
    high, _ = espeak_voice.speak(
        "The ferry leaves from the second pier at noon.", voice="en-us+f4", pitch=90, rate_wpm=320
    )
    quiet = hearing.described(audio.measure(low * 0.05, rate))
    loud = hearing.described(audio.measure(audio.level(high, -14), rate))
    assert "low-pitched" in quiet and "quiet" in quiet.partition(";")[0]
    assert "high-pitched" in loud and "loud" in loud and "fast" in loud


@pytest.mark.local
def test_a_womans_and_a_mans_voice_and_a_whisper_are_told_apart() -> None:
    ear = hearing.load()
    for name, options in (
        ("en-us+f4", ("female", "male")), ("en-us+m8", ("male", "female")), ("en-us+whisper", ("whisper", "shout")),
    ):  # fmt: skip
        samples, rate = espeak_voice.speak("We counted eleven boats in the harbour.", voice=name, rate_wpm=160)
        posterior = ear.posterior(hearing.features(samples * 0.3, rate), options)
        assert posterior[options[0]] > 0.5, (name, posterior)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"{", "not a classifier of voices"),
        (lambda data: b'{"a": 1}', "not a classifier of voices"),
        (lambda data: data.replace(b'"rms_dbfs"', b'"loudness"'), "fitted to other measures"),
        (lambda data: data.replace(b'"male"', b'"martian"'), "'martian' is not a cue"),
    ],
)
def test_a_file_that_is_not_a_classifier_is_refused(tmp_path, change, message) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "ear.json"
    path.write_bytes(change(hearing.DATA.read_bytes()))
    with pytest.raises(DataError, match=message):
        hearing.read_file(path)


def test_the_identity_of_a_file_changes_with_its_bytes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "ear.json"
    path.write_bytes(hearing.DATA.read_bytes())
    before = fitted_ear.identity(path)
    path.write_bytes(hearing.DATA.read_bytes() + b"\n")
    assert hearing.read_file(path) == hearing.load() and fitted_ear.identity(path) != before
