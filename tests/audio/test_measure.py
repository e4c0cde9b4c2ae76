"""Measures are right on sounds whose values are known, and calm on silence, noise and scraps."""

from __future__ import annotations

import time

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.errors import AudioError

from .wavs import tone

RATE = 24000
T = np.arange(3 * RATE) / RATE


def voice(hz: np.ndarray | float, harmonics: int = 20, level: float = 0.2) -> np.ndarray:
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(hz, T.shape)) / RATE
    return level * sum(np.sin(k * phase) / k for k in range(1, harmonics))


def noise(seconds: float = 3.0, level: float = 0.1) -> np.ndarray:
    return np.random.default_rng(7).normal(0, level, int(seconds * RATE))


@pytest.mark.parametrize("hz", [62.0, 98.0, 130.0, 220.0, 441.0, 590.0])
@pytest.mark.parametrize("make", [voice, lambda hz: tone(3.0, RATE, hz)])
def test_the_pitch_of_a_steady_voice_is_found_within_half_a_percent(hz: float, make: object) -> None:
    m = audio.measure(make(hz), RATE)  # type: ignore[operator]
    assert m.f0_hz == pytest.approx(hz, rel=0.005)
    assert m.voiced > 0.95
    assert m.f0_sd_st is not None and m.f0_sd_st < 0.1


@pytest.mark.parametrize("rate", [8000, 16000, 44100, 48000])
def test_the_pitch_does_not_depend_on_the_rate(rate: int) -> None:
    assert audio.measure(tone(2.0, rate, 180.0), rate).f0_hz == pytest.approx(180.0, rel=0.005)


def test_vibrato_gives_its_depth() -> None:
    m = audio.measure(voice(200 * 2 ** (2 * np.sin(2 * np.pi * 2 * T) / 12)), RATE)
    assert m.f0_hz == pytest.approx(200, rel=0.03)
    assert m.f0_sd_st == pytest.approx(2 / np.sqrt(2), rel=0.1)
    assert m.f0_range_st == pytest.approx(2 * 2 * np.cos(0.1 * np.pi), rel=0.1)  # p10 to p90 of a sine's values


def test_pitch_survives_noise_at_ten_decibel() -> None:
    m = audio.measure(audio.mix(voice(150.0), noise(), RATE, 10.0), RATE)
    assert m.f0_hz == pytest.approx(150, rel=0.01)
    assert m.voiced > 0.9
    assert m.hnr_db == pytest.approx(10.0, abs=3.0)


def test_noise_has_no_pitch_and_no_tilt() -> None:
    m = audio.measure(noise(), RATE)
    assert m.voiced < 0.02
    assert m.tilt_db_oct == pytest.approx(0.0, abs=0.5)
    assert m.centroid_hz == pytest.approx(4000, rel=0.1)  # half of the 8 kHz that are measured
    assert m.rms_dbfs == pytest.approx(-20.0, abs=0.1)


def test_pink_noise_tilts_by_three_decibel_per_octave() -> None:
    spectrum = np.fft.rfft(noise(10.0))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    pink = np.fft.irfft(spectrum)
    assert audio.measure(pink / np.abs(pink).max() * 0.5, RATE).tilt_db_oct == pytest.approx(-3.0, abs=0.4)


def test_level_peak_and_clipping_are_exact() -> None:
    m = audio.measure(tone(1.0, level=0.5), 16000)
    assert m.rms_dbfs == pytest.approx(20 * np.log10(0.5 / np.sqrt(2)), abs=0.01)
    assert m.peak_dbfs == pytest.approx(20 * np.log10(0.5), abs=0.01)
    assert m.clipped == 0.0
    hard = np.clip(tone(1.0, level=2.0), -1, 1)
    assert audio.measure(hard, 16000).clipped == pytest.approx(np.mean(np.abs(hard) == 1), abs=0.01)
    touching = tone(1.0, hz=4000.0, level=1.0)  # one sample at full scale at a time is no clipping
    assert audio.measure(touching, 16000).clipped == 0.0


def test_pauses_are_counted_and_timed() -> None:
    word, short, long = voice(150.0)[: RATE // 2], np.zeros(RATE // 10), np.zeros(int(0.6 * RATE))
    quiet = 1e-4 * np.random.default_rng(1).normal(size=RATE // 2)
    x = np.concatenate([quiet, word, short, word, long, word, np.zeros(int(0.3 * RATE)), word, quiet])
    m = audio.measure(x, RATE)
    assert m.pauses == 2
    assert m.longest_pause == pytest.approx(0.6, abs=0.05)
    assert m.pause_seconds == pytest.approx(0.9, abs=0.08)
    assert m.active == pytest.approx(2.0 / 4.0, abs=0.05)


def test_the_noise_floor_and_the_ratio_over_it_are_estimated() -> None:
    x = voice(150.0) * (np.sin(2 * np.pi * 0.8 * T) > 0)
    x = x / np.sqrt(np.mean(x[x != 0] ** 2)) * 0.1 + np.random.default_rng(2).normal(0, 0.001, len(x))
    m = audio.measure(x, RATE)
    assert m.noise_floor_dbfs == pytest.approx(-61.8, abs=2.0)  # -60 dBFS, less what lies above 8 kHz
    assert m.snr_db == pytest.approx(41.0, abs=3.0)


@pytest.mark.parametrize("hz", [3.0, 5.0])
def test_energy_peaks_are_counted_as_pace(hz: float) -> None:
    x = tone(3.0, RATE, 600.0) * (0.55 + 0.45 * np.sin(2 * np.pi * hz * T))
    m = audio.measure(x, RATE)
    assert m.rate_hz == pytest.approx(hz, rel=0.1)
    assert m.modulation == pytest.approx(0.45 / 0.55 / np.sqrt(2), rel=0.1)


def test_a_breathier_voice_has_a_lower_harmonic_ratio() -> None:
    clear, breathy = (audio.measure(audio.mix(voice(200.0), noise(), RATE, snr), RATE).hnr_db for snr in (30.0, 5.0))
    assert clear is not None and breathy is not None and clear > breathy + 10


@pytest.mark.parametrize("x", [np.zeros(48000), np.zeros(1), np.array([0.3]), np.full(100, 1e-9), np.ones(16000) * 0.5])
def test_silence_and_scraps_have_finite_values_or_none(x: np.ndarray) -> None:
    m = audio.measure(x, 16000)
    assert m.f0_hz is None
    assert all(v is None or np.isfinite(v) for v in msgspec.structs.asdict(m).values())


@pytest.mark.parametrize("milliseconds", range(10, 130, 10))
def test_a_sound_of_a_few_frames_can_be_measured(milliseconds: int) -> None:
    m = audio.measure(0.3 * np.sin(2 * np.pi * 300 * np.arange(16 * milliseconds) / 16000), 16000)
    assert m.seconds == pytest.approx(milliseconds / 1000)
    assert all(v is None or np.isfinite(v) for v in msgspec.structs.asdict(m).values())


def test_what_cannot_be_measured_is_refused() -> None:
    for bad in ([], [np.nan], np.zeros((2, 2))):
        with pytest.raises(AudioError):
            audio.measure(bad, 16000)


def test_a_minute_is_measured_in_a_fraction_of_a_second() -> None:
    x = np.tile(voice(150.0), 20)
    audio.measure(x[:RATE], RATE)
    began = time.process_time()
    audio.measure(x, RATE)
    assert 60 / (time.process_time() - began) > 40
