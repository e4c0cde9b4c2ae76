"""Weather in the background: rain, wind, thunder, waves. Spectra and fluctuations follow real recordings."""

from __future__ import annotations

import numpy as np

from overtone.build.scenes.ingredients import band, between, convolved, curve, drops, noise, sprinkle, swing
from overtone.build.tract import Rng, Sound, add, decay, gain, ramp, unit


def rain(n: int, rate: int, rng: Rng) -> Sound:
    """Return steady rain, light rain with single drops, a downpour, or rain drumming on a roof."""
    kind = rng.choice(["steady", "light", "heavy", "roof"], p=[0.4, 0.2, 0.25, 0.15])
    bottom, low, middle, top = between(rng, (-4, 10), (-6, 6), (-4, 3), (-10, -3))
    if kind == "heavy":
        bottom, low, middle = bottom + 8, low + 6, middle + 3
    colour = [
        (30.0, bottom),
        (100.0, low),
        (400.0, middle),
        (1500.0, 0.0),
        (3500.0, 0.0),
        (8000.0, top),
        (12000.0, top - 5),
    ]
    out = noise(n, rate, rng, colour) * swing(n, rate, rng, 1.2, -1.5, 1.5) * swing(n, rate, rng, 14.0, -1.5, 1.5)
    far = drops(n, rate, rng, rng.uniform(300, 900), (1800, 6000), 0.004)
    near = {
        "steady": lambda: 0.25 * far,
        "heavy": lambda: 0.35 * far,
        "light": lambda: 0.5 * far + 0.6 * drops(n, rate, rng, rng.uniform(15, 50), (1200, 6500), 0.009),
        "roof": lambda: 0.3 * far + 0.6 * drops(n, rate, rng, rng.uniform(60, 160), (350, 1800), 0.012),
    }[str(kind)]()
    return np.asarray(out + near)


def wind(n: int, rate: int, rng: Rng) -> Sound:
    """Return gusts that buffet the ear, wind in leaves, or a howl around a corner."""
    kind = rng.choice(["buffet", "trees", "howl"], p=[0.4, 0.3, 0.3])
    gust = swing(n, rate, rng, rng.uniform(0.5, 1.2), -4.0, 2.0)
    knee = rng.uniform(90, 220)
    steep = rng.uniform(-17, -11)  # dB an octave above the knee
    roar = [(20.0, 3.0), (knee / 2, 0.0), (knee, -2.0), (4 * knee, -2 + 2 * steep), (2000.0, -45.0), (10000.0, -56.0)]
    out = noise(n, rate, rng, roar) * gust * swing(n, rate, rng, 5.0, -1.5, 1.5)
    if kind == "trees":
        middle = rng.uniform(400, 900)
        leaves = [
            (60.0, -22.0),
            (middle / 2, -4.0),
            (middle, 0.0),
            (2 * middle, -7.0),
            (4000.0, -22.0),
            (10000.0, -34.0),
        ]
        out = 0.5 * out + noise(n, rate, rng, leaves) * gust**0.5
    elif kind == "howl":
        for _ in range(int(rng.integers(1, 4))):
            centre = rng.uniform(220, 750) * (0.75 + 0.35 * gust) * curve(n, rate, rng, 0.8, 0.92, 1.08)
            out = out + rng.uniform(0.15, 0.5) * band(n, rate, rng, centre, rng.uniform(8, 30)) * gust**1.5
    if rng.random() < 0.5:
        out = out + gain(rng.uniform(-26, -10)) * noise(n, rate, rng, [(50, 0), (800, -6), (8000, -10)])
    return np.asarray(out)


def thunder(n: int, rate: int, rng: Rng) -> Sound:
    """Return strikes near or far: high frequencies die first, then the rumble rolls; sometimes thin rain."""
    out = np.zeros(n)
    near = rng.uniform(0, 1)
    at = int(rng.uniform(0.0, 0.35) * rate)
    while at < n:
        add(out, rng.uniform(0.6, 1.0) * _strike(rate, rng, near), at)
        at += int(rng.uniform(2.6, 4.5) * rate)
    out = unit(out)
    if rng.random() < 0.75:
        wet = [(60.0, -8.0), (400.0, -2.0), (3000.0, 0.0), (10000.0, -8.0)]
        out = out + gain(rng.uniform(-44, -20)) * noise(n, rate, rng, wet)
    rumble = [(25.0, 0.0), (150.0, -2.0), (400.0, -16.0), (1500.0, -40.0), (8000.0, -70.0)]
    return np.asarray(out + gain(rng.uniform(-22, -12)) * noise(n, rate, rng, rumble) * swing(n, rate, rng, 1.5, -3, 3))


def _strike(rate: int, rng: Rng, near: float) -> Sound:
    """Return three bands of one stroke, each with its own decay, broken by the claps of the stroke's bends."""
    m = int(rng.uniform(3.5, 5.0) * rate)
    claps = np.zeros(m)
    for k, moment in enumerate(np.sort(rng.uniform(0, 0.4 + 1.6 * near, int(rng.integers(3, 9))))):
        c = int(rng.uniform(0.15, 0.5) * rate)
        size = 1.0 if k == 0 else rng.uniform(0.2, 0.9)
        add(
            claps,
            size * ramp(c, rate, 0.004 + 0.08 * (1 - near), 0.0) * decay(c, rate, rng.uniform(0.3, 1.0)),
            int(moment * rate),
        )
    rolling = np.exp(-np.arange(m) / rate * rng.uniform(0.7, 1.3)) * swing(m, rate, rng, 4.0, -9, 3)
    rolling *= ramp(m, rate, 0.02 + 0.3 * (1 - near), 1.0)
    bands = (
        ([(20.0, 0.0), (60.0, 0.0), (130.0, -3.0), (300.0, -20.0), (1000.0, -60.0)], 1.0, 0.35, 1.0),
        ([(50.0, -25.0), (130.0, -4.0), (220.0, 0.0), (450.0, -4.0), (1000.0, -22.0), (4000.0, -60.0)], 0.9, 0.7, 0.6),
        (
            [(200.0, -25.0), (600.0, 0.0), (1500.0, -9.0), (4000.0, -24.0), (9000.0, -40.0)],
            0.04 + 0.3 * near**1.5,
            1.0,
            0.15,
        ),
    )
    out = np.zeros(m)
    for colour, loud, clapped, rolled in bands:
        out += loud * noise(m, rate, rng, colour) * (clapped * claps + rolled * rolling)
    if near > 0.5:
        crack = sprinkle(m, rate, rng, 25.0) * (claps > 0.3)
        k = int(0.02 * rate)
        snap = noise(k, rate, rng, [(100.0, 0.0), (700.0, 0.0), (2500.0, -10.0), (6000.0, -24.0)]) * decay(
            k, rate, 0.02
        )
        out += 0.06 * near * unit(convolved(crack, snap))
    return out


def waves(n: int, rate: int, rng: Rng) -> Sound:
    """Return surf that swells, breaks and draws back, small lapping waves, or the sea along a beach."""
    kind = rng.choice(["surf", "lapping", "beach"], p=[0.5, 0.2, 0.3])
    low, high = {"surf": (3.0, 7.0), "lapping": (1.2, 2.6), "beach": (4.0, 9.0)}[str(kind)]
    swell, foam = np.zeros(n), np.zeros(n)
    t = np.arange(n) / rate
    at = -rng.uniform(0.0, 0.7) * low
    while at < n / rate:
        period = rng.uniform(low, high)
        since = (t - at) / period
        rise = rng.uniform(0.25, 0.5)
        size = rng.uniform(0.6, 1.0)
        shape = np.where(
            since < rise, np.sin(np.pi / 2 * np.clip(since / rise, 0, 1)) ** 2, np.exp(-3.6 * (since - rise))
        )
        swell = np.maximum(swell, size * shape * (since > 0))
        foam = np.maximum(foam, size * np.exp(-(((since - rise - 0.12) / 0.22) ** 2)))
        at += period * rng.uniform(0.7, 1.0)
    bottom, knee, top = between(rng, (-12, 4), (350, 800), (-26, -17))
    water = [(40.0, bottom), (120.0, -1.0), (knee, -3.0), (2 * knee, -9.0), (4000.0, top), (10000.0, top - 7)]
    spray = [(150.0, -14.0), (700.0, 0.0), (2000.0, 0.0), (5000.0, -9.0), (10000.0, -18.0)]
    floor = {"surf": 0.15, "lapping": 0.12, "beach": 0.25}[str(kind)]
    out = noise(n, rate, rng, water) * (floor + (1 - floor) * swell)
    out = out + rng.uniform(0.05, 0.22) * noise(n, rate, rng, spray) * foam
    if kind == "lapping":
        splash = drops(n, rate, rng, rng.uniform(60, 160), (450, 3500), 0.012)
        out = 0.6 * out + 0.7 * splash * (0.15 + foam)
    return np.asarray(out)
