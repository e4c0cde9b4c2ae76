"""The input of the emotion predictor: 117 numbers on how an utterance is spoken, independent of speaker and loudness.

Pitch is measured in semitones from the utterance's own median, levels relative to its own loudest parts. Median pitch
and mean spectrum describe the speaker. They are included too, so that a model can distinguish a high voice from a
raised one. The choice follows the minimal feature sets of the field (GeMAPS, Eyben et al. 2016) as far as plain NumPy
allows.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from overtone.audio import Samples, resample
from overtone.audio._pitch import Pitch, drop_short, runs, track

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

RATE, HOP, SIZE = 16_000, 160, 512
LONGEST = 30  # seconds that are used: the mood of a reply shows long before that
_HZ = np.fft.rfftfreq(SIZE, 1 / RATE)
_MELS, _CEPSTRA = 24, 13
_PAUSE = 15  # frames
_BANDS = (80, 250, 500, 1000, 1600, 2500, 4000, 6000, 7800)
_MODULATIONS = ((1.0, 2.5), (2.5, 5.0), (5.0, 9.0), (9.0, 16.0))  # Hz


def _names() -> tuple[str, ...]:
    pitch = (
        "middle", "p5", "p10", "p25", "p75", "p90", "p95", "sd", "skew", "slope", "bend", "start", "end", "peak place",
        "low place", "speed", "fast speed", "roughness", "tremor", "run slope", "run slope sd", "rising",
        "run height sd", "last run slope", *(f"shape {k}" for k in range(1, 6)),
    )  # fmt: skip
    voice = ("voiced", "run", "run sd", "strength", "strength low", "strength high", "h1-h2", "h1-h2 sd", "h1-a3",
             "shimmer")  # fmt: skip
    level = ("sd", "range", "skew", "slope", "end", "speed", "rise speed", "fall speed", "with pitch", "with tilt")
    pace = ("rate", "pauses", "pause share", "mean pause", "longest pause", "peak sd", "peak gap sd")
    spectrum = (
        "alpha", "hammarberg", "slope low", "slope middle", "centroid", "centroid sd", "flux", "alpha loud",
        "alpha soft", "alpha sd", "noise centroid", "noise high", "noise share",
    )  # fmt: skip
    return (
        *(f"pitch {n}" for n in pitch), *(f"voice {n}" for n in voice), *(f"level {n}" for n in level),
        *(f"modulation {low:g}-{high:g}" for low, high in _MODULATIONS), *(f"pace {n}" for n in pace),
        *(f"spectrum {n}" for n in spectrum), *(f"band {low}" for low in _BANDS[:-1]),
        *(f"cepstrum {k}" for k in range(1, _CEPSTRA)), *(f"cepstrum sd {k}" for k in range(1, _CEPSTRA)),
        *(f"cepstrum speed {k}" for k in range(1, _CEPSTRA)),
    )  # fmt: skip


FEATURES = _names()


def features(samples: Samples, rate: int) -> Array | None:
    """Return the numbers in the order of FEATURES, NaN if one cannot be measured; None without speech."""
    x = resample(np.asarray(samples, np.float32), rate, RATE)[: LONGEST * RATE]
    if len(x) < SIZE + 30 * HOP or not np.isfinite(x).all():
        return None
    x = x - x.mean(dtype=np.float64).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(x, SIZE)[::HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(SIZE).astype(np.float32), axis=1))).astype(np.float64)
    power[:, _HZ < 60] = 0.0  # hum and rumble are not part of a voice
    level = 10 * np.log10(power.sum(1) + 1e-12)
    loud, floor = float(np.percentile(level, 95)), float(np.percentile(level, 8))
    if loud < -55:  # about -90 dBFS: digital silence
        return None
    active = drop_short(level > max(min(max(floor + 6, loud - 35), loud - 6), -60.0), 4)
    if active.sum() < 30:
        return None
    at = np.flatnonzero(active)
    span = slice(int(at[0]), int(at[-1]) + 1)
    pitch = track(x, RATE, HOP, len(level), SIZE)
    voiced = pitch.voiced & active
    level = np.maximum(level - loud, -45.0)  # anything quieter is the recording, not the voice
    alpha = _ratio(power, (50, 1000), (1000, 5000))
    parts = (
        _pitch(pitch, voiced),
        _voice(pitch, power, level, voiced, active),
        _level(pitch, level, alpha, active, voiced, span),
        _pace(power, active, span),
        _spectrum(power, level, alpha, active, voiced),
        _cepstra(power, active),
    )
    out = np.concatenate([np.asarray(part, np.float64) for part in parts])
    return np.where(np.isfinite(out), out, np.nan)


def _pitch(pitch: Pitch, voiced: Flags) -> list[float]:
    nothing = [np.nan] * sum(name.startswith("pitch ") for name in FEATURES)
    if voiced.sum() < 20:
        return nothing
    where = np.flatnonzero(voiced)
    st = 12 * np.log2(pitch.hz[voiced] / 100)
    middle = float(np.median(st))
    own = st - middle
    place = (where - where[0]) / max(where[-1] - where[0], 1)
    low, p10, p25, p75, p90, high = (float(v) for v in np.percentile(own, (5, 10, 25, 75, 90, 95)))
    bend, slope, _ = np.polyfit(place - 0.5, own, 2)
    joined = np.diff(where) == 1
    steps = np.diff(own)[joined]
    twice = np.abs(np.diff(own, 2))[joined[1:] & joined[:-1]]
    smooth = np.interp(np.arange(where[0], where[-1] + 1), where, own)
    wide = np.convolve(np.pad(smooth, 12, mode="edge"), np.ones(25) / 25, "valid")[: len(smooth)]
    begins, ends = runs(voiced)
    slopes, heights = [], []
    for a, b in zip(begins.tolist(), ends.tolist(), strict=True):
        if b - a >= 6:
            run = 12 * np.log2(pitch.hz[a:b] / 100) - middle
            slopes.append(float(np.polyfit(np.arange(b - a) / 100, run, 1)[0]))
            heights.append(float(run.mean()))
    spectrum = np.abs(np.fft.rfft((smooth - wide) * np.hanning(len(smooth)), 512)) ** 2
    hertz = np.fft.rfftfreq(512, 0.01)
    shaking = spectrum[(hertz >= 3.5) & (hertz < 9)].sum() / (spectrum[hertz < 20].sum() + 1e-9)
    even = np.interp(np.linspace(0, len(smooth) - 1, 64), np.arange(len(smooth)), wide)
    cosines = np.cos(np.pi / 64 * (np.arange(64) + 0.5)[:, None] * np.arange(1, 6)) / 64
    peak = np.convolve(own, np.ones(5) / 5, "same")
    return [
        middle, low, p10, p25, p75, p90, high, float(own.std()), float(np.mean(own**3) / (own.std() ** 3 + 1e-6)),
        float(slope), float(bend), float(own[place < 0.15].mean()), float(own[place > 0.85].mean()),
        float(place[int(peak.argmax())]), float(place[int(peak.argmin())]),
        float(np.median(np.abs(steps))), float(np.percentile(np.abs(steps), 90)),
        float(np.percentile(twice, 75)) if twice.size else np.nan, float(shaking),
        float(np.mean(slopes)) if slopes else np.nan, float(np.std(slopes)) if slopes else np.nan,
        float(np.mean(steps > 0)), float(np.std(heights)) if heights else np.nan, slopes[-1] if slopes else np.nan,
        *(even @ cosines).tolist(),
    ]  # fmt: skip


def _voice(pitch: Pitch, power: Array, level: Array, voiced: Flags, active: Flags) -> list[float]:
    """Measure the larynx: length and regularity of voicing, and the strength of the first partials."""
    share = float(voiced.sum() / active.sum())
    if voiced.sum() < 20:
        return [share, *([np.nan] * 9)]
    begins, ends = runs(voiced)
    lengths = (ends - begins) / 100
    strength = pitch.strength[voiced]
    noise = np.log10(np.clip(1 - np.percentile(strength, (50, 85, 15)), 1e-4, 1))
    hz = pitch.hz[voiced]
    rows = power[voiced]
    first, second = (_peak(rows, hz * k) for k in (1, 2))
    third = 10 * np.log10(rows[:, (_HZ > 2000) & (_HZ < 3600)].max(1) + 1e-12)
    moves = np.abs(np.diff(level, 2))[(voiced[2:] & voiced[1:-1] & voiced[:-2])]
    return [
        share, float(lengths.mean()), float(lengths.std()), *noise.tolist(), float(np.median(first - second)),
        float((first - second).std()), float(np.median(first - third)),
        float(np.median(moves)) if moves.size else np.nan,
    ]  # fmt: skip


def _peak(rows: Array, hz: Array) -> Array:
    """Return the level in dB at each frame's own frequency `hz`: the strongest of the three nearest bins."""
    bins = np.clip(np.round(hz / (RATE / SIZE)).astype(int), 1, rows.shape[1] - 2)
    index = np.arange(len(rows))
    return np.asarray(10 * np.log10(np.max([rows[index, bins + d] for d in (-1, 0, 1)], axis=0) + 1e-12))


def _level(pitch: Pitch, level: Array, alpha: Array, active: Flags, voiced: Flags, span: slice) -> list[float]:
    own = level[active]
    at = np.flatnonzero(active)
    place = (at - at[0]) / max(at[-1] - at[0], 1)
    steps = np.diff(level)[active[1:] & active[:-1]]
    up, down = steps[steps > 0], steps[steps < 0]
    enough = voiced.sum() >= 20
    envelope = 10 ** (level[span] / 20)
    envelope = envelope / envelope.mean() - 1
    size = max(1024, 1 << (len(envelope) - 1).bit_length())
    spectrum = np.abs(np.fft.rfft(envelope * np.hanning(len(envelope)), size)) ** 2
    hertz = np.fft.rfftfreq(size, 0.01)
    total = spectrum[(hertz > 0.8) & (hertz < 20)].sum() + 1e-9
    return [
        float(own.std()), float(np.ptp(np.percentile(own, (10, 90)))),
        float(np.mean((own - own.mean()) ** 3) / (own.std() ** 3 + 1e-6)), float(np.polyfit(place, own, 1)[0]),
        float(own[place > 0.8].mean() - own[place < 0.2].mean()), float(np.median(np.abs(steps))),
        float(up.mean()) if up.size else np.nan, float(down.mean()) if down.size else np.nan,
        _related(level[voiced], 12 * np.log2(pitch.hz[voiced])) if enough else np.nan,
        _related(level[voiced], alpha[voiced]) if enough else np.nan,
        *(float(np.log10(spectrum[(hertz >= a) & (hertz < b)].sum() / total + 1e-6)) for a, b in _MODULATIONS),
    ]  # fmt: skip


def _related(a: Array, b: Array) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 1e-6 and b.std() > 1e-6 else 0.0


def _pace(power: Array, active: Flags, span: slice) -> list[float]:
    """Measure the pace: syllables by the peaks of the vowel band, and pauses of 150 ms or more."""
    begins, ends = runs(active)
    gaps = begins[1:] - ends[:-1]
    gaps = gaps[gaps >= _PAUSE]
    seconds = (span.stop - span.start) / 100
    spoken = seconds - gaps.sum() / 100
    kernel = np.hanning(13)[1:-1]
    vowels = power[:, (_HZ >= 250) & (_HZ <= 2500)].sum(1)
    smooth = 10 * np.log10(np.convolve(vowels, kernel / kernel.sum(), "same") + 1e-12)
    tops = np.flatnonzero((smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:])) + 1
    tops = tops[active[tops] & (smooth[tops] > smooth[active].max() - 28)]
    kept: list[int] = []
    for top in tops.tolist():
        if kept and smooth[kept[-1] : top + 1].min() > min(smooth[kept[-1]], smooth[top]) - 1.5:
            kept[-1] = top if smooth[top] > smooth[kept[-1]] else kept[-1]
        else:
            kept.append(top)
    spaces = np.diff(kept)
    spaces = spaces[spaces < 60]
    return [
        float(np.log2(len(kept) / spoken)) if kept else np.nan, len(gaps) / seconds, float(gaps.sum() / 100 / seconds),
        float(gaps.mean() / 100) if gaps.size else 0.0, float(gaps.max() / 100) if gaps.size else 0.0,
        float(np.std(smooth[kept])) if kept else np.nan,
        float(np.std(spaces) / np.mean(spaces)) if spaces.size else np.nan,
    ]  # fmt: skip


def _ratio(power: Array, low: tuple[int, int], high: tuple[int, int]) -> Array:
    below, above = (power[:, (a <= _HZ) & (b > _HZ)].sum(1) for a, b in (low, high))
    return np.asarray(10 * np.log10((below + 1e-12) / (above + 1e-12)))


def _spectrum(power: Array, level: Array, alpha: Array, active: Flags, voiced: Flags) -> list[float]:
    sung = voiced if voiced.sum() >= 20 else active
    mean = power[sung].mean(0)
    whole = mean.sum() + 1e-12

    def slope(low: int, high: int) -> float:
        keep = (low <= _HZ) & (high >= _HZ)
        return float(np.polyfit(_HZ[keep] / 1000, 10 * np.log10(mean[keep] + 1e-12), 1)[0])

    def best(low: int, high: int) -> float:
        return float(10 * np.log10(mean[(low <= _HZ) & (high > _HZ)].max() + 1e-12))

    centroid = np.log2(np.maximum((power[sung] @ _HZ) / (power[sung].sum(1) + 1e-12), 60.0))
    root = np.sqrt(power / (power.sum(1, keepdims=True) + 1e-12))
    flux = np.sqrt(np.square(np.diff(root, axis=0)).sum(1))[active[1:] & active[:-1]]
    edge = np.percentile(level[sung], (30, 70))
    unsung = active & ~voiced
    noise = power[unsung].mean(0) if unsung.sum() >= 5 else None
    return [
        float(np.median(alpha[sung])), best(50, 2000) - best(2000, 5000), slope(60, 500), slope(500, 1500),
        float(np.median(centroid)), float(centroid.std()), float(np.mean(flux)) if flux.size else np.nan,
        float(np.median(alpha[sung & (level >= edge[1])])), float(np.median(alpha[sung & (level <= edge[0])])),
        float(alpha[sung].std()),
        float(np.log2(max((noise @ _HZ) / (noise.sum() + 1e-12), 60.0))) if noise is not None else np.nan,
        _decibel(noise[_HZ > 4000].sum(), noise.sum()) if noise is not None else np.nan,
        _decibel(noise.sum(), whole) if noise is not None else np.nan,
        *(
            float(10 * np.log10(mean[(low <= _HZ) & (high > _HZ)].sum() / whole + 1e-9))
            for low, high in pairwise(_BANDS)
        ),
    ]  # fmt: skip


def _decibel(part: float, whole: float) -> float:
    return float(10 * np.log10((part + 1e-12) / (whole + 1e-12)))


def _mel() -> Array:
    mel = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 7800 / 700), _MELS + 2) / 2595) - 1)
    return np.stack([np.interp(_HZ, mel[k : k + 3], (0, 1, 0)) for k in range(_MELS)], 1)


_MEL = _mel()
_COSINES = np.cos(np.pi / _MELS * (np.arange(_MELS) + 0.5)[:, None] * np.arange(1, _CEPSTRA)) / _MELS


def _cepstra(power: Array, active: Flags) -> list[float]:
    """Return mean, spread and speed of the cepstral coefficients during speech."""
    log = 10 * np.log10(power @ _MEL + 1e-12)
    log = np.maximum(log, log[active].max() - 60)  # a recording's noise floor must not set the spread
    coefficients = log @ _COSINES
    own = coefficients[active]
    moves = np.abs(coefficients[2:] - coefficients[:-2])[active[2:] & active[1:-1] & active[:-2]]
    return [
        *own.mean(0).tolist(),
        *own.std(0).tolist(),
        *(moves.mean(0) if len(moves) else own.std(0) * np.nan).tolist(),
    ]
