"""How words are delivered: a recipe per cue, laid on plain speech with the WORLD vocoder and vocal events.

Every clip goes through the same chain, the neutral one too, with a recipe that changes nothing; so a clip's cue, and
never the mere trace of a vocoder, is what tells it from its neutral twin. A recipe states prosody, it is not an acted
emotion: it promises a direction in pitch, pace, level, timbre or added sounds, and the tests measure that promise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from overtone.build.events import event
from overtone.build.tract import Rng, Sound, curve, gain, level
from overtone.embedded import require

RATE = 24_000
ORDINARY_DBFS = -26.0
_FRAME = 0.005  # seconds between WORLD's frames
_FLOOR, _CEIL = 60.0, 500.0
_TREMOR_HZ = 5.5
_QUIET_DB = -38.0  # below the loudest frame: a gap between words
_FADE = 0.012

Array = NDArray[np.float64]
Place = Literal["before", "inside", "after"]


@dataclass(frozen=True)
class Recipe:
    """What is done to plain speech. Factors are 1 and amounts 0 where nothing changes."""

    f0: float = 1.0  # factor on the pitch
    range: float = 1.0  # factor on how far the pitch moves, in semitones
    rate: float = 1.0  # factor on the pace
    gain: float = 0.0  # dB over ordinary speech
    tilt: float = 0.0  # dB per octave: positive is pressed and bright, negative soft and dull
    jitter: float = 0.0  # random share of the pitch from frame to frame
    shimmer: float = 0.0  # random dB from frame to frame
    breath: float = 0.0  # 0 leaves the voice as it is, 1 leaves no voice at all
    formants: float = 1.0  # factor on the resonances: above 1 a smaller throat
    tremor: float = 0.0  # share of the pitch that shakes about five times a second
    rise: float = 0.0  # semitones by which the last third climbs
    pauses: float = 1.0  # factor on the gaps between words
    events: tuple[tuple[str, Place, float], ...] = field(default=())  # name, place, dB against the speech


NEUTRAL = Recipe()
RECIPES: dict[str, Recipe] = {
    "male": NEUTRAL,
    "female": NEUTRAL,
    "adult": NEUTRAL,
    "child": Recipe(f0=1.5, formants=1.22, range=1.15),
    "elderly": Recipe(
        f0=0.88, range=0.9, rate=0.8, gain=-1, tilt=-0.5, jitter=0.02, shimmer=1.5, breath=0.2, formants=0.97,
        tremor=0.035, pauses=1.3,
    ),
    "hoarse": Recipe(f0=0.9, range=0.75, rate=0.95, gain=-1, tilt=0.5, jitter=0.06, shimmer=4, breath=0.55),
    "breath": Recipe(
        f0=1.08, rate=1.06, tilt=-1, breath=0.35,
        events=(
            ("gasp", "before", -1), ("gasp", "before", 0), ("gasp", "inside", 0),
            ("gasp", "after", 0), ("gasp", "after", -2),
        ),
    ),
    "tired": Recipe(
        f0=0.86, range=0.45, rate=0.86, gain=-4, tilt=-2.5, jitter=0.012, shimmer=1, breath=0.25, pauses=1.8,
    ),
    "sobbing": Recipe(
        f0=1.1, rate=0.88, gain=-6, tilt=-2, jitter=0.015, breath=0.25, tremor=0.06,
        events=(("sob", "before", 1), ("sniff", "inside", -2), ("sob", "after", 0)),
    ),
    "happy": Recipe(f0=1.2, range=1.6, rate=1.08, gain=3, tilt=1.5),
    "sad": Recipe(f0=0.9, range=0.45, rate=0.8, gain=-6, tilt=-3, breath=0.1, pauses=1.2),
    "surprise": Recipe(f0=1.32, range=1.9, rate=1.02, gain=2, tilt=1, rise=5),
    "angry": Recipe(f0=1.1, range=1.35, rate=1.15, gain=4, tilt=3, jitter=0.008),
    "fear": Recipe(f0=1.3, range=0.8, rate=1.18, gain=-1, jitter=0.02, breath=0.2, tremor=0.05),
    "disgust": Recipe(f0=0.86, range=1.25, rate=0.84, tilt=-1, jitter=0.02, shimmer=1.5, breath=0.12, rise=-4),
    "shout": Recipe(f0=1.45, range=1.3, rate=0.95, gain=5, tilt=3.5),
    "whisper": Recipe(gain=-6, tilt=1.5, breath=1),
    "fast": Recipe(rate=1.55, pauses=0.7),
    "slow": Recipe(rate=0.62, pauses=1.3),
    "cough": Recipe(events=(("cough", "before", 3), ("cough", "inside", 2))),
    "sigh": Recipe(rate=0.94, gain=-2, tilt=-1, range=0.8, events=(("sigh", "before", 0),)),
    "laughter": Recipe(f0=1.1, range=1.2, gain=1, events=(("laugh", "before", 1), ("laugh", "after", 1))),
    "yawn": Recipe(f0=0.95, rate=0.92, gain=-2, range=0.8, tilt=-1, events=(("yawn", "before", 0),)),
    "moan": Recipe(f0=0.95, rate=0.95, gain=-2, tilt=-1, events=(("moan", "before", 1), ("moan", "after", 0))),
}  # fmt: skip


def recipe_of(slug: str) -> Recipe:
    """The recipe of a cue; a cue of the environment leaves the voice as it is."""
    return RECIPES.get(slug, NEUTRAL)


@dataclass(frozen=True)
class Voiced:
    """Plain speech as WORLD sees it: pitch (0 where there is none), spectral envelope and aperiodicity per frame."""

    f0: Array
    envelope: Array
    aperiodicity: Array

    @property
    def pitch(self) -> float:
        """The speaker's median pitch in Hz."""
        voiced = self.f0[self.f0 > 0]
        return float(np.median(voiced)) if voiced.size else 120.0


def analyse(speech: Sound) -> Voiced:
    """Take plain speech at RATE apart. The costly half of a clip: do it once per voice and script."""
    pw = _world()
    x = np.ascontiguousarray(_trimmed(speech), dtype=np.float64)
    rough, at = pw.dio(x, RATE, f0_floor=_FLOOR, f0_ceil=_CEIL, frame_period=1000 * _FRAME)
    f0 = pw.stonemask(x, rough, at, RATE)
    return Voiced(f0, pw.cheaptrick(x, f0, at, RATE, f0_floor=71.0), pw.d4c(x, f0, at, RATE))


def deliver(voiced: Voiced, recipe: Recipe, rng: Rng, scale: float = 1.0, dbfs: float = ORDINARY_DBFS) -> Sound:
    """Speech at RATE as the recipe has it; `dbfs` is the level of the words before the recipe's gain.

    `scale` is the size of the speaker's throat, for the vocal events.
    """
    at = _timing(voiced, recipe)
    left = np.floor(at).astype(int)
    right = np.minimum(left + 1, voiced.f0.size - 1)
    part = (at - left)[:, None]
    envelope = voiced.envelope[left] * (1 - part) + voiced.envelope[right] * part
    aperiodicity = voiced.aperiodicity[left] * (1 - part) + voiced.aperiodicity[right] * part
    f0 = _pitch(voiced.f0, at, recipe, rng)
    envelope = _timbre(envelope, recipe, rng)
    if recipe.breath >= 1:
        f0, aperiodicity = np.zeros_like(f0), np.ones_like(aperiodicity)
        envelope = envelope * 10 ** (_slope(envelope.shape[1], -350.0, 12.0) / 10)
    elif recipe.breath:
        more = recipe.breath * np.linspace(0.55, 1.25, aperiodicity.shape[1])[None, :]
        aperiodicity = np.clip(aperiodicity + (1 - aperiodicity) * more, 0.001, 0.999)
    words: Sound = _world().synthesize(
        np.ascontiguousarray(f0),
        np.ascontiguousarray(envelope),
        np.ascontiguousarray(aperiodicity),
        RATE,
        1000 * _FRAME,
    )
    words = words * gain(dbfs + recipe.gain) / level(words)
    return _with_events(words, recipe, rng, voiced.pitch * recipe.f0, scale)


def _world() -> Any:
    require("pyworld", "the WORLD vocoder, for deliveries")
    import pyworld

    return pyworld


def _trimmed(x: Sound) -> Sound:
    """Without the engine's silence at either end, but for 60 ms."""
    loud = np.flatnonzero(np.abs(x) > 0.004)
    if not loud.size:
        return x
    edge = int(0.06 * RATE)
    return x[max(loud[0] - edge, 0) : loud[-1] + edge]


def _timing(voiced: Voiced, recipe: Recipe) -> Array:
    """Where in the plain speech each new frame lies."""
    power = 10 * np.log10(voiced.envelope.mean(axis=1) + 1e-16)
    gap = power < power.max() + _QUIET_DB
    length = np.where(gap, recipe.pauses, 1.0) / recipe.rate
    ends = np.cumsum(length)
    return np.clip(np.interp(np.arange(int(ends[-1])), ends - length, np.arange(length.size)), 0, length.size - 1)


def _pitch(f0: Array, at: Array, recipe: Recipe, rng: Rng) -> Array:
    """The new pitch curve, 0 where the plain speech has none."""
    voiced = f0 > 0
    if not voiced.any():
        return np.zeros(at.size)
    places = np.flatnonzero(voiced)
    log = np.interp(at, places, np.log2(f0[voiced]))
    middle = float(np.median(np.log2(f0[voiced])))
    log = middle + (log - middle) * recipe.range + np.log2(recipe.f0)
    log += recipe.rise / 12 * np.clip((np.arange(at.size) / at.size - 0.66) / 0.34, 0, 1)
    if recipe.tremor:
        phase = 2 * np.pi * _TREMOR_HZ * _FRAME * np.cumsum(curve(at.size, 200, rng, 2.0, 0.85, 1.15))
        log += np.log2(1 + recipe.tremor * np.sin(phase))
    if recipe.jitter:
        log += np.log2(np.maximum(1 + recipe.jitter * rng.standard_normal(at.size), 0.5))
    return np.where(voiced[np.round(at).astype(int)], np.clip(2**log, 50.0, 900.0), 0.0)


def _timbre(envelope: Array, recipe: Recipe, rng: Rng) -> Array:
    bins = envelope.shape[1]
    if recipe.formants != 1:
        at = np.minimum(np.arange(bins) / recipe.formants, bins - 1.001)
        left, part = np.floor(at).astype(int), at - np.floor(at)
        envelope = envelope[:, left] * (1 - part) + envelope[:, left + 1] * part
    if recipe.tilt:
        envelope = envelope * 10 ** (_slope(bins, 1000.0, recipe.tilt) / 10)
    if recipe.shimmer:
        envelope = envelope * 10 ** (recipe.shimmer * rng.standard_normal(len(envelope))[:, None] / 10)
    return envelope


def _slope(bins: int, pivot: float, db: float) -> Array:
    """So many dB per octave around a pivot, from 100 Hz to 6 kHz; a negative pivot slopes only below it."""
    hertz = np.clip(np.linspace(0, RATE / 2, bins), 100.0, 6000.0)
    octaves = np.log2(hertz / abs(pivot))
    return np.asarray(db * (np.minimum(octaves, 0) if pivot < 0 else octaves))[None, :]


def _with_events(words: Sound, recipe: Recipe, rng: Rng, pitch: float, scale: float) -> Sound:
    """The words with the recipe's events before, in the clearest gap inside, or after them."""
    before, after = [np.zeros(int(0.04 * RATE))], [np.zeros(int(0.04 * RATE))]
    reference = level(words)
    for name, place, db in recipe.events:
        made = event(name, RATE, rng, float(np.clip(pitch, 80, 320)), scale) * reference * gain(db)
        pause = np.zeros(int(rng.uniform(0.06, 0.12) * RATE))
        if place == "before":
            before += [made, pause]
        elif place == "after":
            after[:0] = [pause, made]
        else:
            cut = _gap(words)
            words = np.concatenate([_faded(words[:cut], out=True), pause, made, pause, _faded(words[cut:], out=False)])
    return np.concatenate([*before, words, *after])


def _gap(words: Sound) -> int:
    """The middle of the longest quiet stretch in the middle half of the words."""
    step = int(0.005 * RATE)
    frames = words[: words.size // step * step].reshape(-1, step)
    db = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)
    smooth = np.convolve(db, np.ones(5) / 5, "same")
    first, last = len(db) // 4, 3 * len(db) // 4
    quiet = smooth[first:last] < smooth.max() + _QUIET_DB
    best, best_length, run = int(np.argmin(smooth[first:last])), 0, 0
    for i, silent in enumerate(quiet):
        run = run + 1 if silent else 0
        if run > best_length:
            best, best_length = i - run // 2, run
    return (first + best) * step


def _faded(x: Sound, *, out: bool) -> Sound:
    n = min(int(_FADE * RATE), x.size)
    x = x.copy()
    slope = np.linspace(1, 0, n) if out else np.linspace(0, 1, n)
    if out:
        x[x.size - n :] *= slope
    else:
        x[:n] *= slope
    return x
