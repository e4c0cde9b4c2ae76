"""Check that the cue is audible: a clip's measures differ from its neutral twin's as its recipe promises.

For cues of gender the pitch must fit the sex. A scene must be mixed with the twin's voice at the requested
signal-to-noise ratio. The gate covers every cue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from overtone.build.gates import Finding
from overtone.build.gates.facts import ClipRecord, Facts
from overtone.build.recipes import Promise, promises_of, recipe_of
from overtone.cues import BY_SLUG

GATE = "the cue is there"
SNR_DB, SNR_WITHIN = 10.0, 1.5
OVER = 0.02  # share of frames in which a scene is louder than the voice, so that it can be heard
FLOOR_RISE_DB = 6.0  # rise of the noise floor by a scene, if its voice is another take than the twin's
EVENTS_DB = -12.0  # lowest level of sounds inserted between the words, relative to the words
NO_EVENTS_DB = -15.0  # highest level of such sounds if the recipe inserts none
HIGHEST_MAN, LOWEST_WOMAN = 155.0, 155.0  # median pitch in Hz


def check(
    clips: Sequence[ClipRecord], facts: Mapping[str, Facts], *, strength: float = 1.0, snr: float = SNR_DB
) -> list[Finding]:
    """Return a finding for each clip whose measures do not show its cue. `strength` and `snr` are the settings that the
    set was built with."""
    findings: list[Finding] = []
    for clip in clips:
        if clip.path not in facts:
            continue
        mine, twin = facts[clip.path], facts.get(clip.twin)
        if clip.cue in ("male", "female"):
            findings += _sex(clip, mine)
        elif clip.scene:
            findings += _scene(clip, mine, twin, snr)
        elif clip.cue in BY_SLUG and twin is not None:
            findings += _native(clip, mine, twin) if clip.native else _promises(clip, mine, twin, strength)
    return findings


def _finding(clip: ClipRecord, reason: str, value: float | None, bound: float | None) -> Finding:
    return Finding(GATE, clip.path, reason, None if value is None else round(value, 4), bound)


def _sex(clip: ClipRecord, f: Facts) -> list[Finding]:
    pitch, man = f.measures.f0_hz, clip.cue == "male"
    bound = HIGHEST_MAN if man else LOWEST_WOMAN
    if pitch is not None and (pitch < bound if man else pitch > bound):
        return []
    what = "has no pitch" if pitch is None else f"has a median pitch of {pitch:.0f} Hz"
    reason = f"{what}; a {clip.cue} voice lies {'below' if man else 'above'} {bound:.0f} Hz: choose another voice"
    return [_finding(clip, reason, pitch, bound)]


def _scene(clip: ClipRecord, f: Facts, twin: Facts | None, snr: float) -> list[Finding]:
    if f.pair is None or twin is None:
        return [
            _finding(clip, "has no neutral twin to measure its scene against; build the neutral clip too", None, None)
        ]
    if clip.native and (f.pair.snr_db is None or f.pair.snr_db < 0):  # another take: only the floor can be compared
        rise = f.measures.noise_floor_dbfs - twin.measures.noise_floor_dbfs
        if rise >= FLOOR_RISE_DB:
            return []
        reason = (
            f"what lies under the voice is {rise:+.1f} dB against its neutral twin's, at least "
            f"{FLOOR_RISE_DB:+g} dB is expected for {clip.scene}; check the scene's sound"
        )
        return [_finding(clip, reason, rise, FLOOR_RISE_DB)]
    ratio = f.pair.snr_db
    if ratio is None or abs(ratio - snr) > SNR_WITHIN:
        state = "cannot be measured: the voice is not its neutral twin's" if ratio is None else f"is {ratio:.1f} dB"
        reason = (
            f"the ratio of voice to {clip.scene} {state}; {snr:g} ± {SNR_WITHIN} dB is expected: check the mix, and "
            "that both clips have the same words, voice and level"
        )
        return [_finding(clip, reason, ratio, snr)]
    over = f.pair.over or 0.0
    if over < OVER and snr <= 15:
        reason = (
            f"{clip.scene} is louder than the voice in {over:.1%} of the clip, at least {OVER:.0%} is expected; its "
            "sound hides behind the words: take another stretch of it"
        )
        return [_finding(clip, reason, over, OVER)]
    return []


def value_of(measure: str, f: Facts) -> float | None:
    """Return a measure by name: a field of Measures, or of the comparison with the twin."""
    value = getattr(f.pair if hasattr(f.pair, measure) else f.measures, measure)
    return None if value is None else float(value)


def moved(promise: Promise, f: Facts, twin: Facts) -> float | None:
    """Return how much the promised measure differs between a clip and its neutral twin, as a ratio or a difference.

    A measure that already compares the two clips is returned unchanged. Returns None if a value is missing, or if a
    ratio would divide by 0.
    """
    mine = value_of(promise.measure, f)
    if mine is None or hasattr(f.pair, promise.measure):
        return mine
    other = value_of(promise.measure, twin)
    if other is None or (promise.how == "ratio" and not other):
        return None
    return mine / other if promise.how == "ratio" else mine - other


def least(promise: Promise, strength: float) -> float:
    """Return the bound of a promise, scaled to `strength`."""
    return float(promise.least**strength if promise.how == "ratio" else promise.least * strength)


def _promises(clip: ClipRecord, f: Facts, twin: Facts, strength: float) -> list[Finding]:
    findings: list[Finding] = []
    for promise in promises_of(clip.cue, clip.manner):
        change, bound = moved(promise, f, twin), least(promise, strength)
        if change is None or not (change > bound if promise.sign > 0 else change < bound):
            findings.append(_broken(clip, promise, change, bound))
    recipe = recipe_of(clip.cue, clip.manner, strength)
    if f.pair is not None and strength:
        bound = EVENTS_DB + 12 * (strength - 1)
        if recipe.events and f.pair.events_db < bound:
            reason = (
                f"the sounds that make {clip.cue} are {f.pair.events_db:.1f} dB against the words, at least {bound:g} "
                "dB is expected; check the inserted sounds"
            )
            findings.append(_finding(clip, reason, f.pair.events_db, bound))
        if not recipe.events and f.pair.events_db > NO_EVENTS_DB:
            reason = (
                f"something was added between the words, {f.pair.events_db:.1f} dB against them, which no recipe of "
                f"{clip.cue} does; at most {NO_EVENTS_DB:g} dB is expected: listen to it"
            )
            findings.append(_finding(clip, reason, f.pair.events_db, NO_EVENTS_DB))
    return findings


def _broken(clip: ClipRecord, promise: Promise, change: float | None, bound: float) -> Finding:
    way = "more than" if promise.sign > 0 else "less than"
    unit = "times" if promise.how == "ratio" else "more than"
    what = "cannot be taken" if change is None else f"is {change:.2f} {unit} its neutral twin's"
    times = " times" if promise.how == "ratio" else ""
    promised = f"{clip.cue} promises {way} {bound:.2f}{times}"
    reason = f"{promise.measure} {what}; {promised}: raise the strength, or correct the recipe"
    return _finding(clip, reason, change, bound)


def _native(clip: ClipRecord, f: Facts, twin: Facts) -> list[Finding]:
    """Check a clip acted by a person or an engine: at least half of the promised changes must go the right way."""
    promises = promises_of(clip.cue, clip.manner)
    kept = 0
    for promise in promises:
        change = moved(promise, f, twin)
        still = 1.0 if promise.how == "ratio" else 0.0
        kept += change is not None and (change - still) * promise.sign > 0
    needed = math.ceil(len(promises) / 2)
    if kept >= needed:
        return []
    expected = ", ".join(f"{p.measure} {'up' if p.sign > 0 else 'down'}" for p in promises)
    reason = (
        f"{kept} of {len(promises)} measures move as {clip.cue} does ({expected}), at least {needed} is expected; "
        "record or ask for the take again"
    )
    return [_finding(clip, reason, float(kept), float(needed))]
