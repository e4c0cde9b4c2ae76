"""States of speech and the features of an ear: shapes, repeatability, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.embedded import ear_features, espeak_voice, speech_states

pytestmark = pytest.mark.local
RATE = 16_000


@pytest.fixture(scope="module")
def spoken() -> np.ndarray:
    from overtone import audio

    samples, rate = espeak_voice.speak("We counted eleven boats in the harbour.", voice="en-us+f4")
    return np.asarray(audio.resample(samples, rate, RATE), np.float32) * 0.3


def test_there_is_a_state_every_24_ms_after_each_layer(spoken: np.ndarray) -> None:
    states = speech_states.load().states(spoken)
    assert states.shape == (7, (((len(spoken) - 127) // 64 + 1 - 7) // 3 + 1 - 3) // 2 + 1, 288)
    assert np.isfinite(states).all()


def test_fewer_layers_give_the_same_first_states(spoken: np.ndarray) -> None:
    encoder = speech_states.load()
    assert (encoder.states(spoken, 3) == encoder.states(spoken)[:4]).all()


def test_a_very_short_sound_has_states_too() -> None:
    assert speech_states.load().states(np.zeros(10, np.float32)).shape[1] > 0


def test_level_and_silence_around_speech_hardly_change_the_features(spoken: np.ndarray) -> None:
    plain = ear_features.features(spoken, RATE)
    assert plain is not None and plain.shape == (len(ear_features.FEATURES),)
    quiet = ear_features.features(spoken * 0.05, RATE)
    padded = ear_features.features(np.pad(spoken, (RATE // 2, RATE)), RATE)
    assert quiet is not None and padded is not None
    states = slice(0, 3 * 2 * 288)
    assert quiet[states] == pytest.approx(plain[states], abs=0.02)
    assert np.abs(padded[states] - plain[states]).mean() < 0.05


def test_silence_has_no_features() -> None:
    assert ear_features.features(np.zeros(RATE, np.float32), RATE) is None
    assert ear_features.features(np.zeros(0, np.float32), RATE) is None
    assert ear_features.features(np.full(RATE, np.nan, np.float32), RATE) is None
