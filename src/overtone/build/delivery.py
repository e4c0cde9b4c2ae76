"""Apply a delivery to plain speech: change the voice with the WORLD vocoder by a recipe, and insert vocal events.

Every clip goes through the same chain, including the neutral one, whose recipe changes nothing. So a clip differs from
its neutral twin only by its cue, and not by the traces of a vocoder. The recipes are in `recipes.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone.build import vocal_events
from overtone.build.recipes import NEUTRAL, RECIPES, Recipe, recipe_of
from overtone.build.tract import Rng, Sound, curve, gain, level
from overtone.embedded import require

__all__ = ["EDGE", "NEUTRAL", "ORDINARY_DBFS", "RATE", "RECIPES", "Recipe", "Voiced", "analyse", "deliver", "recipe_of"]

RATE = 24_000
ORDINARY_DBFS = -26.0
FRAME = 0.005  # seconds between WORLD's frames
_FLOOR, _CEIL = 60.0, 500.0
_TREMOR_HZ = 5.5
_QUIET_DB = -38.0  # level of a gap between words, relative to the loudest frame
_DIP_DB = 12.0  # depth below the neighbouring syllables at which a pause can be added
_FADE = 0.012
EDGE = 0.25  # seconds of silence before and after: recognisers, like people, need a moment to tune in
_APERIODICITY_STEP = 5  # measure every fifth frame: the noise in a voice changes slowly and is expensive to measure

Array = NDArray[np.float64]
Event = Callable[[str, int, Rng, float, float], Sound]


@dataclass(frozen=True, eq=False)
class Voiced:
    """Plain speech as WORLD represents it: pitch (0 if unvoiced), spectral envelope and aperiodicity per frame."""

    f0: Array
    envelope: Array
    aperiodicity: Array

    @property
    def pitch(self) -> float:
        """The speaker's median pitch in Hz."""
        voiced = self.f0[self.f0 > 0]
        return float(np.median(voiced)) if voiced.size else 120.0

    @functools.cached_property
    def power(self) -> Array:
        """The level of each frame in dB."""
        return np.asarray(10 * np.log10(self.envelope.mean(axis=1) + 1e-16))

    @functools.cached_property
    def stressed(self) -> Array:
        """A value from 0 to 1 per frame: 1 in the middle of a stressed vowel (the louder half of all vowels)."""
        smooth = _smoothed(np.where(self.f0 > 0, self.power, self.power.min()), np.hanning(25) / 12)
        tops = np.flatnonzero((smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:])) + 1
        out = np.zeros(self.f0.size)
        if not tops.size:
            return out
        strong = tops[smooth[tops] >= np.median(smooth[tops])]
        for top in strong.tolist():
            out = np.maximum(out, np.exp(-0.5 * ((np.arange(out.size) - top) / 16) ** 2))
        return out


def analyse(speech: Sound) -> Voiced:
    """Extract pitch, envelope and noise from plain speech at RATE. This is the slow step of rendering, so do it once
    per voice and script."""
    pw = _world()
    first, last = trimmed_span(speech)
    x = np.ascontiguousarray(speech[first:last], dtype=np.float64)
    rough, at = pw.dio(x, RATE, f0_floor=_FLOOR, f0_ceil=_CEIL, frame_period=1000 * FRAME, speed=4)
    f0 = pw.stonemask(x, rough, at, RATE)
    envelope = pw.cheaptrick(x, f0, at, RATE, f0_floor=71.0)
    return Voiced(f0, envelope, _aperiodicity(x, f0, at, envelope.shape))


def _aperiodicity(x: Sound, f0: Array, at: Array, shape: tuple[int, ...]) -> Array:
    """Return the noise per frame and frequency, measured in some voiced frames. Other frames copy the nearest one."""
    out = np.full(shape, 1 - 1e-12)
    voiced = np.flatnonzero(f0 > 0)
    if voiced.size:
        some = voiced[::_APERIODICITY_STEP]
        measured = _world().d4c(x, np.ascontiguousarray(f0[some]), np.ascontiguousarray(at[some]), RATE)
        near = np.clip(np.searchsorted(some, voiced), 1, some.size - 1) if some.size > 1 else np.zeros(voiced.size, int)
        if some.size > 1:
            near = near - (voiced - some[near - 1] < some[near] - voiced)
        out[voiced] = measured[near]
    return out


def deliver(
    voiced: Voiced,
    recipe: Recipe,
    rng: Rng,
    scale: float = 1.0,
    dbfs: float = ORDINARY_DBFS,
    event: Event = vocal_events.event,
) -> Sound:
    """Apply a recipe to plain speech; return samples at RATE. `dbfs` is the level of the words before the recipe's
    gain. `scale` is the size of the speaker's throat, for vocal events; `event` renders these at root mean square 1."""
    recipe = _for(recipe, voiced.pitch, scale)
    scale *= recipe.formants if recipe.become else 1.0
    at, held = timing(voiced, recipe)
    left = np.floor(at).astype(int)
    right = np.minimum(left + 1, voiced.f0.size - 1)
    part = (at - left)[:, None]
    envelope = voiced.envelope[left] * (1 - part) + voiced.envelope[right] * part
    aperiodicity = voiced.aperiodicity[left] * (1 - part) + voiced.aperiodicity[right] * part
    f0 = _pitch(voiced, at, recipe, rng)
    envelope = _timbre(envelope, recipe) * 10 ** (_loudness(voiced, at, held, recipe, rng)[:, None] / 10)
    if recipe.breath >= 1:
        f0, aperiodicity = np.zeros_like(f0), np.ones_like(aperiodicity)
        envelope = envelope * 10 ** (_slope(envelope.shape[1], -350.0, 12.0) / 10)
    elif recipe.breath:
        more = recipe.breath * np.linspace(0.55, 1.25, aperiodicity.shape[1])[None, :]
        aperiodicity = np.clip(aperiodicity + (1 - aperiodicity) * more, 0.001, 0.999)
    tracks = (np.ascontiguousarray(track) for track in (f0, envelope, aperiodicity))
    words: Sound = _world().synthesize(*tracks, RATE, 1000 * FRAME)
    words = words * gain(dbfs + recipe.gain) / level(words)
    return _with_events(words, recipe, rng, voiced.pitch * recipe.f0, scale, event)


def _for(recipe: Recipe, pitch: float, scale: float) -> Recipe:
    """Convert a recipe that imitates another speaker into factors for this speaker's pitch and throat size."""
    if not recipe.become:
        return recipe
    f0 = recipe.f0 * (recipe.hertz / pitch) ** recipe.become
    return replace(recipe, f0=f0, formants=recipe.formants * (recipe.throat / scale) ** recipe.become)


def _world() -> Any:
    require("pyworld", "the WORLD vocoder, for deliveries")
    import pyworld

    return pyworld


def trimmed_span(x: Sound) -> tuple[int, int]:
    """Return the first and last sample of an engine's speech, with 60 ms of its silence at either end."""
    loud = np.flatnonzero(np.abs(x) > 0.004)
    if not loud.size:
        return 0, len(x)
    edge = int(0.06 * RATE)
    return max(int(loud[0]) - edge, 0), min(int(loud[-1]) + edge, len(x))


def timing(voiced: Voiced, recipe: Recipe) -> tuple[Array, NDArray[np.bool_]]:
    """Return the position of each new frame in the plain speech, and a mask of the new frames in added pauses."""
    power = voiced.power
    gap = power < power.max() + _QUIET_DB
    length = np.where(gap, recipe.pauses, 1.0) / recipe.rate
    if recipe.drawl:
        length *= 1 + recipe.drawl * np.maximum(voiced.stressed, _last(voiced))
    halts = _room(power, recipe.halts)
    pause = 0.28 / FRAME
    length[halts] += pause
    ends = np.cumsum(length)
    starts = ends - length
    new = np.arange(int(ends[-1]))
    at = np.clip(np.interp(new, starts, np.arange(length.size)), 0, length.size - 1)
    held = np.zeros(new.size, bool)
    for halt in halts.tolist():
        held[(new >= starts[halt]) & (new < starts[halt] + pause)] = True
    return at, held


def _last(voiced: Voiced) -> Array:
    """Return 1 for frames in the last 200 ms of voiced speech, where speakers slow down, and 0 for all others."""
    out = np.zeros(voiced.f0.size)
    spoken = np.flatnonzero(voiced.f0 > 0)
    if spoken.size:
        out[max(spoken[-1] - 40, 0) : spoken[-1]] = 1.0
    return out


def _room(power: Array, per_second: float) -> NDArray[np.intp]:
    """Find frames between words where a pause fits: the longest dips in the level, well separated."""
    wanted = round(per_second * power.size * FRAME)
    if wanted < 1:
        return np.zeros(0, np.intp)
    smooth = _smoothed(power, np.ones(5) / 5)
    around = np.array([smooth[max(i - 40, 0) : i + 40].max() for i in range(smooth.size)])
    depth = _smoothed(np.maximum(around - smooth - _DIP_DB, 0), np.ones(15) / 15)  # deep and long
    apart, edge = int(0.6 / FRAME), int(0.35 / FRAME)
    depth[:edge] = depth[-edge:] = 0
    frames: list[int] = []
    while len(frames) < wanted and depth.max() > 0:
        best = int(depth.argmax())
        frames.append(best - 7 + int(smooth[max(best - 7, 0) : best + 8].argmin()))
        depth[max(best - apart, 0) : best + apart] = 0
    return np.array(sorted(frames), np.intp)


def _pitch(plain: Voiced, at: Array, recipe: Recipe, rng: Rng) -> Array:
    """Return the new pitch curve, 0 where the plain speech is unvoiced."""
    voiced = plain.f0 > 0
    if not voiced.any():
        return np.zeros(at.size)
    places = np.flatnonzero(voiced)
    log = np.interp(at, places, np.log2(plain.f0[voiced]))
    middle = float(np.median(np.log2(plain.f0[voiced])))
    log = middle + (log - middle) * recipe.range + np.log2(recipe.f0)
    through = np.clip((at - places[0]) / max(places[-1] - places[0], 1), 0, 1)
    log += recipe.slope / 12 * (through - 0.5)
    log += recipe.rise / 12 * np.clip((through - 0.66) / 0.34, 0, 1)
    if recipe.accent:
        stressed = np.interp(at, np.arange(voiced.size), plain.stressed)
        log += recipe.accent / 12 * (stressed - np.mean(stressed))
    if recipe.tremor:
        phase = 2 * np.pi * _TREMOR_HZ * FRAME * np.cumsum(curve(at.size, 200, rng, 2.0, 0.85, 1.15))
        log += np.log2(1 + recipe.tremor * np.sin(phase))
    if recipe.jitter:
        log += np.log2(np.maximum(1 + recipe.jitter * rng.standard_normal(at.size), 0.5))
    if recipe.creak:
        broken = through > 1 - recipe.creak / 3
        log = np.where(broken, log - 0.8 + 0.06 * rng.standard_normal(at.size), log)
    return np.where(voiced[np.round(at).astype(int)], np.clip(2**log, 50.0, 900.0), 0.0)


def _smoothed(x: NDArray[Any], window: Array) -> Array:
    """Smooth `x` without changing its length, even if it is shorter than the window."""
    edge = len(window) // 2
    return np.asarray(np.convolve(x, window)[edge : edge + len(x)])


def _loudness(plain: Voiced, at: Array, held: NDArray[np.bool_], recipe: Recipe, rng: Rng) -> Array:
    """Return the change of each new frame's level in dB."""
    out = np.zeros(at.size)
    if recipe.dynamics != 1 or recipe.stress:
        frames = np.arange(plain.f0.size)
        smooth = _smoothed(plain.power, np.hanning(21) / 10)
        top = float(np.percentile(smooth, 90))
        out += (recipe.dynamics - 1) * np.interp(at, frames, np.clip(smooth - top, -20, 6))
        out += recipe.stress * np.interp(at, frames, plain.stressed)
    if recipe.shimmer:
        out += recipe.shimmer * rng.standard_normal(at.size)
    if held.any():  # an added pause is silent; its edges fade over 25 ms
        out -= 60 * _smoothed(held, np.ones(5) / 5)
    return out


def _timbre(envelope: Array, recipe: Recipe) -> Array:
    bins = envelope.shape[1]
    if recipe.formants != 1:
        at = np.minimum(np.arange(bins) / recipe.formants, bins - 1.001)
        left, part = np.floor(at).astype(int), at - np.floor(at)
        envelope = envelope[:, left] * (1 - part) + envelope[:, left + 1] * part
    if recipe.clarity != 1:
        envelope = envelope * np.exp((recipe.clarity - 1) * _detail(envelope))
    if recipe.tilt:
        envelope = envelope * 10 ** (_slope(bins, 1000.0, recipe.tilt) / 10)
    if recipe.edge:
        hertz = np.linspace(0, RATE / 2, bins)
        envelope = envelope * 10 ** (recipe.edge * np.clip((hertz - 3000) / 2000, 0, 1) / 10)[None, :]
    return envelope


def _detail(envelope: Array) -> Array:
    """Return each frame's resonances minus the speaker's mean resonances, as log power without slow slopes."""
    log = np.log(envelope + 1e-16)
    power = log.mean(axis=1)
    spoken = power > power.max() - 8
    away = log - log[spoken].mean(axis=0)
    half = int(900 / (RATE / 2) * away.shape[1])
    total = np.cumsum(np.pad(away, ((0, 0), (half + 1, half)), mode="edge"), axis=1)
    return np.asarray(np.clip(away - (total[:, 2 * half + 1 :] - total[:, : -2 * half - 1]) / (2 * half + 1), -3, 3))


def _slope(bins: int, pivot: float, db: float) -> Array:
    """Return a spectral slope of `db` per octave around |pivot| Hz, between 100 Hz and 6 kHz. If `pivot` is negative,
    the slope is flat above |pivot|."""
    hertz = np.clip(np.linspace(0, RATE / 2, bins), 100.0, 6000.0)
    octaves = np.log2(hertz / abs(pivot))
    return np.asarray(db * (np.minimum(octaves, 0) if pivot < 0 else octaves))[None, :]


def _with_events(words: Sound, recipe: Recipe, rng: Rng, pitch: float, scale: float, event: Event) -> Sound:
    """Insert the recipe's events before the words, in the clearest gap between words, or after the words."""
    before, after = [np.zeros(int(EDGE * RATE))], [np.zeros(int(EDGE * RATE))]
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
    """Return the middle of the longest quiet stretch in the middle half of the words."""
    step = int(0.005 * RATE)
    frames = words[: words.size // step * step].reshape(-1, step)
    db = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)
    smooth = _smoothed(db, np.ones(5) / 5)
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
