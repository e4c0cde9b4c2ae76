"""Sixteen places and happenings to stand behind a speaker, synthesised: no recording, no licence but our own.

`scene(slug, n, rate, rng)` gives n samples at root mean square 1. Each maker is written so that its scene is told from
the other fifteen by ear in the few seconds a clip may last; what names a scene comes within its first second.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from overtone.build.tract import (
    Rng,
    Sound,
    add,
    curve,
    decay,
    echo,
    murmur,
    noise,
    pulses,
    ramp,
    throat,
    unit,
)

Maker = Callable[[int, int, Rng], Sound]


def rain(n: int, rate: int, rng: Rng) -> Sound:
    """A steady hiss with single drops standing out of it."""
    hiss = noise(n, rate, rng, [(100, -18), (500, -8), (2000, 0), (9000, -3)])
    drops = np.zeros(n)
    for at in rng.integers(0, n, int(n / rate * 90)):
        m = int(rng.uniform(0.006, 0.02) * rate)
        pitch = rng.uniform(1200, 5000)
        drop = np.sin(2 * np.pi * pitch * np.arange(m) / rate) * decay(m, rate, 0.012)
        add(drops, drop * rng.uniform(0.3, 1.0), int(at))
    return hiss * curve(n, rate, rng, 0.7, 0.9, 1.1) + 1.1 * unit(drops)


def wind(n: int, rate: int, rng: Rng) -> Sound:
    """A low roar in gusts, and the whistle that rises and falls with them."""
    gust = curve(n, rate, rng, 0.9, 0.25, 1.0)
    gust[: n // 3] = np.maximum(gust[: n // 3], 0.7 * np.linspace(1, 0.4, n // 3))
    roar = noise(n, rate, rng, [(40, 2), (150, 0), (500, -12), (2000, -34), (8000, -60)])
    pitch = 420 + 520 * gust
    carrier = np.exp(2j * np.pi * np.cumsum(pitch) / rate)
    wobble = noise(n, rate, rng, [(2, 0), (25, 0), (60, -50)])
    whistle = np.real(carrier * (wobble + 1j * noise(n, rate, rng, [(2, 0), (25, 0), (60, -50)])))
    return np.asarray(roar * gust + 0.30 * whistle * gust**2)


def thunder(n: int, rate: int, rng: Rng) -> Sound:
    """A crack that breaks into a long rumble, over thin rain."""
    out = 0.10 * rain(n, rate, rng)
    at = int(0.25 * rate)
    while at < n:
        m = int(3.5 * rate)
        rumble = noise(m, rate, rng, [(25, 3), (80, 0), (200, -10), (600, -28), (3000, -60)])
        rolling = curve(m, rate, rng, 5.0, 0.2, 1.0) * decay(m, rate, 5.0) * ramp(m, rate, 0.04, 0.5)
        c = int(0.35 * rate)
        crack = noise(c, rate, rng, [(60, 0), (800, 0), (4000, -8), (9000, -20)]) * decay(c, rate, 0.5)
        crack *= curve(c, rate, rng, 25.0, 0.1, 1.0)
        add(out, 1.6 * rumble * rolling, at)
        add(out, 1.3 * crack, at)
        at += int(rng.uniform(2.2, 3.4) * rate)
    return out


def waves(n: int, rate: int, rng: Rng) -> Sound:
    """Surf: noise that swells, breaks bright and draws back, again and again."""
    t = np.arange(n) / rate
    period = rng.uniform(2.8, 3.4)
    phase = ((t + 0.25 * period) / period) % 1.0
    swell = np.where(phase < 0.4, np.sin(np.pi / 2 * phase / 0.4) ** 3, np.exp(-3.2 * (phase - 0.4) / 0.6))
    low = noise(n, rate, rng, [(60, 0), (300, 0), (1200, -14), (6000, -40)])
    foam = noise(n, rate, rng, [(300, -24), (1500, 0), (5000, -4), (10000, -10)])
    return np.asarray(low * (0.25 + 0.9 * swell) + 0.9 * foam * swell**2)


def basketball(n: int, rate: int, rng: Rng) -> Sound:
    """A ball dribbled on a hall floor, and shoes that squeak."""
    out = np.zeros(n)
    at = int(0.05 * rate)
    while at < n:
        m = int(0.22 * rate)
        t = np.arange(m) / rate
        thump = np.sin(2 * np.pi * (85 * t + 12 * (1 - np.exp(-t * 60)) / 60)) * decay(m, rate, 0.16)
        ring = np.sin(2 * np.pi * rng.uniform(395, 425) * t) * decay(m, rate, 0.12)
        slap = noise(m, rate, rng, [(200, 0), (2500, 0), (7000, -18)]) * decay(m, rate, 0.02)
        add(out, (1.0 * thump + 0.35 * ring + 0.30 * slap) * rng.uniform(0.75, 1.0), at)
        at += int(rng.uniform(0.42, 0.56) * rate)
    at = int(rng.uniform(0.5, 0.8) * rate)
    while at < n:
        m = int(rng.uniform(0.08, 0.2) * rate)
        pitch = np.linspace(rng.uniform(1900, 2400), rng.uniform(2600, 3300), m)
        add(out, 0.16 * pulses(pitch, rate) * ramp(m, rate, 0.01, 0.03), at)
        at += int(rng.uniform(0.7, 1.5) * rate)
    return echo(out, rate, rng, 0.9, 0.5)


def car(n: int, rate: int, rng: Rng) -> Sound:
    """Inside a moving car: the engine's drone, the road's dull roar."""
    turns = curve(n, rate, rng, 0.5, 31, 37) * np.linspace(0.94, 1.1, n)
    phase = 2 * np.pi * np.cumsum(turns) / rate
    drone = sum(
        a * np.sin(k * phase + p)
        for k, a, p in ((2, 1.0, 0.0), (4, 0.7, 1.0), (6, 0.5, 2.0), (8, 0.25, 0.4), (12, 0.12, 1.7))
    )
    road = noise(n, rate, rng, [(30, 0), (120, 0), (400, -10), (1500, -26), (6000, -48)])
    return 0.9 * unit(np.asarray(drone)) + 0.8 * road * curve(n, rate, rng, 3.0, 0.85, 1.1)


def subway(n: int, rate: int, rng: Rng) -> Sound:
    """An underground train: rumble, wheels over rail joints in pairs, the motor's rising whine, a screech."""
    rumble = noise(n, rate, rng, [(35, 0), (180, 0), (600, -12), (2500, -28), (8000, -45)])
    whine_pitch = np.linspace(310, 620, n) * curve(n, rate, rng, 1.0, 0.98, 1.02)
    whine = pulses(whine_pitch, rate) * 0.16
    clack = np.zeros(n)
    at = int(0.15 * rate)
    while at < n:
        for offset in (0.0, 0.13):
            m = int(0.09 * rate)
            knock = noise(m, rate, rng, [(150, 0), (900, 0), (3000, -8), (8000, -26)]) * decay(m, rate, 0.07)
            add(clack, knock, at + int(offset * rate))
        at += int(rng.uniform(0.62, 0.7) * rate)
    m = min(int(1.3 * rate), n)
    screech = np.zeros(n)
    tone = np.sin(2 * np.pi * np.cumsum(2850 + curve(m, rate, rng, 6, -90, 90)) / rate)
    add(screech, tone * ramp(m, rate, 0.3, 0.5) * curve(m, rate, rng, 20, 0.4, 1.0), int(n * 0.35))
    return rumble + 4.5 * clack + whine + 0.22 * screech


def applause(n: int, rate: int, rng: Rng) -> Sound:
    """Some sixty people clapping, each in a rhythm of their own."""
    out = np.zeros(n)
    m = int(0.03 * rate)
    for _ in range(60):
        centre = rng.uniform(900, 2300)
        clap = noise(m, rate, rng, [(200, -24), (centre, 0), (centre * 2, -9), (9000, -24)]) * decay(m, rate, 0.022)
        beat, near = rng.uniform(0.2, 0.3), rng.uniform(0.15, 1.0) ** 2
        at = rng.uniform(-beat, 0)
        while at * rate < n:
            add(out, clap * near * rng.uniform(0.7, 1.0), int(at * rate))
            at += beat * rng.uniform(0.9, 1.1)
    return echo(out, rate, rng, 0.5, 0.35)


def cheering(n: int, rate: int, rng: Rng) -> Sound:
    """A crowd that roars: long open vowels sliding up and down, whistles on top."""
    out = np.zeros(n)
    for _ in range(14):
        at, base = int(rng.uniform(-0.8, 0.2) * rate), rng.uniform(190, 430)
        while at < n:
            m = int(rng.uniform(0.9, 1.9) * rate)
            pitch = base * 2 ** (curve(m, rate, rng, 2.0, -0.1, 0.35)) * (1 + 0.015 * rng.standard_normal(m))
            vowels = ["e", "a", "a"] if rng.random() < 0.5 else ["u", "o", "u"]
            cry = throat(pulses(pitch, rate), rate, vowels, 1.1) * ramp(m, rate, 0.15, 0.4)
            add(out, unit(cry) * rng.uniform(0.4, 1.0), at)
            at += int(m * rng.uniform(0.9, 1.2))
    out = unit(out) + 0.35 * noise(n, rate, rng, [(200, -6), (900, 0), (3000, -8), (8000, -20)])
    for start in (0.2, 0.55):
        m = int(0.5 * rate)
        pitch = np.interp(np.linspace(0, 1, m), [0, 0.4, 1], [1900, 2700, 2100]) * rng.uniform(0.95, 1.1)
        add(out, 0.5 * np.sin(2 * np.pi * np.cumsum(pitch) / rate) * ramp(m, rate, 0.05, 0.15), int(start * n))
    return echo(out, rate, rng, 0.8, 0.5)


def chatter(n: int, rate: int, rng: Rng) -> Sound:
    """A room full of talk, with cups: nobody can be followed."""
    out = np.zeros(n)
    for k in range(9):
        man = k % 2 == 0
        f0 = rng.uniform(95, 140) if man else rng.uniform(170, 240)
        out += murmur(n, rate, rng, f0, 1.0 if man else 1.15) * rng.uniform(0.5, 1.0)
    clinks = np.zeros(n)
    for at in rng.integers(0, n, int(n / rate * 1.2) + 1):
        m = int(0.12 * rate)
        t = np.arange(m) / rate
        clink = sum(np.sin(2 * np.pi * f * t) for f in rng.uniform(2400, 6000, 3))
        add(clinks, np.asarray(clink) * decay(m, rate, 0.1) * 0.35, int(at))
    return echo(unit(out) + clinks, rate, rng, 0.5, 0.5)


def children(n: int, rate: int, rng: Rng) -> Sound:
    """A playground: high, lively voices, squeals and giggles in the open."""
    out = np.zeros(n)
    for _ in range(4):
        out += murmur(n, rate, rng, rng.uniform(300, 400), 1.38, lively=2.2) * rng.uniform(0.6, 1.0)
    out = unit(out)
    at = int(rng.uniform(0.15, 0.4) * rate)
    while at < n:
        if rng.random() < 0.5:
            m = int(rng.uniform(0.35, 0.6) * rate)
            pitch = np.interp(np.linspace(0, 1, m), [0, 0.3, 1], [600, 1050, 800]) * rng.uniform(0.9, 1.1)
            add(
                out,
                1.3 * unit(throat(pulses(pitch, rate), rate, ["i", "e", "a"], 1.38)) * ramp(m, rate, 0.04, 0.15),
                at,
            )
        else:
            for k in range(5):
                m = int(0.09 * rate)
                pitch = np.linspace(520, 430, m) * 2 ** (-0.05 * k)
                add(
                    out,
                    unit(throat(pulses(pitch, rate), rate, ["h", "e"], 1.38)) * ramp(m, rate, 0.02, 0.05),
                    at + int(k * 0.15 * rate),
                )
        at += int(rng.uniform(0.8, 1.5) * rate)
    return out


def alarm(n: int, rate: int, rng: Rng) -> Sound:
    """A bedside clock: four sharp beeps, a gap, four beeps."""
    t = np.arange(n) / rate
    pitch = rng.uniform(1950, 2150)
    tone = np.sin(2 * np.pi * pitch * t) + 0.33 * np.sin(6 * np.pi * pitch * t)
    within = t % 0.9
    gate = ((within < 0.5) & (within % 0.125 < 0.075)).astype(float)
    edge = np.hanning(int(0.008 * rate))
    return tone * np.convolve(gate, edge / edge.sum(), "same") + 0.004 * rng.standard_normal(n)


def ringtone(n: int, rate: int, rng: Rng) -> Sound:
    """A phone: a quick marimba figure that keeps coming back."""
    out = np.zeros(n)
    figure = (76, 79, 84, 79, 86, 84, 79, 76)
    step = 0.13
    key = int(rng.integers(-2, 3))
    at = 0.05
    while at * rate < n:
        for k, note in enumerate(figure):
            m = int(0.3 * rate)
            t = np.arange(m) / rate
            pitch = 440 * 2 ** ((note + key - 69) / 12)
            bar = np.sin(2 * np.pi * pitch * t) + 0.4 * np.sin(2 * np.pi * 4 * pitch * t) * decay(m, rate, 0.08)
            add(out, bar * decay(m, rate, 0.35), int((at + k * step) * rate))
        buzz = int(0.35 * rate)
        drone = pulses(np.full(buzz, 155.0), rate) * ramp(buzz, rate, 0.02, 0.02)
        add(out, 0.25 * drone, int((at + len(figure) * step) * rate))
        at += len(figure) * step + 0.45
    return out


def honking(n: int, rate: int, rng: Rng) -> Sound:
    """Impatient cars: two-note horns, short and long, near and far, over street noise."""
    out = 0.10 * noise(n, rate, rng, [(40, 0), (200, -2), (1000, -16), (6000, -40)])
    at = int(0.1 * rate)
    while at < n:
        low, near = rng.uniform(330, 430), rng.uniform(0.5, 1.0)
        for length in rng.choice([0.16, 0.2, 0.8, 1.1], int(rng.integers(1, 4))):
            m = int(length * rate)
            horn = pulses(np.full(m, low), rate) + pulses(np.full(m, low * 1.26), rate)
            add(out, near * _brass(horn, rate) * ramp(m, rate, 0.015, 0.03), at)
            at += m + int(0.09 * rate)
        at += int(rng.uniform(0.1, 0.6) * rate)
    return echo(out, rate, rng, 0.7, 0.3)


def _brass(horn: Sound, rate: int) -> Sound:
    """The metal of a horn: its middle raised, its bottom taken off."""
    return unit(throat(horn, rate, ["a", "a"], 1.5))


def dog(n: int, rate: int, rng: Rng) -> Sound:
    """Barks in twos and threes: a rough cry that jumps up and drops within a fifth of a second."""
    out = 0.02 * noise(n, rate, rng, [(100, 0), (1000, -10), (6000, -30)])
    at = int(0.15 * rate)
    size = rng.uniform(0.85, 1.2)
    while at < n:
        for _ in range(int(rng.integers(2, 4))):
            m = int(rng.uniform(0.16, 0.22) * rate)
            pitch = np.interp(np.linspace(0, 1, m), [0, 0.25, 0.6, 1], [330, 620, 540, 260]) / size
            rough = pitch * (1 + 0.06 * rng.standard_normal(m))
            bark = throat(pulses(rough, rate) + 0.5 * rng.standard_normal(m), rate, ["o", "a", "uh"], 1.15 / size)
            add(out, unit(bark) * ramp(m, rate, 0.012, 0.09) * rng.uniform(0.8, 1.0), at)
            at += m + int(rng.uniform(0.1, 0.18) * rate)
        at += int(rng.uniform(0.35, 0.7) * rate)
    return echo(out, rate, rng, 0.4, 0.25)


def music(n: int, rate: int, rng: Rng) -> Sound:
    """A small band: four chords, a bass, a plucked tune, a beat."""
    beat = rng.uniform(0.46, 0.54)
    key = int(rng.integers(-3, 4))
    chords = ((48, 64, 67, 72), (45, 64, 69, 72), (41, 65, 69, 72), (43, 62, 67, 71))
    out = np.zeros(n)

    def tone(note: float, seconds: float, bright: float) -> Sound:
        m = int(seconds * rate)
        t = np.arange(m) / rate
        pitch = 440 * 2 ** ((note + key - 69) / 12)
        return sum((bright**k / (k + 1) * np.sin(2 * np.pi * pitch * (k + 1) * t) for k in range(5)), np.zeros(m))

    for count in range(int(n / rate / beat) + 1):
        at, chord = int(count * beat * rate), chords[count // 4 % 4]
        m = int(beat * 1.9 * rate)
        add(out, 0.9 * tone(chord[0], beat * 1.9, 0.6) * decay(m, rate, 1.6), at)
        if count % 4 == 0:
            for note in chord[1:]:
                pad = tone(note, beat * 4, 0.4)
                add(out, 0.22 * pad * ramp(pad.size, rate, 0.05, 0.2), at)
        for half in (0, 1):
            note = chord[int(rng.integers(1, 4))] + 12
            add(out, 0.4 * tone(note, beat, 0.5) * decay(int(beat * rate), rate, 0.7), at + int(half * beat / 2 * rate))
        h = int(0.06 * rate)
        hat = noise(h, rate, rng, [(3000, -20), (7000, 0)]) * decay(h, rate, 0.05)
        add(out, 0.12 * hat, at + int(beat / 2 * rate))
        if count % 2 == 0:
            d = int(0.15 * rate)
            kick = np.sin(2 * np.pi * 70 * np.arange(d) / rate) * decay(d, rate, 0.18)
            add(out, 1.0 * kick, at)
    return echo(out, rate, rng, 0.6, 0.25)


SCENES: dict[str, Maker] = {
    make.__name__: make
    for make in (
        wind,
        thunder,
        rain,
        waves,
        basketball,
        car,
        subway,
        applause,
        cheering,
        chatter,
        children,
        alarm,
        ringtone,
        honking,
        dog,
        music,
    )
}


def scene(slug: str, n: int, rate: int, rng: Rng) -> Sound:
    """`n` samples of the scene named by an environment cue's slug, at root mean square 1."""
    return unit(SCENES[slug](n, rate, rng))
