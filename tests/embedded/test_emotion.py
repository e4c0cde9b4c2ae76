"""The emotion predictor: small, sure of nothing it cannot hear, deaf to loudness, better than chance on real actors."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from overtone import audio
from overtone.embedded import emotion
from overtone.errors import DataError

RATE = 16_000
OF_RAVDESS = {"calm": "neutral", "fear": "fearful", "disgust": "disgusted", "surprise": "surprised"}


def buzz(seconds: float = 2.0, hz: float = 150) -> np.ndarray:
    """Something like a voice: partials of a moving pitch, in syllables."""
    t = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * np.cumsum(hz + 15 * np.sin(2 * np.pi * 0.8 * t)) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 15)) * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * t))
    return (0.1 * voice + np.random.default_rng(0).normal(0, 1e-3, len(t))).astype(np.float32)


def test_the_model_that_ships_is_small_and_known_by_its_bytes() -> None:
    assert emotion.DATA.stat().st_size < 2_000_000
    assert emotion.identity().startswith("overtone-emotion-1-")
    assert emotion.load().sha256[:8] in emotion.identity()


def test_probabilities_are_of_seven_emotions_and_sum_to_one() -> None:
    found = emotion.predict(buzz(), RATE)
    assert tuple(found.probabilities) == emotion.LABELS
    assert sum(found.probabilities.values()) == pytest.approx(1)
    best = max(found.probabilities, key=found.probabilities.__getitem__)
    assert found.label == (best if found.probability >= emotion.load().threshold else emotion.UNKNOWN)


def test_loudness_rate_and_silence_around_change_little() -> None:
    x = buzz()
    one = emotion.predict(x, RATE).probabilities
    assert emotion.predict(x * 0.05, RATE).probabilities == pytest.approx(one, abs=1e-3)
    padded = np.concatenate([np.zeros(RATE // 2, np.float32), x, np.zeros(RATE // 2, np.float32)])
    assert emotion.predict(padded, RATE).probabilities == pytest.approx(one, abs=0.2)


@pytest.mark.parametrize("x", [np.zeros(2 * RATE, np.float32), buzz(0.2), np.zeros(0, np.float32)])
def test_where_nobody_speaks_the_emotion_is_unknown(x: np.ndarray) -> None:
    found = emotion.predict(x, RATE)
    assert (found.label, found.probabilities, found.probability) == ("unknown", {}, 0.0)


def test_a_model_below_its_threshold_says_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    unsure = msgspec.structs.replace(emotion.load(), threshold=1.01)
    monkeypatch.setattr(emotion, "load", lambda: unsure)
    found = emotion.predict(buzz(), RATE)
    assert found.label == "unknown" and len(found.probabilities) == 7


def test_a_damaged_file_or_one_of_other_measures_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emotion, "DATA", tmp_path / "emotion.npz")
    for data in (b"", b"PK not a zip"):
        (tmp_path / "emotion.npz").write_bytes(data)
        with pytest.raises(DataError, match="cannot be read"):
            emotion.load.__wrapped__()
    np.savez(tmp_path / "emotion.npz", features=np.array(["pitch"]), labels=np.array(emotion.LABELS))
    with pytest.raises(DataError, match="other measures"):
        emotion.load.__wrapped__()


@pytest.mark.local
def test_deliveries_in_a_voice_it_has_not_heard_are_told_apart() -> None:
    from overtone.build.delivery import RATE as BUILT
    from overtone.build.delivery import RECIPES, analyse, deliver
    from overtone.embedded.espeak_voice import speak

    rng = np.random.default_rng(5)
    recipes = {"angry": "angry", "fearful": "fear", "sad": "sad", "surprised": "surprise"}
    right = []
    for words in ("The bus to the harbour leaves at five.", "We have moved the piano to the other room."):
        samples, rate = speak(words, voice="en-us+norbert", rate_wpm=160)
        plain = analyse(audio.resample(samples, rate, BUILT).astype(np.float64))
        for label, cue in recipes.items():
            found = emotion.predict(deliver(plain, RECIPES[cue], rng).astype(np.float32), BUILT)
            right.append(found.label == label)
    assert np.mean(right) >= 0.5  # chance 0.14


@pytest.mark.shared
def test_real_actors_are_heard_better_than_chance(shared: Path) -> None:
    folder = shared / "data" / "ravdess"
    right: dict[str, list[bool]] = {}
    with (folder / "labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["actor"] in ("2", "8", "14"):
                found = emotion.predict(*audio.read(folder / row["file"])).probabilities
                label = OF_RAVDESS.get(row["emotion"], row["emotion"])
                right.setdefault(label, []).append(max(found, key=found.__getitem__) == label)
    assert len(right) == 7
    assert np.mean([np.mean(hits) for hits in right.values()]) > 0.2  # chance 0.14
