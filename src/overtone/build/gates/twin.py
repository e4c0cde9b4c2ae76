"""Compare a clip with its neutral twin.

If both contain the same voice samples, the result is the ratio of voice to scene. Otherwise the two utterances are
aligned, which shows the sounds added between the words, and whether one voice said both utterances.
"""

from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.audio import Samples

RATE = 16_000
FLOOR_DB = -60.0
_SIZE, _HOP = 512, 320  # 32 ms windows every 20 ms
_EDGES = tuple(200.0 * 2 ** (k / 3) for k in range(16))  # third octaves from 200 Hz to 6.4 kHz
_ADDED = 9  # this many frames (180 ms) aligned with one or two of the twin are an insertion, not a longer word
_STEP = 1.5  # cost of a step in only one of the two, in RMS dB of a frame
_SHORT = 96  # 6 ms: this window cannot resolve single harmonics, so that another pitch is not another timbre
_FILTERS, _LOW, _HIGH = 24, 600.0, 7000.0
_LOUD_DB = 25.0  # only frames at most this far below the loud ones are compared

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Pair(Struct, frozen=True):
    """The differences between a clip and its neutral twin. Levels are in dB; None means not measurable."""

    formants: float  # the recipe's factor on the resonances, which `voice_db` compensates
    gain_db: float | None  # gain of the twin's voice in the clip, if the clip contains it sample for sample
    snr_db: float | None  # that voice relative to the rest of the clip
    over: float | None  # share of 20 ms frames in which the rest is louder than the voice
    events_db: float  # level of sound added before, between and after the words, relative to them; -60 for none
    events_seconds: float  # duration of added sound that is not silent
    voice_db: float | None  # median distance between the spectra of aligned frames, without level and slope


def compare(clip: Samples, twin: Samples, rate: int, twin_rate: int, formants: float = 1.0) -> Pair:
    """Compare two renderings of the same words."""
    gain = snr = over = None
    if rate == twin_rate and len(clip) == len(twin):
        gain, snr, over = _under(clip.astype(np.float64), twin.astype(np.float64), rate)
    a, b = audio.resample(clip, rate, RATE), audio.resample(twin, twin_rate, RATE)
    la, lb = _bands(*spectrogram(a)), _bands(*spectrogram(b))
    i, j = align(la, lb)
    added = _added(i, j, len(la))
    total = (10 ** (la / 10)).sum(1)
    events_db = max(10 * float(np.log10((total[added].sum() + 1e-12) / (total[~added].sum() + 1e-12))), FLOOR_DB)
    audible = added & (total > np.percentile(total, 95) * 1e-3)
    loud_a, loud_b = la.max(1), lb.max(1)
    keep = ~added[i] & (loud_a[i] > np.percentile(loud_a, 95) - _LOUD_DB)
    keep &= loud_b[j] > np.percentile(loud_b, 95) - _LOUD_DB
    return Pair(
        formants=formants,
        gain_db=gain,
        snr_db=snr,
        over=over,
        events_db=round(events_db, 2),
        events_seconds=round(float(audible.sum() * _HOP / RATE), 2),
        voice_db=_distance(a, b, i[keep], j[keep], formants),
    )


def spectrogram(x: Samples) -> tuple[Array, Array]:
    """Return the power per frame and frequency of a sound at RATE, and the frequencies."""
    x = np.pad(x, (_SIZE // 2, max(_SIZE // 2, _SIZE - len(x))))
    frames = np.lib.stride_tricks.sliding_window_view(x, _SIZE)[::_HOP] * np.hanning(_SIZE).astype(np.float32)
    power = np.square(np.abs(np.fft.rfft(frames, axis=1))).astype(np.float64)
    return power, np.linspace(0.0, RATE / 2, _SIZE // 2 + 1)


def _bands(power: Array, hertz: Array) -> Array:
    """Return the third-octave levels in dB: (frames, bands). Levels are floored at 60 dB below the loudest band of
    any frame."""
    out = np.stack([power[:, (hertz >= a) & (hertz < b)].mean(1) for a, b in pairwise(_EDGES)], 1)
    return np.asarray(10 * np.log10(np.maximum(out, out.max() * 1e-6) + 1e-20))


def _under(clip: Array, twin: Array, rate: int) -> tuple[float | None, float | None, float | None]:
    """Return how strongly the twin's voice is contained in the clip, as three numbers.

    They are the twin's gain within the clip by least squares (dB), the ratio of the scaled twin to the rest of the clip
    (dB), and the share of frames in which the rest is louder.
    """
    energy = float(twin @ twin)
    gain = float(clip @ twin) / energy if energy else 0.0
    if gain <= 0:
        return None, None, None
    rest = clip - gain * twin
    snr = 10 * np.log10(gain * gain * energy / (float(rest @ rest) + 1e-12))
    size = rate // 50
    count = len(clip) // size
    voice = np.square(gain * twin[: count * size].reshape(count, size)).mean(1)
    left = np.square(rest[: count * size].reshape(count, size)).mean(1)
    return round(20 * float(np.log10(gain)), 3), round(float(snr), 3), round(float((left > voice).mean()), 4)


def align(a: Array, b: Array) -> tuple[Index, Index]:
    """Align two sequences of band levels, each minus its own mean. Return the indices along the cheapest monotone
    path."""
    a, b = a - a.mean(0), b - b.mean(0)
    cost = np.sqrt(np.maximum((a**2).mean(1)[:, None] + (b**2).mean(1)[None, :] - 2 * (a @ b.T) / a.shape[1], 0))
    n, m = cost.shape
    best = np.full((n + 1, m + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((n, m), np.int8)
    for d in range(n + m - 1):  # one anti-diagonal at a time
        i = np.arange(max(0, d - m + 1), min(n, d + 1))
        j = d - i
        ways = np.stack([best[i, j], best[i, j + 1] + _STEP, best[i + 1, j] + _STEP])
        way = ways.argmin(0)
        came[i, j] = way
        best[i + 1, j + 1] = cost[i, j] + ways[way, np.arange(len(i))]
    path = [(n - 1, m - 1)]
    while path[-1] != (0, 0):
        i0, j0 = path[-1]
        way0 = came[i0, j0] if i0 and j0 else (1 if i0 else 2)
        path.append((i0 - (way0 != 2), j0 - (way0 != 1)))
    steps = np.array(path[::-1])
    return steps[:, 0], steps[:, 1]


def _added(i: Index, j: Index, n: int) -> NDArray[np.bool_]:
    """Return a mask of the clip's frames that the twin lacks: long stretches in which the path hardly advances in the
    twin."""
    at = np.zeros(n)
    at[i] = j  # the last frame of the twin that is aligned with each frame of the clip
    added = np.zeros(n, bool)
    for k in range(n - _ADDED + 1):
        if at[k + _ADDED - 1] - at[k] <= 1:
            added[k : k + _ADDED] = True
    return added


@functools.lru_cache(8)
def _filters(formants: float) -> tuple[Array, Array]:
    """Return triangular mel filters for a throat scaled by 1 / `formants`, and a projection matrix.

    The projection removes a constant level and a slope over octaves, up to the highest frequency that a recipe tilts.
    """
    mel = np.linspace(2595 * np.log10(1 + _LOW / 700), 2595 * np.log10(1 + _HIGH / 700), _FILTERS + 2)
    edge = 700 * (10 ** (mel / 2595) - 1)
    hertz = np.linspace(0.0, RATE / 2, _SIZE // 2 + 1)[None, :]
    low, top, high = (e[:, None] / formants for e in (edge[:-2], edge[1:-1], edge[2:]))
    weight = np.maximum(0.0, np.minimum((hertz - low) / (top - low), (high - hertz) / (high - top)))
    octave = np.log2(np.minimum(edge[1:-1], 6000.0))
    base = np.stack([np.ones_like(octave), octave], 1)
    return weight / weight.sum(1, keepdims=True), np.eye(_FILTERS) - base @ np.linalg.pinv(base)


def _short_spectra(x: Samples, frames: Index, formants: float) -> Array:
    """Return the filters' levels in dB around the middle of each frame, averaged over seven short windows."""
    x = np.pad(x, (_SIZE, 2 * _SIZE))
    window = np.hanning(_SHORT).astype(np.float32)
    power = np.zeros((len(frames), _SIZE // 2 + 1))
    for offset in range(-120, 160, 40):
        starts = frames * _HOP + _SIZE - _SHORT // 2 + offset
        cut = x[starts[:, None] + np.arange(_SHORT)[None, :]] * window
        power += np.square(np.abs(np.fft.rfft(cut, _SIZE, axis=1)))
    return np.asarray(10 * np.log10(power @ _filters(formants)[0].T + 1e-12))


def _distance(a: Samples, b: Samples, i: Index, j: Index, formants: float) -> float | None:
    """Return how much two voices differ, in dB; None for fewer than 20 pairs of aligned frames.

    This is the RMS difference of the spectra in each pair, without level and slope, and then the median over the pairs.
    """
    if len(i) < 20:
        return None
    left = (_short_spectra(a, i, 1.0) - _short_spectra(b, j, formants)) @ _filters(1.0)[1].T
    return round(float(np.median(np.sqrt((left**2).mean(1)))), 3)
