"""Places as background: a car, an underground train, a basketball court."""

from __future__ import annotations

import numpy as np

from overtone.build.scenes.ingredients import between, buzz, convolved, curve, noise, swing, tail
from overtone.build.tract import Rng, Sound, add, decay, ramp, unit


def car(n: int, rate: int, rng: Rng) -> Sound:
    """Return an engine that idles, drives or accelerates, with the road or the street around it."""
    kind = rng.choice(["idle", "drive", "rough"], p=[0.35, 0.4, 0.25])
    firing = {"idle": (18, 32), "drive": (45, 110), "rough": (9, 18)}[str(kind)]  # explosions a second
    speed = rng.uniform(*firing) * curve(n, rate, rng, 0.7, 0.98, 1.02)
    if kind == "drive":
        speed = speed * np.interp(np.linspace(0, 1, n), [0, 1], between(rng, (0.9, 1.0), (1.0, 1.15)))
    turns = np.cumsum(speed) / rate
    strokes = np.flatnonzero(np.diff(np.floor(turns), prepend=0.0) > 0)
    blows = np.zeros(n)
    cylinders = rng.uniform(0.7, 1.0, 4)  # no two alike: the engine turns unevenly, at a quarter of its firing rate
    blows[strokes] = cylinders[np.arange(strokes.size) % 4] * rng.uniform(0.85, 1.0, strokes.size)
    k = int(0.12 * rate)
    beat = np.arange(k) / rate
    body = np.zeros(k)
    for low, high, most in ((35, 60, 1.0), (65, 120, 1.0), (150, 320, 0.5)):
        tone = np.sin(2 * np.pi * rng.uniform(low, high) * beat + rng.uniform(0, 6))
        body += rng.uniform(0.4, 1.0) * most * tone * np.exp(-beat * rng.uniform(25, 60))
    thud = unit(convolved(blows, body))
    puff = unit(np.convolve(blows, np.exp(-np.arange(int(0.03 * rate)) / (0.008 * rate)), "same"))[:n]
    top = rng.uniform(-30, -16)
    hiss = [(60.0, -4.0), (200.0, 0.0), (800.0, -8.0), (2500.0, top + 6), (9000.0, top)]
    valves = noise(n, rate, rng, hiss) * (0.35 + puff)
    bottom = rng.uniform(-2, 5)
    road = noise(n, rate, rng, [(25.0, bottom), (90.0, 0.0), (300.0, -12.0), (1200.0, -26.0), (8000.0, -44.0)])
    share = {"idle": (0.6, 0.2), "drive": (0.4, 0.5), "rough": (0.7, 0.1)}[str(kind)]
    return np.asarray(
        thud + share[0] * rng.uniform(0.4, 1.0) * unit(valves) + share[1] * road * swing(n, rate, rng, 2.5, -1.5, 1.0)
    )


def subway(n: int, rate: int, rng: Rng) -> Sound:
    """Return a train in a tunnel: a roar, wheels over joints in pairs, sometimes a motor's whine or a screech."""
    bottom, knee, top = between(rng, (-6, 10), (180, 600), (-48, -34))
    roar = [(30.0, bottom), (80.0, 0.0), (knee, -4.0), (2 * knee, -12.0), (3000.0, 0.7 * top), (9000.0, top)]
    out = noise(n, rate, rng, roar) * swing(n, rate, rng, 1.5, -4.0, 3.0)
    pace, apart = rng.uniform(0.55, 1.1), rng.uniform(0.1, 0.2)
    knocks = np.zeros(n)
    at = rng.uniform(0, 0.3)
    while at * rate < n:
        for offset in (0.0, apart):
            place = int((at + offset + rng.uniform(-0.01, 0.01)) * rate)
            if 0 <= place < n:
                knocks[place] += rng.uniform(0.5, 1.0)
        at += pace * rng.uniform(0.96, 1.04)
    m = int(0.13 * rate)
    knock = noise(m, rate, rng, [(60, 0), (500, 0), (1500, -8), (5000, -20)]) * decay(m, rate, rng.uniform(0.06, 0.14))
    out = out + rng.uniform(0.15, 0.5) * unit(convolved(knocks, knock * ramp(m, rate, 0.003, 0.02)))
    for _ in range(int(rng.integers(0, 3))):
        start, stop = between(rng, (150, 700), (0.85, 1.5))
        whine = np.sin(2 * np.pi * np.cumsum(np.linspace(start, start * stop, n)) / rate)
        out = out + rng.uniform(0.05, 0.2) * whine * swing(n, rate, rng, 3.0, -6, 0)
    if rng.random() < 0.4:
        m = min(int(rng.uniform(0.8, 1.8) * rate), n)
        tone = np.sin(2 * np.pi * np.cumsum(rng.uniform(2000, 3600) + curve(m, rate, rng, 6, -90, 90)) / rate)
        add(
            out,
            rng.uniform(0.08, 0.25) * tone * ramp(m, rate, 0.3, 0.4) * curve(m, rate, rng, 20, 0.4, 1.0),
            int(n * rng.uniform(0.1, 0.6)),
        )
    return tail(out, rate, rng, 0.6, 0.25)


def basketball(n: int, rate: int, rng: Rng) -> Sound:
    """Return a ball dribbled on a hall floor, and squeaking shoes."""
    out = np.zeros(n)
    m = int(0.22 * rate)
    t = np.arange(m) / rate
    low, ring = rng.uniform(70, 100), rng.uniform(330, 460)
    thump = np.sin(2 * np.pi * (low * t + 12 * (1 - np.exp(-t * 60)) / 60)) * decay(m, rate, 0.16)
    body = 0.35 * np.sin(2 * np.pi * ring * t) * decay(m, rate, 0.12) + 0.15 * np.sin(
        2 * np.pi * 2.1 * ring * t
    ) * decay(m, rate, 0.08)
    slap = noise(m, rate, rng, [(200, 0), (2500, 0), (7000, -18)]) * decay(m, rate, 0.02)
    bounce = thump + body + rng.uniform(0.2, 0.45) * slap
    at, pace = int(rng.uniform(0.0, 0.2) * rate), rng.uniform(0.36, 0.62)
    while at < n:
        add(out, bounce * rng.uniform(0.6, 1.0), at)
        at += int(pace * rng.uniform(0.88, 1.12) * rate)
    at = int(rng.uniform(0.3, 0.9) * rate)
    while at < n:
        m = int(rng.uniform(0.07, 0.22) * rate)
        pitch = np.linspace(rng.uniform(1700, 2500), rng.uniform(2300, 3400), m) * curve(m, rate, rng, 40, 0.98, 1.02)
        add(out, rng.uniform(0.08, 0.2) * buzz(pitch, rate) * ramp(m, rate, 0.01, 0.03), at)
        at += int(rng.uniform(0.5, 1.8) * rate)
    return tail(out, rate, rng, rng.uniform(0.9, 1.5), rng.uniform(0.4, 0.7))
