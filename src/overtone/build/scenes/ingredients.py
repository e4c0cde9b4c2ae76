"""The components of scenes: coloured noise, showers of small sounds, distant voices, microphones.

Everything is vectorised over the whole length of a scene: rendering must take less than 1 % of its duration.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from overtone.build.tract import VOWELS, Points, Rng, Sound, add, decay, density, gain, ramp, unit

_SIZE, _HOP = 512, 256  # of the filter that makes vowels
_TABLE = 2048
_FORMANTS = ((1.0, 90.0), (0.6, 120.0), (0.4, 200.0))  # height and width of each


@lru_cache(maxsize=64)
def fast_size(n: int) -> int:
    """Return the next length for which the FFT is fast."""
    best = 1 << max(n - 1, 1).bit_length()
    for odd in (3, 5, 9, 15):
        size = odd
        while size < n:
            size *= 2
        best = min(best, size)
    return best


def noise(n: int, rate: int, rng: Rng, points: Points) -> Sound:
    """Return noise of the given colour at root mean square 1, drawn in the frequency domain."""
    size = fast_size(n)
    bins = size // 2 + 1
    drawn = rng.standard_normal(2 * bins, dtype=np.float32).view(np.complex64)
    drawn[0] = 0.0
    made = np.fft.irfft(drawn * density(points, size, rate).astype(np.float32), size)
    return unit(np.asarray(made[:n], np.float64))


def coloured(x: Sound, rate: int, points: Points) -> Sound:
    """Filter `x` by a response given as points. `x` is padded first, so that its end does not affect its beginning."""
    size = fast_size(x.size + int(0.05 * rate))
    out: Sound = np.fft.irfft(np.fft.rfft(x, size) * density(points, size, rate), size)[: x.size]
    return out


def convolved(x: Sound, kernel: Sound) -> Sound:
    """Return `x` convolved with `kernel`, cut to the length of `x`."""
    size = fast_size(x.size + kernel.size)
    out: Sound = np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(kernel, size), size)[: x.size]
    return out


def curve(n: int, rate: int, rng: Rng, hertz: float, low: float, high: float) -> Sound:
    """Return a smooth random walk between `low` and `high` that turns `hertz` times per second, on a coarse grid."""
    knots = max(int(n / rate * hertz) + 3, 4)
    at = np.linspace(0, knots - 1.001, max(12 * knots, 16))
    left = at.astype(np.int64)
    ease = 0.5 - 0.5 * np.cos(np.pi * (at - left))
    values = rng.uniform(low, high, knots)
    coarse = values[left] * (1 - ease) + values[left + 1] * ease
    return np.asarray(np.interp(np.linspace(0, 1, n), np.linspace(0, 1, coarse.size), coarse))


def swing(n: int, rate: int, rng: Rng, hertz: float, low_db: float, high_db: float) -> Sound:
    """Return a gain that wanders between two levels, smoothly in dB."""
    return np.asarray(10 ** (curve(n, rate, rng, hertz, low_db, high_db) / 20))


def between(rng: Rng, *ranges: tuple[float, float]) -> list[float]:
    """Draw one number from each range."""
    return [float(rng.uniform(low, high)) for low, high in ranges]


def sprinkle(n: int, rate: int, rng: Rng, per_second: float, spread: float = 1.0) -> Sound:
    """Return points at random times with log-normal sizes: most are small, a few stand out."""
    count = max(int(rng.poisson(per_second * n / rate)), 1)
    out = np.zeros(n)
    np.add.at(out, rng.integers(0, n, count), np.exp(spread * rng.standard_normal(count)))
    return out


def drops(n: int, rate: int, rng: Rng, per_second: float, hertz: tuple[float, float], seconds: float) -> Sound:
    """Return a shower of short damped bursts with centre frequencies within a band, in three sizes."""
    out = np.zeros(n)
    for _ in range(3):
        m = max(int(seconds * rate * rng.uniform(1.2, 3.0)), 8)
        middle = np.exp(rng.uniform(*np.log(hertz)))
        burst = rng.standard_normal(m) * 0.6 + 2.0 * np.sin(2 * np.pi * middle * np.arange(m) / rate)
        kernel = burst * np.exp(-np.arange(m) / (seconds * rate * 0.35))
        out += convolved(sprinkle(n, rate, rng, per_second / 3), unit(kernel))
    return unit(out)


def band(n: int, rate: int, rng: Rng, centre: Sound, width: float) -> Sound:
    """Return noise in a narrow band whose centre follows `centre` (Hz per sample)."""
    low = [(1.0, 0.0), (width, 0.0), (4 * width, -30.0), (16 * width, -70.0)]
    carrier = np.exp(2j * np.pi * np.cumsum(centre) / rate)
    return unit(np.real(carrier * (noise(n, rate, rng, low) + 1j * noise(n, rate, rng, low))))


def tail(x: Sound, rate: int, rng: Rng, seconds: float, amount: float) -> Sound:
    """Add reverberation to `x`: `amount` of a decaying tail that gets duller as it decays."""
    m = int(seconds * rate)
    bright = noise(m, rate, rng, [(100, 0), (2500, 0), (8000, -8)]) * decay(m, rate, 0.6 * seconds)
    dull = noise(m, rate, rng, [(80, 0), (800, 0), (4000, -16)]) * decay(m, rate, seconds)
    wet = convolved(x, bright + dull)
    return np.asarray(x + amount * unit(wet) * np.sqrt(np.mean(x * x)))


def street(n: int, rate: int, rng: Rng) -> Sound:
    """Return distant traffic: a dull roar that rises and falls."""
    knee, top = between(rng, (-8, 0), (-34, -22))
    colour = [(30.0, 0.0), (120.0, 0.0), (500.0, knee - 4), (1500.0, knee - 10), (8000.0, knee + top)]
    return noise(n, rate, rng, colour) * swing(n, rate, rng, 0.6, -4, 3)


def microphone(x: Sound, rate: int, rng: Rng) -> Sound:
    """Record `x` with a random microphone: a tilt, a low cut, a dull top, and a little hiss."""
    tilt = float(np.clip(rng.normal(0.0, 0.8), -1.6, 1.6))
    low = float(np.exp(rng.uniform(np.log(15), np.log(80))))
    top = rng.uniform(-7, 1)
    octaves = np.array([15.0, low / 4, low, 1000.0, 5000.0, 11000.0])
    db = tilt * np.log2(octaves / 1000.0) + np.array([-30.0, -18.0, -3.0, 0.0, 0.0, top])
    if low / 4 <= 15.0:
        octaves, db = octaves[2:], db[2:]
    points = list(zip(octaves.tolist(), db.tolist(), strict=True))
    hiss = noise(x.size, rate, rng, [(50, 4), (300, 0), (8000, -3)]) * gain(rng.uniform(-52, -34))
    return unit(coloured(x, rate, points)) + hiss


# ── voices some way off ─────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=32)
def _saw(harmonics: int) -> Sound:
    """Return one period of a sawtooth with that many harmonics."""
    turn = 2 * np.pi * np.arange(_TABLE) / _TABLE
    return np.asarray(sum((np.sin(k * turn) / k for k in range(1, harmonics + 1)), np.zeros(_TABLE)))


def buzz(pitch: Sound, rate: int) -> Sound:
    """Return a sawtooth that follows `pitch` (Hz per sample) without aliasing, read from a table."""
    table = _saw(max(int(0.48 * rate / float(pitch.max())), 1))
    return np.asarray(table[(np.cumsum(pitch) * (_TABLE / rate)).astype(np.int64) % _TABLE])


def vowelled(x: Sound, rate: int, tracks: Sound, scale: float) -> Sound:
    """Filter `x` by moving formants: `tracks` holds three frequencies at evenly spaced times, (times, 3)."""
    frames = x.size // _HOP + 2
    padded = np.zeros((frames + 1) * _HOP)
    padded[_HOP : _HOP + x.size] = x
    window = np.sin(np.pi * (np.arange(_SIZE) + 0.5) / _SIZE)
    cut = np.lib.stride_tricks.sliding_window_view(padded, _SIZE)[::_HOP] * window
    hertz = np.fft.rfftfreq(_SIZE, 1 / rate)[None, :]
    where = np.linspace(0, len(tracks) - 1, len(cut))
    gains = np.full((len(cut), hertz.size), 0.02)
    for k, (height, width) in enumerate(_FORMANTS):
        centre = np.interp(where, np.arange(len(tracks)), tracks[:, k])[:, None] * scale
        gains += height / (1 + ((hertz - centre) / width) ** 2)
    gains += 0.35 / (1 + ((hertz - 3600 * scale) / 350) ** 2)  # the fourth hardly moves
    made = np.fft.irfft(np.fft.rfft(cut, axis=1) * gains, _SIZE, axis=1) * window
    out = np.zeros(padded.size)
    out[: len(made) * _HOP] += made[:, :_HOP].ravel()
    out[_HOP : (len(made) + 1) * _HOP] += made[:, _HOP:].ravel()
    return out[_HOP : _HOP + x.size]


def called(rate: int, pitch: Sound, vowels: Sequence[str], scale: float, air: float, rng: Rng) -> Sound:
    """Return one long vowel, sung or shouted along `pitch`, at root mean square 1."""
    source = buzz(pitch, rate) + air * rng.standard_normal(pitch.size)
    return unit(vowelled(source, rate, np.array([VOWELS[v] for v in vowels]), scale))


def talk(n: int, rate: int, rng: Rng, f0: float, scale: float, lively: float = 1.0, slow: float = 1.0) -> Sound:
    """Return speech without words: syllables of changing vowels, hissing consonants, sinking phrases, pauses."""
    names = tuple(VOWELS)
    ends, height, loud, vowel, hissed = [0.0], [f0], [0.0], [0], []
    at = -float(rng.uniform(0, 0.5))
    while at < n / rate:
        count = int(rng.integers(4, 12))
        for k in range(count):
            length = float(rng.uniform(0.10, 0.24)) * slow
            turn = f0 * 2 ** (lively * (0.35 * (1 - k / count) + rng.uniform(-0.18, 0.18)))
            strength = rng.uniform(0.45, 1.0)
            voiced = int(rng.integers(len(names)))
            for place, size in ((0.0, 0.05), (0.25, strength), (0.75, 0.8 * strength)):
                ends.append(at + place * length)
                height.append(turn * (1 - 0.06 * place))
                loud.append(size)
                vowel.append(voiced)
            if rng.random() < 0.55:
                hissed.append(at)
            at += length
        ends += [at, at + 0.02]
        height += [height[-1]] * 2
        loud += [0.05, 0.0]
        vowel += [vowel[-1]] * 2
        at += float(rng.uniform(0.15, 0.7)) * slow**2
        ends.append(at - 0.01)
        height.append(f0)
        loud.append(0.0)
        vowel.append(vowel[-1])
    t = np.arange(n) / rate
    pitch = np.interp(t, ends, height) * (1 + 0.01 * curve(n, rate, rng, 12, -1, 1))
    level = np.interp(t, ends, loud)
    grid = np.arange(0, n / rate + 0.02, 0.02)
    table = np.array([VOWELS[v] for v in names])
    tracks = np.stack([np.interp(grid, ends, table[vowel, k]) for k in range(3)], 1)
    out = vowelled((buzz(pitch, rate) + 0.06 * rng.standard_normal(n)) * level, rate, tracks, scale)
    loudness = float(np.sqrt(np.mean(out * out)))
    sounds = []
    for low, high, seconds in ((1500, 3000, 0.06), (2500, 5000, 0.08), (3500, 7000, 0.1)):  # as in k, sh and s
        m = int(seconds * rate)
        colour = [(low / 3, -30.0), (low, -4.0), (0.5 * (low + high), 0.0), (high, -4.0), (11000.0, -18.0)]
        sounds.append(noise(m, rate, rng, colour) * ramp(m, rate, 0.2 * seconds, 0.3 * seconds))
    for moment in hissed:
        hiss = sounds[int(rng.integers(3))]
        add(out, loudness * rng.uniform(0.3, 1.0) * hiss, int(moment * rate) - hiss.size // 2)
    return unit(out)


def again(x: Sound, rng: Rng) -> Sound:
    """Return the same crowd at another moment and pitch. This is a fast way to add people who sound different."""
    n = x.size
    at = (np.arange(n) * rng.uniform(0.88, 1.14) + rng.integers(n)) % (n - 1)
    left = at.astype(np.int64)
    part = at - left
    return np.asarray(x[left] * (1 - part) + x[left + 1] * part)
