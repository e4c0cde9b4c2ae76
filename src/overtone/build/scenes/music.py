"""Background music in five moods: each has its own mode, pace, harmony, tune, articulation and instruments.

The differences follow the cues that listeners use (Juslin & Laukka 2003; Gabrielsson & Lindström 2010): mode and pace
first, then articulation, register, brightness and how even the level is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overtone.build.scenes.ingredients import coloured, noise, tail
from overtone.build.tract import Rng, Sound, add, decay, ramp, unit
from overtone.errors import UsageError
from overtone.spec import suggest

_TABLE = 2048

_AMPLIFIER = ((60.0, -16.0), (150.0, -6.0), (900.0, 7.0), (3500.0, 18.0), (5000.0, 10.0), (9000.0, -10.0))
MAJOR, MINOR, PHRYGIAN = (0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 1, 3, 5, 7, 8, 10)


@dataclass(frozen=True)
class Mood:
    """How one mood is played. Beats are quarter notes; degrees count steps of the scale from the key note."""

    bpm: tuple[float, float]
    scale: tuple[int, ...]
    chords: tuple[tuple[int, ...], ...]  # progressions, the root's degree for each bar of four beats
    rhythm: tuple[tuple[float, ...], ...]  # lengths of the tune's notes in beats, bar by bar; negative: a rest
    key: int  # MIDI note around which the tune moves
    leap: float  # how far the tune jumps, in steps of the scale
    drift: float  # steps that the tune climbs (or sinks) over a bar
    tune: tuple[float, ...]  # strength of the tune's harmonics
    held: float  # share of a note's length that it sounds
    strike: float  # 1: plucked or struck, 0: blown or bowed
    backing: str  # "comp", "oompah", "pad", "drive", "riff"
    drums: str  # "light", "none", "four", "heavy"


MOODS: dict[str, Mood] = {
    "happy": Mood(
        (112, 128), MAJOR, ((0, 4, 0, 3), (0, 3, 4, 0), (0, 3, 0, 4)),
        ((0.5, 0.5, 1, 0.5, 0.5, 1), (1, 0.5, 0.5, 1, 1), (0.5, 0.5, 0.5, 0.5, 1, 1)),
        76, 1.6, 0.5, (1, 0.5, 0.3, 0.15, 0.08), 0.9, 1.0, "comp", "light",
    ),
    "funny": Mood(
        (92, 106), MAJOR, ((0, 0, 4, 0), (0, 4, 0, 4)),
        ((0.25, 0.25, 0.5, -0.5, 0.25, 0.25, 0.5, -1.5), (-1, 0.25, 0.25, 0.25, 0.25, 0.5, -1.5)),
        67, 4.5, 0.0, (1, 0.03, 0.6, 0.03, 0.35, 0.02, 0.15), 0.4, 0.6, "oompah", "none",
    ),
    "sad": Mood(
        (54, 66), MINOR, ((0, 5, 3, 4), (0, 3, 0, 4), (0, 6, 5, 4)),
        ((2, 1, 1), (3, 1), (1.5, 0.5, 2)),
        64, 1.2, -1.5, (1, 0.25, 0.1, 0.04), 1.0, 0.15, "pad", "none",
    ),
    "exciting": Mood(
        (142, 160), MAJOR, ((0, 3, 4, 4), (0, 0, 3, 4), (0, 4, 3, 4)),
        ((0.25,) * 16, (0.5, 0.25, 0.25) * 4),
        74, 2.2, 3.0, (1, 0.7, 0.55, 0.45, 0.35, 0.3, 0.25, 0.2), 0.8, 0.5, "drive", "four",
    ),
    "angry": Mood(
        (168, 188), PHRYGIAN, ((0, 0, 1, 0), (0, 1, 4, 1)),
        ((0.5, 0.5, 1, 0.5, 0.5, 1), (0.25, 0.25, 0.5, 1, 1, 1)),
        64, 1.5, -0.5, tuple(1 / k for k in range(1, 16)), 0.95, 0.3, "riff", "heavy",
    ),
}  # fmt: skip


def music(n: int, rate: int, rng: Rng, manner: str = "") -> Sound:
    """Return a small band in one of the moods of MOODS (default: the first)."""
    name = manner or next(iter(MOODS))
    if name not in MOODS:
        raise UsageError(f"no mood of music {name!r}{suggest(name, MOODS)}; known: {', '.join(MOODS)}")
    mood = MOODS[name]
    beat = 60 / rng.uniform(*mood.bpm)
    key = mood.key + int(rng.integers(-3, 4))
    chords = mood.chords[int(rng.integers(len(mood.chords)))]
    bars = int(n / rate / (4 * beat)) + 1
    tune, behind, drums = np.zeros(n), np.zeros(n), np.zeros(n)
    table, step = _table(mood.tune), 0.0
    for bar in range(bars):
        start, root = bar * 4 * beat, chords[bar % len(chords)]
        step = _tune(tune, rate, rng, mood, table, (start, beat), (key, root), step)
        _back(behind, rate, rng, mood, (start, beat), key, root)
        _drum(drums, rate, rng, mood.drums, (start, beat))
    if mood.backing == "riff":  # an overdriven amplifier makes soft input loud and bright
        behind = coloured(np.tanh(6.0 * unit(behind)) + 0.8 * np.tanh(3.0 * unit(tune)), rate, _AMPLIFIER)
    loud = {"comp": 0.8, "oompah": 0.6, "pad": 0.9, "drive": 0.8, "riff": 1.6}[mood.backing]
    hit = {"light": 0.35, "none": 0.0, "four": 0.8, "heavy": 0.6}[mood.drums]
    lead = 0.7 if mood.backing == "riff" else 1.0
    out = lead * unit(tune) + loud * unit(behind) + (hit * unit(drums) if hit else 0.0)
    room = (1.4, 0.5) if name == "sad" else (0.4, 0.15) if name == "funny" else (0.6, 0.25)
    return tail(np.asarray(out), rate, rng, *room)


def _pitch(key: int, scale: tuple[int, ...], degree: int) -> float:
    octave, place = divmod(degree, len(scale))
    return float(440 * 2 ** ((key + 12 * octave + scale[place] - 69) / 12))


def _table(harmonics: tuple[float, ...]) -> Sound:
    """Return one period of a wave with these harmonics. Reading notes from this table is ten times faster than adding
    sines."""
    turn = 2 * np.pi * np.arange(_TABLE) / _TABLE
    return unit(sum((a * np.sin((k + 1) * turn) for k, a in enumerate(harmonics)), np.zeros(_TABLE)))


def _note(table: Sound, hertz: float, seconds: float, rate: int, strike: float) -> Sound:
    m = max(int(seconds * rate), 32)
    wave = table[(np.arange(m) * (hertz * _TABLE / rate)).astype(np.int64) % _TABLE]
    struck = decay(m, rate, 0.5 + 0.9 * (1 - strike))
    body = strike * struck + (1 - strike)
    return np.asarray(wave * body * ramp(m, rate, 0.006 + 0.12 * (1 - strike) ** 2, 0.03 + 0.1 * (1 - strike) ** 2))


def _tune(
    out: Sound,
    rate: int,
    rng: Rng,
    mood: Mood,
    table: Sound,
    when: tuple[float, float],
    where: tuple[int, int],
    step: float,
) -> float:
    """Add one bar of the tune, a random walk that returns to the chord. Return the step of the scale where it ended."""
    (start, beat), (key, root) = when, where
    rhythm = mood.rhythm[int(rng.integers(len(mood.rhythm)))]
    at = 0.0
    for k, length in enumerate(rhythm):
        if length > 0:
            if k == 0 or at % 2 == 0:  # a strong beat takes a note of the chord
                step = root % 7 + float(rng.choice([0, 2, 4])) + (7 if root % 7 < 2 and rng.random() < 0.3 else 0)
            else:
                step += rng.normal(mood.drift * length / 4, mood.leap / 2)
            degree = round(float(np.clip(step, -3, 11)))
            hertz = _pitch(key, mood.scale, degree)
            size = 1.0 if at % 2 == 0 else rng.uniform(0.6, 0.9)
            if mood.backing == "oompah" and rng.random() < 0.25:  # a slip of a semitone before the note
                add(out, 0.6 * _note(table, hertz / 1.06, 0.07, rate, 0.3), int((start + at * beat - 0.07) * rate))
            note = _note(table, hertz, length * beat * mood.held, rate, mood.strike)
            add(out, size * note, int((start + at * beat) * rate))
        at += abs(length)
    return step


def _back(out: Sound, rate: int, rng: Rng, mood: Mood, when: tuple[float, float], key: int, root: int) -> None:
    """Add one bar of bass and chords."""
    start, beat = when
    low = key - 24
    soft, plain, rich = (1.0, 0.3, 0.12), (1.0, 0.5, 0.2, 0.1), (1.0, 0.6, 0.5, 0.35, 0.3, 0.2)
    third = [root, root + 2, root + 4]

    def lay(
        degree: int, base: int, at: float, beats: float, weights: tuple[float, ...], strike: float, size: float
    ) -> None:
        note = _note(_table(weights), _pitch(base, mood.scale, degree), beats * beat, rate, strike)
        add(out, size * note, int((start + at * beat) * rate))

    if mood.backing == "comp":
        for at in (0.0, 2.0):
            lay(root, low, at, 1.8, plain, 0.8, 1.0)
        for at in (0.0, 1.0, 1.5, 3.0):
            for degree in third:
                lay(degree, key - 12, at, 0.9, plain, 1.0, 0.35)
    elif mood.backing == "oompah":
        for at in (0.0, 1.0, 2.0, 3.0):
            lay(root if at % 2 == 0 else root + 4, low - 7, at, 0.35, plain, 0.7, 1.0)
            for degree in third:
                lay(degree, key - 5, at + 0.5, 0.18, soft, 1.0, 0.3)
    elif mood.backing == "pad":
        lay(root, low, 0.0, 4.0, soft, 0.1, 0.9)
        for degree in third:
            lay(degree, key - 12, 0.0, 4.1, soft, 0.0, 0.5)
        for k in range(8):
            lay(third[k % 3], key - 12, k / 2, 1.2, soft, 1.0, 0.25)
    elif mood.backing == "drive":
        for k in range(8):
            lay(root, low, k / 2, 0.45, rich, 0.6, 0.9)
        for at in (0.0, 1.5, 3.0):
            for degree in third:
                lay(degree, key - 12, at, 0.8, rich, 0.4, 0.35)
    else:
        for k in range(8):
            accent = 1.0 if k in (0, 3, 6) else 0.6
            bent = root + (1 if k == 6 and rng.random() < 0.5 else 0)
            for degree in (bent, bent + 4):
                lay(degree, low, k / 2, 0.48 if accent == 1.0 else 0.25, rich, 0.4, accent)


def _drum(out: Sound, rate: int, rng: Rng, kind: str, when: tuple[float, float]) -> None:
    """Add one bar of drums."""
    if kind == "none":
        return
    start, beat = when
    d, s, h = int(0.16 * rate), int(0.14 * rate), int(0.05 * rate)
    sweep = np.cumsum(np.linspace(110, 50, d)) / rate
    kick = np.sin(2 * np.pi * sweep) * decay(d, rate, 0.2)
    snare = 0.6 * noise(s, rate, rng, [(200, -4), (1500, 0), (6000, -3)]) * decay(s, rate, 0.14)
    hat = 0.2 * noise(h, rate, rng, [(3000, -20), (7000, 0)]) * decay(h, rate, 0.05)
    kicks = {"light": (0.0, 2.0), "four": (0.0, 1.0, 2.0, 3.0), "heavy": (0.0, 0.5, 1.5, 2.0, 2.5, 3.5)}[kind]
    snares = {"light": (1.0, 3.0), "four": (1.0, 3.0, 3.5, 3.75), "heavy": (1.0, 3.0)}[kind]
    for places, sound in ((kicks, kick), (snares, snare), (tuple(k / 2 for k in range(8)), hat)):
        for place in places:
            add(out, sound * rng.uniform(0.85, 1.0), int((start + place * beat) * rate))
    if kind == "heavy":
        m = int(0.5 * rate)
        crash = noise(m, rate, rng, [(1500, -20), (5000, 0), (10000, -3)]) * decay(m, rate, 0.6)
        add(out, 0.6 * crash, int(start * rate))
