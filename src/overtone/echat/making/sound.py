"""Render one recording from its plan, and check it with the open benchmark's gates.

Rendering needs only NumPy, soxr, pyworld and the voice. Only the gates need the recogniser.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.build.delivery import RATE, Voiced
from overtone.build.recipes import FIRST_MANNER, RECIPES, Recipe, recipe_of, together
from overtone.build.render import CEILING, Renderer
from overtone.build.sound_plan import Group, Job, Options
from overtone.build.tract import Rng, gain, level, noise
from overtone.build.voices import Speaker
from overtone.echat.making.clip_plan import Clip

if TYPE_CHECKING:
    from overtone.build.gates.facts import Sound

HEARD_AT = 16_000
_HISS = [(60.0, 4.0), (300.0, 0.0), (3000.0, -8.0), (10_000.0, -14.0)]  # (Hz, dB): noise of a machine in a room

Samples16 = NDArray[np.int16]
Plain = dict[tuple[Speaker, str], Voiced]


class Voice(Renderer):
    """The builder's renderer with one clip's strength, variation, room and signal-to-noise ratio."""

    def __init__(self, clip: Clip, plain: Plain) -> None:
        options = Options((clip.engine,), "", clip.strength, clip.room, clip.snr, clip.seed)
        super().__init__(Group(clip.drawn, "", ()), options)
        self._asked = clip
        self._plain = plain  # shared with other clips of the same words

    def _recipe(self, job: Job) -> Recipe:
        clip = self._asked
        variation = Recipe(
            f0=clip.f0, formants=clip.formants, rate=clip.rate, range=clip.range, gain=clip.gain, tilt=clip.tilt
        )
        return together([*(_cue(clip, slug) for slug in clip.cues), variation])


def _cue(clip: Clip, slug: str) -> Recipe:
    if slug == "child":
        return dataclasses.replace(RECIPES["child"], hertz=clip.hertz, throat=clip.throat)
    return recipe_of(slug, clip.manner if slug in FIRST_MANNER else "", clip.strength)


def make(clip: Clip, plain: Plain | None = None) -> NDArray[np.float64]:
    """Render a clip at the builder's sample rate. `plain` caches analysed speech between clips."""
    # The cue "adult" changes nothing. With it first, clips with a scene are as loud as others, so loudness reveals
    # nothing.
    job = Job(clip.drawn, clip.drawn, "", clip.text, clip.who, "adult", clip.manner, also=clip.cues)
    made = Voice(clip, {} if plain is None else plain).clip(job).samples
    if clip.noise:
        hiss = noise(made.size, RATE, _rng(f"{clip.seed}/noise/{clip.drawn}"), _HISS)
        made = made + hiss * level(made) * gain(-clip.noise)
        peak = float(np.abs(made).max())
        made = made * (CEILING / peak) if peak > CEILING else made
    return np.asarray(made)


def as_heard(made: NDArray[np.float64]) -> Samples16:
    """Convert a clip to the models' input format: 16 kHz, 16 bits."""
    x = audio.resample(made.astype(np.float32), RATE, HEARD_AT)
    return np.clip(np.rint(x * 32767), -32768, 32767).astype(np.int16)


def _rng(what: str) -> Rng:
    return np.random.default_rng(int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big"))


# ── the gates ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Heard(Struct, frozen=True):
    """The gates' results for a clip. `errors` and `words` come from the recogniser."""

    errors: int
    words: int
    problems: tuple[str, ...] = ()
    cue: bool = False  # whether the cue was measured against a twin


def hear(clip: Clip, made: NDArray[np.float64], twin: NDArray[np.float64] | None = None) -> Heard:
    """Check a clip's hygiene and words and, if a twin is given, its last cue."""
    from overtone.build.gates import cue, facts, hygiene, survive

    mine = facts.measure_sound(_sound(made), clip.text, None if twin is None else _sound(twin), _formants(clip))
    last = clip.cues[-1] if clip.cues else ""
    bound = max((survive.bound(slug) for slug in clip.cues), key=lambda b: b.clip, default=survive.PLAIN)
    problems = []
    if mine.wer > bound.clip:
        problems.append(f"{survive.GATE}: heard as {mine.transcript!r}, WER {mine.wer:.2f} over {bound.clip:.2f}")
    record = facts.ClipRecord(
        clip.drawn, clip.text, clip.drawn, "", last, clip.manner if last in FIRST_MANNER else "",
        "" if twin is None else "twin", clip.speaker, clip.sex, scene=clip.scene if clip.scene == last else "",
    )  # fmt: skip
    findings = hygiene.check([record], {clip.drawn: mine})
    if twin is not None:
        other = facts.measure_sound(_sound(twin), clip.text, listen=False)
        known = {clip.drawn: mine, "twin": other}
        # A child is another speaker, so its promises do not depend on strength.
        strength = 1.0 if last == "child" else clip.strength
        findings = findings + cue.check([record], known, strength=strength, snr=clip.snr)
    problems += [f"{f.gate}: {f.reason}" for f in findings]
    return Heard(mine.heard.errors, mine.heard.reference_words, tuple(problems), twin is not None)


def _formants(clip: Clip) -> float:
    return _cue(clip, clip.cues[-1]).formants if clip.cues and clip.cues[-1] != "child" else 1.0


def _sound(made: NDArray[np.float64]) -> Sound:
    from overtone.build.gates.facts import Sound

    x = np.rint(made * 32767).astype(np.int16)
    return Sound(hashlib.sha256(x.tobytes()).hexdigest(), (x / 32768).astype(np.float32), RATE, 1, 16)
