"""Forty plain measures of how something is said: pitch and its contour, pace, pauses, loudness, timbre, steadiness.

They follow the minimalistic sets of the field (Eyben et al. 2016, GeMAPS) as far as plain NumPy goes. Measured of a
clip and of the same speaker's neutral clip, their difference is what the delivery changed.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from overtone import audio
from overtone.audio._pitch import runs, track

_RATE, _HOP, _WIDTH = 16_000, 160, 400
_EDGES = (80, 250, 500, 1000, 1600, 2500, 4000, 6000, 7800)
_CEPSTRA = 6
NAMES: tuple[str, ...] = (
    "seconds", "level", "level range", "level slope", "modulation", "rate", "pause share", "pauses", "voiced",
    "voiced run", "pitch", "pitch low", "pitch high", "pitch sd", "pitch speed", "pitch slope", "pitch start",
    "pitch end", "pitch peak place", "pitch jumps", "periodicity", "periodicity low", "shimmer", "alpha", "hammarberg",
    "centroid",
    *(f"band {low}" for low in _EDGES[:-1]), *(f"cepstrum sd {k}" for k in range(1, _CEPSTRA + 1)),
)  # fmt: skip


def prosody(samples: np.ndarray, rate: int) -> list[float]:
    """The measures in the order of NAMES; nan where one cannot be taken."""
    x = audio.resample(np.asarray(samples, np.float32), rate, _RATE)
    found = audio.measure(x, _RATE)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, (0, 512)), 512)[::_HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(512).astype(np.float32), axis=1))).astype(np.float64)
    total = 10 * np.log10(power.sum(1) + 1e-9)
    active = total > max(np.percentile(total, 95) - 32, np.percentile(total, 8) + 6)
    if active.sum() < 10:
        return [math.nan] * len(NAMES)
    at = np.flatnonzero(active)
    first, last = int(at[0]), int(at[-1]) + 1
    span = (last - first) * _HOP / _RATE
    levels = total[active]
    begins, ends = runs(active)
    gaps = (begins[1:] - ends[:-1]) * _HOP / _RATE
    gaps = gaps[gaps > 0.12]
    spoken = power[active].mean(0)
    hertz = np.fft.rfftfreq(512, 1 / _RATE)

    def band(low: float, high: float) -> float:
        return float(10 * np.log10(spoken[(hertz >= low) & (hertz < high)].sum() + 1e-9))

    def peak(low: float, high: float) -> float:
        return float(10 * np.log10(spoken[(hertz >= low) & (hertz < high)].max() + 1e-9))

    whole = band(80, 7800)
    moves = np.abs(np.diff(total))[active[1:] & active[:-1]]
    return [
        math.log2(span), float(10 * np.log10(np.mean(10 ** (levels / 10)))),
        float(np.ptp(np.percentile(levels, (10, 90)))),
        float(np.polyfit(at / len(total), levels, 1)[0]), found.modulation or math.nan,
        math.log2(found.rate_hz) if found.rate_hz else math.nan, float(gaps.sum() / span), len(gaps) / span,
        *_pitch(x, len(total), active),
        float(np.median(moves)), band(50, 1000) - band(1000, 5000), peak(50, 2000) - peak(2000, 5000),
        math.log2(found.centroid_hz or 1000.0),
        *(band(low, high) - whole for low, high in pairwise(_EDGES)),
        *_cepstra(power[active]),
    ]  # fmt: skip


def _pitch(x: np.ndarray, count: int, active: np.ndarray) -> list[float]:
    """From the share of voiced frames to the low end of periodicity."""
    found = track(x, _RATE, _HOP, count, _WIDTH)
    voiced = found.voiced & active
    if voiced.sum() < 8:
        return [float(voiced.sum() / active.sum()), *([math.nan] * 13)]
    begins, ends = runs(voiced)
    semitones = 12 * np.log2(np.maximum(found.hz, 1.0) / 100)
    at = np.flatnonzero(voiced)
    st = semitones[voiced]
    middle = float(np.median(st))
    joined = np.diff(at) == 1
    speed = np.abs(np.diff(st))[joined]
    place = (at - at[0]) / max(at[-1] - at[0], 1)
    return [
        float(voiced.sum() / active.sum()), float(np.mean(ends - begins)) / 100, middle,
        float(np.percentile(st, 5)) - middle, float(np.percentile(st, 95)) - middle, float(st.std()),
        float(np.median(speed)) if speed.size else math.nan, float(np.polyfit(place, st, 1)[0]),
        float(st[place < 0.15].mean()) - middle, float(st[place > 0.85].mean()) - middle,
        float(place[int(np.argmax(np.convolve(st, np.ones(5) / 5, "same")))]),
        float(np.percentile(np.abs(np.diff(st, 2))[joined[1:] & joined[:-1]], 75)) if joined.sum() > 4 else math.nan,
        float(np.median(found.strength[voiced])), float(np.percentile(found.strength[voiced], 15)),
    ]  # fmt: skip


def _cepstra(power: np.ndarray) -> list[float]:
    """How far the first cepstral coefficients of twenty mel bands swing."""
    mel = 700 * (10 ** (np.linspace(0, 2595 * math.log10(1 + 7800 / 700), 22) / 2595) - 1)
    hertz = np.fft.rfftfreq(512, 1 / _RATE)
    weights = np.stack([np.interp(hertz, mel[k : k + 3], (0, 1, 0)) for k in range(20)], 1)
    log = np.log(power @ weights + 1e-9)
    cosines = np.cos(np.pi / 20 * (np.arange(20) + 0.5)[:, None] * np.arange(1, _CEPSTRA + 1))
    return np.std(log @ cosines, axis=0).tolist()
