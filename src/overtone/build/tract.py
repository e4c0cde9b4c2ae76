"""Basic sound synthesis in NumPy for scenes and vocal events: coloured noise, slow curves, a glottis, a throat."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Sound = NDArray[np.float64]
Rng = np.random.Generator
Points = Sequence[tuple[float, float]]  # (Hz, dB) of a spectrum, joined by straight lines on a log frequency axis

VOWELS: dict[str, tuple[float, float, float]] = {  # the first three formants of a grown man, in Hz
    "a": (730, 1090, 2440),
    "e": (530, 1840, 2480),
    "i": (270, 2290, 3010),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
    "uh": (520, 1190, 2390),
    "h": (560, 1480, 2520),
}


def random_of(seed: int, *parts: str) -> Rng:
    """Return a random generator that depends only on the seed and on the parts of its name."""
    digest = hashlib.sha256("/".join((str(seed), *parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def level(x: Sound) -> float:
    """Return the root mean square. It is never 0, so it can be used as a divisor."""
    return float(np.sqrt(np.mean(x * x))) + 1e-12


def unit(x: Sound) -> Sound:
    """Scale a sound to root mean square 1."""
    return x / level(x)


def gain(db: float) -> float:
    return float(10 ** (db / 20))


def density(points: Points, size: int, rate: int) -> Sound:
    """Return the gain at every frequency of an FFT of that size."""
    hertz = np.maximum(np.fft.rfftfreq(size, 1 / rate), 1.0)
    db = np.interp(np.log2(hertz), np.log2([p[0] for p in points]), [p[1] for p in points])
    return np.asarray(10 ** (db / 20))


def shaped(x: Sound, rate: int, points: Points) -> Sound:
    """Filter `x` by a smooth response given as points."""
    out: Sound = np.fft.irfft(np.fft.rfft(x) * density(points, x.size, rate), x.size)
    return out


def noise(n: int, rate: int, rng: Rng, points: Points) -> Sound:
    """Return noise of the given colour at root mean square 1."""
    return unit(shaped(rng.standard_normal(n), rate, points))


def curve(n: int, rate: int, rng: Rng, hertz: float, low: float, high: float) -> Sound:
    """Return a smooth random walk between `low` and `high` that turns about `hertz` times per second."""
    knots = max(int(n / rate * hertz) + 3, 4)
    at = np.linspace(0, knots - 1, n)
    left = np.floor(at).astype(int)
    right = np.minimum(left + 1, knots - 1)
    ease = 0.5 - 0.5 * np.cos(np.pi * (at - left))
    values = rng.uniform(low, high, knots)
    return np.asarray(values[left] * (1 - ease) + values[right] * ease)


def ramp(n: int, rate: int, rise: float, fall: float) -> Sound:
    """Return an envelope of 1 with a soft rise and fall of the given seconds, to avoid clicks."""
    out = np.ones(n)
    up, down = min(int(rise * rate), n // 2), min(int(fall * rate), n // 2)
    if up:
        out[:up] = 0.5 - 0.5 * np.cos(np.pi * np.arange(up) / up)
    if down:
        out[-down:] = 0.5 + 0.5 * np.cos(np.pi * np.arange(down) / down)
    return out


def decay(n: int, rate: int, seconds: float) -> Sound:
    """Return an exponential decay by 60 dB in `seconds`."""
    return np.asarray(np.exp(-6.9 * np.arange(n) / (seconds * rate)))


def add(into: Sound, sound: Sound, at: int) -> None:
    """Add `sound` to `into`, starting at sample `at`; samples outside are cut."""
    start, stop = max(at, 0), min(at + sound.size, into.size)
    if start < stop:
        into[start:stop] += sound[start - at : stop - at]


def pulses(f0: Sound, rate: int) -> Sound:
    """Return a glottal source that follows `f0` (Hz per sample): a sawtooth rounded at its corner against aliasing."""
    step = f0 / rate
    phase = np.cumsum(step) % 1.0
    saw = 2 * phase - 1
    near, far = phase < step, phase > 1 - step
    safe = np.maximum(step, 1e-9)
    t = phase / safe
    saw = np.where(near, saw - (2 * t - t * t - 1), saw)
    t = (phase - 1) / safe
    return np.asarray(np.where(far, saw - (t * t + 2 * t + 1), saw))


def throat(x: Sound, rate: int, vowels: Sequence[str], scale: float = 1.0, width: float = 1.0) -> Sound:
    """Filter `x` by the formants of `vowels`, gliding from one to the next over the sound's length. `width` is a factor
    on the formants' bandwidth: with an open glottis, as in breathing, they are much broader."""
    size, hop = 512, 128
    padded = np.concatenate([np.zeros(size), x, np.zeros(size)])
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    window = np.hanning(size + 1)[:-1]
    spectra = np.fft.rfft(frames * window, axis=1)
    hertz = np.fft.rfftfreq(size, 1 / rate)[None, :]
    knots = np.array([VOWELS[v] for v in vowels])
    where = np.linspace(0, len(vowels) - 1, len(frames))
    gains = np.full((len(frames), hertz.size), 0.02)
    for k, (height, broad) in enumerate(((1.0, 90.0), (0.55, 120.0), (0.25, 200.0))):
        centre = np.interp(where, np.arange(len(vowels)), knots[:, k])[:, None] * scale
        gains += height / (1 + ((hertz - centre) / (width * broad)) ** 2)
    shaped_frames = np.fft.irfft(spectra * gains, size, axis=1) * window
    out = np.zeros(padded.size + size)
    for i, frame in enumerate(shaped_frames):
        out[i * hop : i * hop + size] += frame
    return out[size : size + x.size]
