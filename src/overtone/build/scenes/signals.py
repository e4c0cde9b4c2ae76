"""Signals in the background: an alarm, a ringtone, car horns, a dog."""

from __future__ import annotations

import numpy as np

from overtone.build.scenes.ingredients import between, buzz, called, coloured, curve, noise, street, tail
from overtone.build.tract import Rng, Sound, add, decay, gain, ramp, unit


def alarm(n: int, rate: int, rng: Rng) -> Sound:
    """Return a bedside alarm: high beeps in groups or single, a buzzing tone, or a bell with a hammer."""
    kind = rng.choice(["group", "single", "buzz", "bell"], p=[0.35, 0.25, 0.15, 0.25])
    t = np.arange(n) / rate + rng.uniform(0, 0.2)
    if kind == "bell":
        return _bell(n, rate, rng)
    if kind == "buzz":
        pitch, harmonics = rng.uniform(550, 1100), range(1, 12)
    else:
        pitch, harmonics = rng.uniform(1700, 4300), range(1, 5)
    strength = rng.uniform(0.3, 1.6)  # above 1 the harmonics outweigh their ground, as small buzzers have it
    tone = np.zeros(n)
    for k in harmonics:
        if k * pitch < 0.45 * rate:
            tone += rng.uniform(0.3, 1.0) * strength ** (k - 1) * np.sin(2 * np.pi * k * pitch * t + rng.uniform(0, 6))
    if kind == "group":
        beep, count = rng.uniform(0.06, 0.13), int(rng.choice([2, 3, 4, 4, 8]))
        within = t % rng.uniform(0.85, 1.15) if count * beep < 0.8 else t % (count * beep + 0.35)
        gate = (within < count * beep) & (within % beep < rng.uniform(0.5, 0.65) * beep)
    else:
        beat = rng.uniform(0.25, 1.0)
        gate = t % beat < rng.uniform(0.4, 0.65) * beat
    edge = np.hanning(max(int(rng.uniform(0.003, 0.012) * rate), 3))
    return tail(
        tone * np.convolve(gate.astype(float), edge / edge.sum(), "same"), rate, rng, 0.25, rng.uniform(0, 0.15)
    )


def _bell(n: int, rate: int, rng: Rng) -> Sound:
    """Return two shells struck in turn, about twenty times per second, that never fall silent."""
    blows, pace = np.zeros(n), rng.uniform(12, 26)
    at = 0.0
    while at * rate < n:
        blows[min(int(at * rate), n - 1)] += rng.uniform(0.7, 1.0)
        at += rng.uniform(0.94, 1.06) / pace
    m = int(0.35 * rate)
    t = np.arange(m) / rate
    first = rng.uniform(1300, 2600)
    ring = np.zeros(m)
    for ratio in (1.0, 1.48, 2.02, 2.74, 3.5, 4.4):
        if ratio * first < 0.45 * rate:
            hertz, fall = ratio * first * rng.uniform(0.97, 1.03), rng.uniform(0.15, 0.5)
            ring += rng.uniform(0.3, 1.0) * np.sin(2 * np.pi * hertz * t + rng.uniform(0, 6)) * decay(m, rate, fall)
    size = n + m
    out = np.fft.irfft(np.fft.rfft(blows, size) * np.fft.rfft(ring, size), size)[:n]
    rattle = noise(n, rate, rng, [(300, -20), (2000, 0), (5000, 0), (10000, -10)])
    return tail(unit(out) + rng.uniform(0.1, 0.3) * rattle, rate, rng, 0.3, 0.2)


def ringtone(n: int, rate: int, rng: Rng) -> Sound:
    """Return a phone: a quick repeated figure on bars or a chip, with the buzz of the phone on a table."""
    figures = (
        (76, 79, 84, 79, 86, 84, 79, 76),
        (88, 86, 78, 80, 85, 83, 74, 76),
        (72, 76, 79, 84, 79, 76),
        (83, 83, 88, 0, 83, 83, 88, 0),
    )
    figure = figures[int(rng.integers(len(figures)))]
    step, key = rng.uniform(0.1, 0.16), int(rng.integers(-3, 4))
    chip = rng.random() < 0.4
    out = np.zeros(n)
    m = int(0.3 * rate)
    t = np.arange(m) / rate
    at = rng.uniform(0.0, 0.15)
    while at * rate < n:
        for k, note in enumerate(figure):
            if not note:
                continue
            pitch = 440 * 2 ** ((note + key - 69) / 12)
            if chip:
                bar = np.sin(2 * np.pi * pitch * t) + 0.33 * np.sin(6 * np.pi * pitch * t)
                bar *= ramp(m, rate, 0.003, 0.3 - 0.9 * step)
            else:
                bar = np.sin(2 * np.pi * pitch * t) + 0.4 * np.sin(8 * np.pi * pitch * t) * decay(m, rate, 0.08)
                bar *= decay(m, rate, 0.35)
            add(out, bar, int((at + k * step) * rate))
        m_buzz = int(0.35 * rate)
        drone = buzz(np.full(m_buzz, 155.0), rate) * ramp(m_buzz, rate, 0.02, 0.02)
        add(out, 0.25 * drone, int((at + len(figure) * step) * rate))
        at += len(figure) * step + 0.45
    return tail(out, rate, rng, 0.2, 0.1)


def honking(n: int, rate: int, rng: Rng) -> Sound:
    """Return impatient cars: horns of one or two notes, short and long, near and far, in a street."""
    out = np.zeros(n)
    at = int(rng.uniform(0.0, 0.25) * rate)
    while at < n:
        low, near = np.exp(rng.uniform(np.log(260), np.log(520))), rng.uniform(0.35, 1.0)
        notes = (1.0,) if rng.random() < 0.3 else (1.0, float(rng.choice([1.19, 1.26, 1.33])))
        middle, top = np.exp(rng.uniform(np.log(700), np.log(2800))), rng.uniform(-26, -14)
        metal = [(low * 0.7, -12.0), (low, -5.0), (middle, 4.0), (2 * middle, -3.0), (5000.0, top), (9000.0, top - 14)]
        for length in rng.choice([0.16, 0.25, 0.5, 0.9, 1.4], int(rng.integers(1, 4))):
            m = int(length * rate)
            bend = np.interp(np.arange(m) / rate, [0, 0.03, 10], [0.97, 1.0, 1.0]) * curve(
                m, rate, rng, 8, 0.998, 1.002
            )
            horn = np.zeros(m)
            for note in notes:
                horn += buzz(low * note * bend, rate)
            add(out, near * unit(coloured(horn, rate, metal)) * ramp(m, rate, 0.015, 0.03), at)
            at += m + int(rng.uniform(0.06, 0.15) * rate)
        at += int(rng.uniform(0.05, 0.7) * rate)
    out = tail(unit(out), rate, rng, rng.uniform(0.4, 0.9), rng.uniform(0.15, 0.4))
    return np.asarray(out + gain(rng.uniform(-11, -2)) * unit(street(n, rate, rng)))


def dog(n: int, rate: int, rng: Rng) -> Sound:
    """Return barks, single or in twos and threes: a rough cry that jumps up and drops within a fifth of a second."""
    out = np.zeros(n)
    size = np.exp(rng.uniform(np.log(0.7), np.log(1.5)))  # 0.7 a lap dog, 1.5 a hound
    at = int(rng.uniform(0.02, 0.3) * rate)
    shape = between(rng, (280, 360), (520, 720), (430, 600), (220, 300))
    rough, air = between(rng, (0.02, 0.08), (0.3, 0.7))
    while at < n:
        for _ in range(int(rng.integers(1, 4))):
            m = int(rng.uniform(0.12, 0.24) * rate)
            pitch = np.interp(np.linspace(0, 1, m), [0, 0.25, 0.6, 1], shape) / size * rng.uniform(0.92, 1.08)
            cry = called(
                rate, pitch * (1 + rough * rng.standard_normal(m)), ["o", "a", "uh"], 1.15 / size**0.5, air, rng
            )
            add(out, cry * ramp(m, rate, 0.012, 0.09) * rng.uniform(0.6, 1.0), at)
            at += m + int(rng.uniform(0.08, 0.25) * rate)
        at += int(rng.uniform(0.2, 0.8) * rate)
    out = tail(out, rate, rng, rng.uniform(0.25, 0.7), rng.uniform(0.1, 0.35))
    return np.asarray(
        unit(out) + gain(rng.uniform(-40, -24)) * noise(n, rate, rng, [(100, 0), (1000, -8), (6000, -26)])
    )
