"""Sounds a speaker makes besides words, synthesised to fit the voice: cough, sigh, laugh, yawn, moan, sob, gasp, sniff.

`event(name, rate, rng, f0, scale)` gives the sound at root mean square 1; `f0` is the speaker's pitch and `scale` the
size of the throat (1 for a man, about 1.16 for a woman), so that it comes from the same mouth as the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from overtone.build.tract import Rng, Sound, add, curve, decay, noise, pulses, ramp, throat, unit

Maker = Callable[[int, Rng, float, float], Sound]

_AIR = [(150.0, -22.0), (500.0, -8.0), (1500.0, 0.0), (4000.0, -6.0), (9000.0, -18.0)]


def _voice(
    rate: int, rng: Rng, pitch: Sound, vowels: Sequence[str], scale: float, air: float, rough: float = 0.0
) -> Sound:
    """A sung vowel that follows `pitch`; `air` mixes breath in, `rough` makes the cords irregular."""
    wobble = 1 + rough * curve(pitch.size, rate, rng, 45, -1, 1)
    source = unit(pulses(pitch * wobble, rate)) + air * rng.standard_normal(pitch.size)
    return unit(throat(source, rate, vowels, scale))


def _glide(rate: int, seconds: float, *hertz: float) -> Sound:
    n = int(seconds * rate)
    return np.asarray(np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(hertz)), hertz))


def cough(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Two bursts: the cords spring open, air rushes out, a short rough voice follows."""
    out = np.zeros(int(0.85 * rate))
    for start in (0.02, 0.42):
        n = int(0.30 * rate)
        burst = noise(n, rate, rng, [(150, -12), (600, 0), (2200, 0), (5000, -8), (9000, -18)])
        burst = throat(burst, rate, ["uh", "a"], scale)
        n_voice = int(0.14 * rate)
        tail = _voice(rate, rng, _glide(rate, 0.14, 1.5 * f0, 0.9 * f0), ["uh", "a"], scale, 0.8, 0.3)
        add(out, unit(burst) * decay(n, rate, 0.32) * ramp(n, rate, 0.004, 0.05), int(start * rate))
        add(out, 0.5 * tail * ramp(n_voice, rate, 0.02, 0.08), int((start + 0.07) * rate))
    return unit(out)


def sigh(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """A breath in, then a long breath out with a falling voice inside."""
    drawn = int(0.40 * rate)
    out = np.zeros(int(1.5 * rate))
    air_in = throat(noise(drawn, rate, rng, _AIR), rate, ["i", "e"], scale)
    add(out, 0.4 * unit(air_in) * ramp(drawn, rate, 0.25, 0.06), 0)
    let = int(1.0 * rate)
    air = throat(noise(let, rate, rng, _AIR), rate, ["h", "a", "uh"], scale)
    tone = _voice(rate, rng, _glide(rate, 1.0, 1.25 * f0, 1.0 * f0, 0.72 * f0), ["a", "uh"], scale, 0.8)
    fall = decay(let, rate, 1.6) * ramp(let, rate, 0.06, 0.4)
    add(out, (unit(air) + 0.55 * tone * np.linspace(1, 0.2, let)) * fall, int(0.46 * rate))
    return unit(out)


def laugh(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Five notes of ha-ha, each a breath and a vowel, falling."""
    out = np.zeros(int(1.25 * rate))
    for k in range(6):
        start = 0.03 + 0.19 * k + rng.uniform(-0.01, 0.01)
        h, v = int(0.06 * rate), int(0.105 * rate)
        air = throat(noise(h, rate, rng, _AIR), rate, ["h", "a"], scale)
        peak = f0 * 1.75 * 0.94**k
        note = _voice(rate, rng, _glide(rate, 0.105, peak * 1.08, peak * 0.88)[:v], ["a", "uh"], scale, 0.25, 0.03)
        size = (0.75, 1.0, 1.0, 0.85, 0.7, 0.5)[k]
        add(out, 0.4 * size * unit(air) * ramp(h, rate, 0.02, 0.02), int(start * rate))
        add(out, size * note * ramp(v, rate, 0.02, 0.05), int((start + 0.05) * rate))
    return unit(out)


def titter(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Three short breathy notes through half-closed lips, of somebody ill at ease: little voice, quickly over."""
    out = np.zeros(int(0.75 * rate))
    for k in range(3):
        start = 0.02 + 0.2 * k + rng.uniform(-0.02, 0.03)
        n = int(0.11 * rate)
        air = throat(noise(n, rate, rng, _AIR), rate, ["h", "e"], scale)
        peak = f0 * 1.5 * 0.95**k
        note = _voice(rate, rng, _glide(rate, 0.11, peak, peak * 0.9)[:n], ["uh", "e"], scale, 0.8, 0.06)
        size = (1.0, 0.8, 0.5)[k]
        add(out, size * (0.8 * unit(air) + 0.35 * note) * ramp(n, rate, 0.015, 0.06), int(start * rate))
    return unit(out)


def yawn(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """A wide breath in, then a long open vowel that rises, falls and ends in air."""
    drawn, let = int(0.75 * rate), int(1.3 * rate)
    out = np.zeros(drawn + let)
    air_in = throat(noise(drawn, rate, rng, _AIR), rate, ["i", "a", "a"], scale * 0.95)
    add(out, 0.5 * unit(air_in) * ramp(drawn, rate, 0.5, 0.1), 0)
    pitch = _glide(rate, 1.3, 1.05 * f0, 1.55 * f0, 1.25 * f0, 0.8 * f0)
    tone = _voice(rate, rng, pitch, ["uh", "a", "a", "o", "uh"], scale * 0.92, 0.4)
    air = unit(throat(noise(let, rate, rng, _AIR), rate, ["a", "h"], scale))
    add(out, (tone * np.linspace(1, 0.15, let) + 0.45 * air) * ramp(let, rate, 0.15, 0.5), drawn)
    return unit(out)


def moan(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """A drawn-out closed vowel that sags, of somebody in pain."""
    n = int(1.1 * rate)
    pitch = _glide(rate, 1.1, 1.0 * f0, 1.3 * f0, 1.15 * f0, 0.85 * f0) * curve(n, rate, rng, 6, 0.97, 1.03)
    tone = _voice(rate, rng, pitch, ["u", "o", "uh", "u"], scale, 0.12, 0.04)
    return unit(tone * ramp(n, rate, 0.18, 0.4) + 0.003 * rng.standard_normal(n))


def sob(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Jerky breaths in, then a high, breaking voice let out in shakes."""
    out = np.zeros(int(1.35 * rate))
    for start in (0.02, 0.22, 0.40):
        n = int(0.13 * rate)
        air = unit(throat(noise(n, rate, rng, _AIR), rate, ["i", "h"], scale))
        squeak = _voice(rate, rng, _glide(rate, 0.13, 1.6 * f0, 2.1 * f0)[:n], ["i", "e"], scale, 0.6, 0.1)
        add(out, (0.6 * air + 0.25 * squeak) * ramp(n, rate, 0.05, 0.03), int(start * rate))
    n = int(0.70 * rate)
    shake = 0.55 + 0.45 * np.sin(2 * np.pi * 6.5 * np.arange(n) / rate)
    cry = _voice(rate, rng, _glide(rate, 0.70, 1.9 * f0, 1.7 * f0, 1.2 * f0), ["uh", "u", "uh"], scale, 0.35, 0.08)
    add(out, cry * shake * ramp(n, rate, 0.05, 0.25), int(0.60 * rate))
    return unit(out)


def gasp(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """One heavy breath, in and out, of somebody who has been running."""
    drawn, let = int(0.24 * rate), int(0.26 * rate)
    out = np.zeros(drawn + let)
    add(
        out,
        0.8 * unit(throat(noise(drawn, rate, rng, _AIR), rate, ["i", "e"], scale)) * ramp(drawn, rate, 0.12, 0.03),
        0,
    )
    add(out, unit(throat(noise(let, rate, rng, _AIR), rate, ["h", "a"], scale)) * ramp(let, rate, 0.03, 0.18), drawn)
    return unit(out)


def sniff(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """A short wet breath through the nose."""
    n = int(0.22 * rate)
    air = noise(n, rate, rng, [(300, -25), (1500, -6), (3500, 0), (8000, -6)])
    return unit(air * ramp(n, rate, 0.08, 0.03) * curve(n, rate, rng, 60, 0.5, 1.0))


EVENTS: dict[str, Maker] = {m.__name__: m for m in (cough, sigh, laugh, titter, yawn, moan, sob, gasp, sniff)}


def event(name: str, rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """The vocal event of that name, at root mean square 1."""
    return EVENTS[name](rate, rng, f0, scale)
