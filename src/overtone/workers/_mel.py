"""Mel spectrograms equal to librosa's (Slaney's scale and area norm, centred frames), with NumPy only."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def frames(x: Floats, n_fft: int, hop: int, window: int, pad: str) -> Floats:
    """Return the magnitudes of the short-time Fourier transform: (frames, n_fft // 2 + 1).

    A periodic Hann window of `window` points is centred in `n_fft` points; `pad` is NumPy's mode of padding both ends
    ("reflect", "constant").
    """
    side = n_fft // 2
    padded = np.pad(x.astype(np.float32), side, mode=pad)  # type: ignore[call-overload]
    shape = np.zeros(n_fft, np.float32)
    start = (n_fft - window) // 2
    shape[start : start + window] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    cut = np.lib.stride_tricks.sliding_window_view(padded, n_fft)[::hop]
    out = np.empty((len(cut), n_fft // 2 + 1), np.float32)
    for at in range(0, len(cut), 256):  # the frames overlap, so all of them at once would need much memory
        out[at : at + 256] = np.abs(np.fft.rfft(cut[at : at + 256] * shape, axis=1))
    return out


@lru_cache(maxsize=4)
def filters(rate: int, n_fft: int, bands: int, highest: float) -> Floats:
    """Return triangular filters on Slaney's mel scale, each of area 1 in Hz: (bands, n_fft // 2 + 1)."""
    bins = np.arange(n_fft // 2 + 1) * (rate / n_fft)
    edges = _hertz(np.linspace(0.0, _mel(highest), bands + 2))
    rise = (bins[None, :] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins[None, :]) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.maximum(0.0, np.minimum(rise, fall)) * (2.0 / (edges[2:] - edges[:-2]))[:, None]
    out: Floats = weights.astype(np.float32)
    return out


def decibels(power: Floats, least: float, reference: float = 1.0, span: float = 80.0) -> Floats:
    """Convert power to dB relative to `reference`. Values are at most `span` dB below the peak.

    `power` and `reference` are raised to `least` first, if they are lower.
    """
    out = 10.0 * np.log10(np.maximum(power, least)) - 10.0 * np.log10(max(reference, least))
    floored: Floats = np.maximum(out, out.max() - span).astype(np.float32)
    return floored


_BREAK = 1000.0  # Hz: linear below, logarithmic above
_LINEAR = 200.0 / 3.0  # Hz per mel, below the break
_STEP = np.log(6.4) / 27.0  # per mel, above the break


def _mel(hertz: float) -> float:
    if hertz < _BREAK:
        return hertz / _LINEAR
    return float(_BREAK / _LINEAR + np.log(hertz / _BREAK) / _STEP)


def _hertz(mels: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    bend = _BREAK / _LINEAR
    return np.where(mels < bend, mels * _LINEAR, _BREAK * np.exp(_STEP * (np.maximum(mels, bend) - bend)))
