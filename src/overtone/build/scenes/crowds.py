"""People in the background: applause, cheering, chatter, children. Their voices have no intelligible words."""

from __future__ import annotations

import numpy as np

from overtone.build.scenes.ingredients import again, between, called, curve, noise, swing, tail, talk
from overtone.build.tract import Rng, Sound, add, decay, ramp, unit


def applause(n: int, rate: int, rng: Rng) -> Sound:
    """Return the applause of four people up to a full hall, each person with a separate rhythm."""
    people = int(np.exp(rng.uniform(np.log(4), np.log(70))))
    out = np.zeros(n)
    m = int(0.045 * rate)
    for _ in range(people):
        centre, length = np.exp(rng.uniform(np.log(600), np.log(2400))), rng.uniform(0.015, 0.04)
        hand = [(120.0, -30.0), (0.5 * centre, -8.0), (centre, 0.0), (2 * centre, -7.0), (9000.0, -20.0)]
        clap = noise(m, rate, rng, hand) * decay(m, rate, length) * ramp(m, rate, 0.001, 0.005)
        beat, near = rng.uniform(0.19, 0.32), rng.uniform(0.2, 1.0) ** 2
        at = rng.uniform(-beat, 0)
        while at * rate < n:
            add(out, clap * near * rng.uniform(0.6, 1.0), int(at * rate))
            at += beat * rng.uniform(0.88, 1.12)
    if people > 25:
        hall = noise(n, rate, rng, [(150, -20), (700, -3), (1500, 0), (4000, -5), (9000, -14)])
        out = unit(out) + rng.uniform(0.1, 0.5) * hall * swing(n, rate, rng, 2, -1, 1)
    return tail(out, rate, rng, *between(rng, (0.3, 0.9), (0.15, 0.5)))


def cheering(n: int, rate: int, rng: Rng) -> Sound:
    """Return a roaring crowd: long open vowels sliding up and down, with whistles and a few claps."""
    out = np.zeros(n)
    for _ in range(6):
        at, base = int(rng.uniform(-0.9, 0.1) * rate), rng.uniform(190, 430)
        while at < n:
            m = int(rng.uniform(0.9, 1.9) * rate)
            pitch = base * 2 ** (curve(m, rate, rng, 2.0, -0.1, 0.35)) * curve(m, rate, rng, 40, 0.985, 1.015)
            vowels = ["e", "a", "a"] if rng.random() < 0.5 else ["u", "o", "u"]
            cry = called(rate, pitch, vowels, rng.uniform(1.0, 1.2), 0.3, rng) * ramp(m, rate, 0.15, 0.4)
            add(out, cry * rng.uniform(0.3, 1.0), at)
            at += int(m * rng.uniform(0.85, 1.2))
    out = out + 0.7 * again(out, rng) + 0.5 * again(out, rng)
    roar = noise(n, rate, rng, [(150, -10), (500, 0), (1200, 0), (3000, -8), (8000, -22)])
    out = unit(out) + rng.uniform(0.4, 0.9) * roar * swing(n, rate, rng, 1.0, -3, 2)
    moment = rng.uniform(0.1, 0.6)
    while moment * rate < n:
        m = int(rng.uniform(0.25, 0.6) * rate)
        pitch = np.interp(np.linspace(0, 1, m), [0, 0.4, 1], [1900, 2700, 2100]) * rng.uniform(0.9, 1.15)
        whistle = np.sin(2 * np.pi * np.cumsum(pitch * curve(m, rate, rng, 30, 0.99, 1.01)) / rate)
        add(out, rng.uniform(0.25, 0.6) * whistle * ramp(m, rate, 0.05, 0.12), int(moment * rate))
        moment += rng.uniform(0.7, 2.0)
    return tail(out, rate, rng, 0.8, 0.5)


def chatter(n: int, rate: int, rng: Rng) -> Sound:
    """Return a room full of talk and clinking cups, in which no single voice can be followed."""
    near = np.zeros(n)
    for k in range(4):
        man = k % 2 == 0
        f0 = rng.uniform(95, 140) if man else rng.uniform(170, 240)
        voice = talk(n, rate, rng, f0, rng.uniform(0.95, 1.05) if man else rng.uniform(1.1, 1.2))
        near += voice * rng.uniform(0.5, 1.0)
    out = unit(near + rng.uniform(0.5, 0.8) * again(near, rng))
    m = int(0.14 * rate)
    t = np.arange(m) / rate
    at = rng.uniform(0.1, 0.6)
    while at * rate < n:
        clink = sum((np.sin(2 * np.pi * f * t) for f in rng.uniform(2400, 6000, 3)), np.zeros(m))
        add(out, rng.uniform(0.08, 0.35) * clink * decay(m, rate, 0.1), int(at * rate))
        at += rng.exponential(0.9) + 0.05
    hum = noise(n, rate, rng, [(40, 0), (150, -6), (800, -22), (8000, -40)])
    return tail(out + rng.uniform(0.02, 0.15) * hum, rate, rng, rng.uniform(0.4, 0.9), rng.uniform(0.3, 0.8))


def children(n: int, rate: int, rng: Rng) -> Sound:
    """Return two or three children talking, or a full playground: high, lively voices, squeals and giggles."""
    playground = rng.random() < 0.5
    out = np.zeros(n)
    for _ in range(3):
        f0, throat = between(rng, (225, 370), (1.22, 1.42))
        out += talk(n, rate, rng, f0, throat, lively=1.8, slow=1.0 if playground else 1.45) * rng.uniform(0.5, 1.0)
    out = unit(out + 0.6 * again(out, rng)) if playground else unit(out)
    at = int(rng.uniform(0.1, 0.4) * rate)
    while at < n:
        loud = rng.uniform(0.6, 1.3) if playground else rng.uniform(0.2, 0.7)
        if rng.random() < 0.55:
            m = int(rng.uniform(0.3, 0.7) * rate)
            bend = between(rng, (500, 700), (850, 1300), (600, 900))
            pitch = np.interp(np.linspace(0, 1, m), [0, 0.3, 1], bend) * curve(m, rate, rng, 25, 0.98, 1.02)
            vowels = ["i", "e", "a"] if rng.random() < 0.5 else ["e", "a", "a"]
            add(out, loud * called(rate, pitch, vowels, 1.38, 0.1, rng) * ramp(m, rate, 0.04, 0.15), at)
        else:
            first = rng.uniform(430, 620)
            for k in range(int(rng.integers(3, 7))):
                m = int(0.09 * rate)
                pitch = np.linspace(first, 0.83 * first, m) * 2 ** (-0.05 * k)
                giggle = called(rate, pitch, ["h", "e"], 1.38, 0.3, rng) * ramp(m, rate, 0.02, 0.05)
                add(out, 0.8 * loud * giggle, at + int(k * rng.uniform(0.13, 0.17) * rate))
        at += int(rng.uniform(0.5, 1.5) * (1.0 if playground else 1.6) * rate)
    return tail(out, rate, rng, 0.35, 0.25)
