"""Sounds that a speaker makes besides words, synthesised to fit the voice: coughs, sighs, laughs and so on.

`event(name, rate, rng, f0, scale)` returns the sound at root mean square 1. `f0` is the speaker's pitch and `scale` the
size of the throat (1 for a man, about 1.16 for a woman), so that the event sounds like the voice that says the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from overtone.build.tract import Points, Rng, Sound, add, curve, decay, noise, pulses, ramp, shaped, throat, unit

Maker = Callable[[int, Rng, float, float], Sound]

_OPEN = 4.0  # factor on the width of the resonances during breathing
_DULL = [(80.0, -6.0), (300.0, 0.0), (900.0, -6.0), (2500.0, -16.0), (8000.0, -34.0)]
_BURST = [(120.0, -4.0), (300.0, -4.0), (700.0, -5.0), (2200.0, 0.0), (5000.0, -2.0), (9000.0, -9.0)]
_BRIGHT = [(150.0, -22.0), (500.0, -10.0), (1500.0, 0.0), (4000.0, -1.0), (9000.0, -8.0)]
_AIR = [(150.0, -22.0), (500.0, -8.0), (1500.0, 0.0), (4000.0, -6.0), (9000.0, -18.0)]


def _voice(
    rate: int, rng: Rng, pitch: Sound, vowels: Sequence[str], scale: float, air: float, rough: float = 0.0
) -> Sound:
    """Sing a vowel that follows `pitch`; `air` adds breath, `rough` makes the vocal cords irregular."""
    wobble = 1 + rough * curve(pitch.size, rate, rng, 45, -1, 1)
    source = unit(pulses(pitch * wobble, rate)) + air * rng.standard_normal(pitch.size)
    return unit(throat(source, rate, vowels, scale))


def _fit(n: int, *hertz: float) -> Sound:
    """Return a glide through these pitches over `n` samples."""
    return np.asarray(np.interp(np.linspace(0, 1, n), np.linspace(0, 1, len(hertz)), hertz))


def _air(n: int, rate: int, rng: Rng, vowels: Sequence[str], scale: float, colour: Points = _AIR) -> Sound:
    """Return breath through the mouth, at root mean square 1."""
    return unit(throat(noise(n, rate, rng, colour), rate, vowels, scale, _OPEN))


def cough(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return two or three bursts: the vocal cords spring open, air rushes out, a short rough voice follows."""
    bursts = int(rng.integers(2, 4))
    out = np.zeros(int((0.5 + 0.56 * bursts) * rate))
    at, loud = 0.02, 1.0
    for _ in range(bursts):
        n, n_voice = int(0.32 * rate), int(0.14 * rate)
        burst = throat(noise(n, rate, rng, _BURST), rate, ["uh", "a"], scale, 2.5)
        tail = _voice(rate, rng, _fit(n_voice, 1.5 * f0, 0.9 * f0), ["uh", "a"], scale, 0.8, 0.3)
        burst = unit(burst) * decay(n, rate, rng.uniform(0.2, 0.32)) * ramp(n, rate, 0.004, 0.05)
        add(out, loud * burst, int(at * rate))
        add(out, 0.3 * loud * tail * ramp(n_voice, rate, 0.02, 0.08), int((at + 0.07) * rate))
        at += rng.uniform(0.4, 0.56)
        loud *= rng.uniform(0.6, 0.95)
    return unit(out[: int((at + 0.1) * rate)])


def sigh(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return a soft breath in, then air released at once: loudest at its start, dull, over within a second."""
    drawn, let = int(rng.uniform(0.35, 0.55) * rate), int(rng.uniform(1.1, 1.5) * rate)
    out = np.zeros(drawn + int(0.08 * rate) + let)
    add(out, 0.025 * _air(drawn, rate, rng, ["i", "e"], scale) * ramp(drawn, rate, 0.25, 0.08), 0)
    fall = decay(let, rate, rng.uniform(1.0, 1.4)) * ramp(let, rate, 0.05, 0.3)
    low = unit(shaped(rng.standard_normal(let), rate, [(60, 0), (180, 0), (500, -14), (2000, -30)]))  # air on the lips
    air = _air(let, rate, rng, ["h", "uh", "u"], scale, _DULL) + 0.8 * low
    tone = _voice(rate, rng, _fit(let, 1.15 * f0, 1.0 * f0, 0.75 * f0), ["uh", "u"], scale, 0.9)
    add(out, (air + 0.35 * tone * np.linspace(1, 0, let)) * fall, out.size - let)
    return unit(out)


def laugh(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return a hearty laugh: two falling bouts of ha-ha, an octave or more above the voice, five notes per second. Each
    note is a breath and a bright vowel. A noisy breath separates the bouts."""
    out = np.zeros(int(2.7 * rate))
    top = f0 * rng.uniform(2.0, 2.4)
    at = 0.03
    for notes, size in ((int(rng.integers(4, 7)), 1.0), (int(rng.integers(3, 5)), 0.6)):
        for k in range(notes):
            h, v = int(0.11 * rate), int(rng.uniform(0.085, 0.12) * rate)
            peak = top * (1.05 if k == 1 else 0.95**k) * rng.uniform(0.96, 1.04)
            pitch = _fit(v, peak * 0.96, peak * 1.04, peak * 0.86)
            note = _voice(rate, rng, pitch, ["a", "a"], scale * 1.04, 0.2, 0.04)
            note = shaped(note, rate, [(200, -6), (900, 0), (3000, 5), (8000, 3)])
            loud = size * 0.88**k * rng.uniform(0.85, 1.1)
            air = _air(h, rate, rng, ["h", "a"], scale) * ramp(h, rate, 0.03, 0.06)
            add(out, 0.16 * loud * air, int((at + 0.07) * rate))
            add(out, loud * unit(note) * decay(v, rate, 0.35) * ramp(v, rate, 0.012, 0.04), int(at * rate))
            at += rng.uniform(0.18, 0.225)
        n = int(0.3 * rate)
        add(out, 0.16 * _air(n, rate, rng, ["i", "e"], scale) * ramp(n, rate, 0.12, 0.05), int((at + 0.02) * rate))
        at += 0.36
    return unit(out[: int(min(at, 2.7) * rate)])


def titter(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return three short breathy notes through half-closed lips, as of a nervous person: little voice, soon over."""
    out = np.zeros(int(0.75 * rate))
    for k in range(3):
        start = 0.02 + 0.2 * k + rng.uniform(-0.02, 0.03)
        n = int(0.11 * rate)
        peak = f0 * 1.5 * 0.95**k
        note = _voice(rate, rng, _fit(n, peak, peak * 0.9), ["uh", "e"], scale, 0.8, 0.06)
        size = (1.0, 0.8, 0.5)[k]
        air = _air(n, rate, rng, ["h", "e"], scale)
        add(out, size * (0.8 * air + 0.35 * note) * ramp(n, rate, 0.015, 0.06), int(start * rate))
    return unit(out)


def yawn(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return a slow wide breath in, then a long vowel from a lowered throat that starts loud, sinks and ends in air."""
    drawn, let = int(rng.uniform(0.7, 0.95) * rate), int(rng.uniform(1.3, 1.7) * rate)
    out = np.zeros(drawn + let)
    breath_in = _air(drawn, rate, rng, ["u", "o", "a"], scale * 0.9, _DULL)
    add(out, 0.16 * breath_in * ramp(drawn, rate, 0.5, 0.08), 0)
    high = rng.uniform(1.25, 1.6) * f0
    pitch = _fit(let, 0.95 * high, high, 0.95 * high, 0.85 * high, 0.78 * high) * curve(let, rate, rng, 3, 0.98, 1.02)
    tone = _voice(rate, rng, pitch, ["a", "o", "uh", "u"], scale * 0.88, 0.12, 0.01)
    tone = shaped(tone, rate, [(150, 2), (500, 0), (1500, -3), (4000, -8)])
    air = _air(let, rate, rng, ["a", "uh", "h"], scale * 0.9, _DULL)
    fall = decay(let, rate, rng.uniform(3.6, 4.8)) * ramp(let, rate, 0.08, 0.5)
    fade = np.linspace(1, 0.0, let) ** 0.7
    add(out, (unit(tone) * fade + 0.25 * air) * fall, drawn)
    return unit(out)


def moan(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return two groans of a person in pain, lips nearly closed: each starts abruptly, sags, and ends in breath."""
    out = np.zeros(int(2.3 * rate))
    at = 0.02
    for size in (1.0, rng.uniform(0.5, 0.9)):
        n = int(rng.uniform(0.4, 0.75) * rate)
        high = rng.uniform(1.35, 1.65) * f0
        pitch = _fit(n, 0.9 * high, high, 0.95 * high, 0.78 * high) * curve(n, rate, rng, 6, 0.98, 1.02)
        tone = _voice(rate, rng, pitch, ["u", "uh", "u"], scale, 0.05, 0.03)
        tone = shaped(tone, rate, [(150, 3), (450, 0), (900, -12), (2500, -26)])  # the lips hold the upper sound back
        body = unit(tone) * decay(n, rate, rng.uniform(1.2, 1.9)) * ramp(n, rate, 0.09, 0.12)
        m = int(0.35 * rate)
        after = _air(m, rate, rng, ["h", "uh"], scale, _DULL) * decay(m, rate, 0.8) * ramp(m, rate, 0.06, 0.15)
        add(out, size * body, int(at * rate))
        add(out, 0.1 * size * after, int(at * rate) + n - int(0.05 * rate))
        at += n / rate + rng.uniform(0.38, 0.55)
    return unit(out[: int(min(at, 2.3) * rate)])


def sob(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return crying: a high clear voice that sinks in wails, each shaking a few times per second, and a wet breath."""
    out = np.zeros(int(2.6 * rate))
    at = 0.0
    for k in range(2):
        n = int(rng.uniform(0.8, 1.05) * rate)
        high = f0 * rng.uniform(1.9, 2.3) * 0.94**k
        shake = curve(n, rate, rng, 5.5, 0.965, 1.035)
        pitch = _fit(n, 0.9 * high, high, 0.93 * high, 0.82 * high, 0.72 * high) * shake
        tone = _voice(rate, rng, pitch, ["uh", "a", "uh", "u"], scale, 0.04, 0.012)
        heaves = 0.62 + 0.38 * np.sin(2 * np.pi * np.cumsum(curve(n, rate, rng, 2, 2.4, 4.2)) / rate)
        add(out, unit(tone) * heaves * ramp(n, rate, 0.05, 0.16) * 0.9**k, int(at * rate))
        at += n / rate + 0.02
        m = int(0.2 * rate)
        squeak = _voice(rate, rng, _fit(m, 1.3 * high, 1.5 * high), ["i", "e"], scale, 0.5, 0.05)
        gulp = (0.8 * _air(m, rate, rng, ["i", "h"], scale) + 0.4 * squeak) * ramp(m, rate, 0.08, 0.04)
        add(out, 0.3 * gulp, int(at * rate))
        at += 0.22
    return unit(out[: int(min(at, 2.6) * rate)])


def pant(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return three heavy breaths of a person who has been running: in, bright and short; out, darker and longer."""
    return _breaths(3, rate, rng, scale)


def gasp(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return one breath as in `pant`."""
    return _breaths(1, rate, rng, scale)


def _breaths(count: int, rate: int, rng: Rng, scale: float) -> Sound:
    out = np.zeros(int(0.85 * count * rate))
    at = 0.0
    for _ in range(count):
        drawn, let = int(rng.uniform(0.2, 0.28) * rate), int(rng.uniform(0.26, 0.34) * rate)
        breath_in = _air(drawn, rate, rng, ["e", "h"], scale, _BRIGHT) * ramp(drawn, rate, 0.12, 0.05)
        breath_out = _air(let, rate, rng, ["h", "uh"], scale) * decay(let, rate, 0.55) * ramp(let, rate, 0.03, 0.12)
        add(out, rng.uniform(0.2, 0.4) * breath_in, int(at * rate))
        at += drawn / rate + rng.uniform(0.02, 0.06)
        add(out, breath_out, int(at * rate))
        at += let / rate + rng.uniform(0.06, 0.14)
    return unit(out[: int(min(at, 0.85 * count) * rate)])


def sniff(rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return a short wet breath through the nose."""
    n = int(0.22 * rate)
    air = noise(n, rate, rng, [(300, -25), (1500, -6), (3500, 0), (8000, -6)])
    return unit(air * ramp(n, rate, 0.08, 0.03) * curve(n, rate, rng, 60, 0.5, 1.0))


EVENTS: dict[str, Maker] = {m.__name__: m for m in (cough, sigh, laugh, titter, yawn, moan, sob, pant, gasp, sniff)}


def event(name: str, rate: int, rng: Rng, f0: float, scale: float) -> Sound:
    """Return the vocal event of that name, at root mean square 1."""
    return EVENTS[name](rate, rng, f0, scale)
