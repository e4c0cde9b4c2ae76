"""A background lies under speech at the wanted ratio, as long as the speech, without clipping or clicks."""

from __future__ import annotations

import numpy as np
import pytest

from overtone import audio
from overtone.audio._mix import fit
from overtone.errors import AudioError

from .wavs import tone


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


@pytest.mark.parametrize("snr", [-5.0, 0.0, 10.0, 30.0])
@pytest.mark.parametrize("length", [3000, 16000, 90000])
def test_the_ratio_is_what_was_asked_for(snr: float, length: int) -> None:
    noise = np.random.default_rng(3).normal(0, 0.3, length).astype(np.float32)
    speech = tone(1.0, level=0.1)
    mixed = audio.mix(speech, noise, 16000, snr)
    assert len(mixed) == len(speech)
    gain = float(mixed @ speech / (speech @ speech)) if snr > 20 else 1.0
    assert 20 * np.log10(gain * rms(speech) / rms(mixed - gain * speech)) == pytest.approx(snr, abs=0.2)


def test_a_loud_mix_is_turned_down_as_a_whole() -> None:
    noise = np.random.default_rng(4).normal(0, 0.3, 16000).astype(np.float32)
    speech = tone(1.0, level=0.95)
    mixed = audio.mix(speech, noise, 16000, 0.0)
    quiet = audio.mix(speech * 0.01, noise, 16000, 0.0)
    assert np.abs(mixed).max() <= 0.981
    np.testing.assert_allclose(mixed / rms(mixed), quiet / rms(quiet), atol=1e-4)


def test_a_short_background_is_looped_without_a_step() -> None:
    ramp = np.linspace(-0.5, 0.5, 8000, dtype=np.float32)  # its end is far from its beginning
    looped = fit(ramp, 40000, 16000)
    assert len(looped) == 40000
    assert np.array_equal(looped[:7000], ramp[:7000])
    assert np.abs(np.diff(looped)).max() < 0.01
    assert len(fit(ramp[:1], 10, 16000)) == 10


def test_a_level_is_set_and_held_under_the_ceiling() -> None:
    assert 20 * np.log10(rms(audio.level(tone(level=0.01), -20.0))) == pytest.approx(-20.0, abs=0.01)
    assert np.abs(audio.level(tone(), 0.0)).max() == pytest.approx(0.98, abs=1e-3)
    assert rms(audio.mix(tone(level=0.01), tone(hz=3000), 16000, 60.0, speech_dbfs=-20)) == pytest.approx(0.1, abs=1e-3)


def test_silence_has_no_ratio_and_no_level() -> None:
    quiet = np.zeros(100, np.float32)
    for use in (
        lambda: audio.level(quiet, -20),
        lambda: audio.mix(quiet, tone(), 16000, 10),
        lambda: audio.mix(tone(), quiet, 16000, 10),
        lambda: audio.mix(tone(), [], 16000, 10),
    ):
        with pytest.raises(AudioError):
            use()
