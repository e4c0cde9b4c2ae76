"""Fundamental frequency (60–600 Hz) by the YIN method, in NumPy, for all frames of a block at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.audio._read import Samples

LOW_HZ, HIGH_HZ = 60.0, 600.0
_WINDOW = 0.032  # seconds compared with themselves one lag later: two periods at 60 Hz
_SURE = 0.15  # the first dip below this is taken; the threshold of the YIN paper is between 0.1 and 0.15
_PERIODIC = 0.35  # above this a frame has no pitch
_FAR = 0.85  # octaves from the median: further away, it is rather a harmonic mistaken for the pitch than a moving voice
_BLOCK = 512  # frames at once: bounds memory for long sounds, and stays in the cache


class Pitch(Struct, frozen=True):
    """One value per frame: frequency in Hz, periodicity (1 = fully periodic), and whether the frame has a pitch."""

    hz: npt.NDArray[np.float64]
    strength: npt.NDArray[np.float64]
    voiced: npt.NDArray[np.bool_]


def track(x: Samples, rate: int, hop: int, frames: int, width: int) -> Pitch:
    """Measure the pitch of `frames` frames, centred on windows of `width` samples taken every `hop`."""
    window, longest = int(_WINDOW * rate), int(rate / LOW_HZ) + 2
    span = window + longest
    front = max(0, (span - width) // 2)
    padded = np.zeros(max(front + len(x), (frames - 1) * hop + span), np.float32)
    padded[front : front + len(x)] = x
    strided = np.lib.stride_tricks.sliding_window_view(padded, span)[::hop][:frames]
    hz, strength, dip = np.zeros(frames), np.zeros(frames), np.ones(frames)
    for at in range(0, frames, _BLOCK):
        part = slice(at, at + _BLOCK)
        hz[part], strength[part], dip[part] = _yin(strided[part], rate, window, longest)
    return Pitch(hz, strength, _steady(hz, dip < _PERIODIC))


def _yin(
    frames: Samples, rate: int, window: int, longest: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    columns = np.arange(len(frames))
    both, difference = _difference(frames, window, longest)
    dips = np.ones_like(difference)
    mean = np.zeros(len(frames))
    for step in range(1, longest):  # a cumulative sum over lags, of all frames at once
        mean += difference[step]
        # The mean of a quiet frame is tiny; such a frame counts as aperiodic instead of dividing by almost 0.
        average = mean / step
        np.divide(difference[step], average, out=dips[step], where=average > 1e-9 * window)
    first = int(rate / HIGH_HZ)
    lag = _lag(dips[first : longest - 1]) + first
    left, middle, right = difference[lag - 1, columns], difference[lag, columns], difference[lag + 1, columns]
    bend = left - 2.0 * middle + right
    shift = np.divide(0.5 * (left - right), bend, out=np.zeros(len(frames)), where=bend > 0)
    shift = np.clip(shift, -0.5, 0.5)
    total = both[lag, columns]
    bottom = np.maximum(middle - 0.25 * (left - right) * shift, 0.0)
    strength = 1.0 - np.divide(bottom, total, out=np.ones(len(frames)), where=total > 0)
    return rate / (lag + shift), np.clip(strength, 0.0, 1.0), dips[lag, columns]


def _difference(frames: Samples, window: int, longest: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the energy of both windows and YIN's difference function, with one row per lag and one column per frame.

    The sums over samples are computed by adding whole rows, so that one addition serves all frames at once.
    """
    size = 1 << (frames.shape[1] - 1).bit_length()
    spectrum = np.fft.rfft(frames[:, :window], size, axis=1)
    np.conjugate(spectrum, out=spectrum)
    spectrum *= np.fft.rfft(frames, size, axis=1)
    product = np.fft.irfft(spectrum, size, axis=1)[:, :longest]
    squares = np.square(frames.T, dtype=np.float64, order="C")
    for row in range(1, len(squares)):
        squares[row] += squares[row - 1]
    both = squares[window - 1 : window - 1 + longest].copy()
    both[1:] -= squares[: longest - 1]  # the energy of the window at each lag
    both += both[0].copy()
    difference = np.ascontiguousarray(product.T) * -2.0
    return both, np.maximum(both + difference, 0.0)


def _lag(dips: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return, for each frame, the lag at the bottom of the first dip below `_SURE`, or of the lowest value if there is
    none."""
    sure = dips < _SURE
    rising = np.ones_like(sure)
    np.greater_equal(dips[1:], dips[:-1], out=rising[:-1])
    begun = np.logical_or.accumulate(sure, axis=0)
    lag: npt.NDArray[np.int64] = np.where(begun[-1], np.argmax(begun & rising, axis=0), np.argmin(dips, axis=0))
    return lag


def _steady(hz: npt.NDArray[np.float64], voiced: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return `voiced` without runs of fewer than three frames, and without frames whose pitch is an octave away from
    their neighbours or from the median.

    Short runs are noise. Octave errors are harmonics mistaken for the pitch, often for a whole syllable, because of a
    strong resonance.
    """
    kept = drop_short(voiced, 3)
    if not kept.any():
        return kept
    octaves = np.where(kept, np.log2(np.maximum(hz, 1.0)), np.nan)
    near = np.lib.stride_tricks.sliding_window_view(np.pad(octaves, 7, constant_values=np.nan), 15)
    around = np.full(len(hz), np.nan)
    around[kept] = np.nanmedian(near[kept], axis=1)
    off: npt.NDArray[np.bool_] = (np.abs(octaves - around) > 0.7) | (np.abs(octaves - np.nanmedian(octaves)) > _FAR)
    return kept & ~off


def runs(flags: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the index of the first value of each run of True, and the index after its last value."""
    edges = np.diff(np.concatenate(([0], flags.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def drop_short(flags: npt.NDArray[np.bool_], least: int) -> npt.NDArray[np.bool_]:
    """Return `flags` with every run of fewer than `least` true values set to false."""
    out = flags.copy()
    for begin, end in zip(*runs(flags), strict=True):
        if end - begin < least:
            out[begin:end] = False
    return out
