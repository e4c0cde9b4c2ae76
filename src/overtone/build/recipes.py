"""The recipe of each cue and manner, after the acoustics literature, and the measurable changes it promises.

A recipe describes prosody and timbre; it is not an acted emotion. The literature gives directions. Where a set of real
recordings gives an amount (RAVDESS for emotions: Livingstone & Russo 2018), the recipe follows half of the actors, and
the other half evaluates it (`python -m experiments.realness`). `docs/reference/delivery.md` lists recipes and their
sources.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from overtone.cues import BY_SLUG
from overtone.errors import UsageError
from overtone.spec import suggest

VERSION = "2"  # version of the recipes and the sounds they insert; raised with every audible change
STRONGEST = 1.5
Place = Literal["before", "inside", "after"]
Inserted = tuple[str, Place, float]  # vocal event, place, dB against the words


@dataclass(frozen=True)
class Recipe:
    """The changes to plain speech. A factor of 1 and an amount of 0 change nothing."""

    f0: float = 1.0  # factor on the pitch
    range: float = 1.0  # factor on how far the pitch moves, in semitones
    slope: float = 0.0  # semitones from the first word to the last, added to the plain voice
    rise: float = 0.0  # semitones by which the last third climbs
    accent: float = 0.0  # semitones on the stressed syllables
    rate: float = 1.0  # factor on the pace
    pauses: float = 1.0  # factor on the gaps between words
    halts: float = 0.0  # added pauses per second, where the words leave room
    drawl: float = 0.0  # how much longer stressed and last syllables are: 0.3 is 30 %
    gain: float = 0.0  # dB over ordinary speech
    stress: float = 0.0  # dB on the stressed syllables
    dynamics: float = 1.0  # factor on how far the level moves from syllable to syllable
    tilt: float = 0.0  # dB per octave: positive is pressed and bright, negative soft and dull
    edge: float = 0.0  # dB above 4 kHz
    clarity: float = 1.0  # factor on how far the resonances move from sound to sound: above 1 articulate
    formants: float = 1.0  # factor on the resonances: above 1 a smaller throat, or spread lips
    breath: float = 0.0  # 0 does not change the voice, 1 replaces it by breath
    jitter: float = 0.0  # random share of the pitch from frame to frame
    shimmer: float = 0.0  # random dB from frame to frame
    tremor: float = 0.0  # share of the pitch that shakes about five times a second
    creak: float = 0.0  # share of the last third in which the pitch breaks down to half
    become: float = 0.0  # how far the voice moves towards another speaker: 1 reaches the next two values
    hertz: float = 0.0  # that speaker's pitch
    throat: float = 0.0  # that speaker's resonances against a grown man's
    events: tuple[Inserted, ...] = ()

    def at(self, strength: float) -> Recipe:
        """Return the recipe at another strength: 0 changes nothing, 1 is as written. Factors scale geometrically."""
        if strength == 1:
            return self
        if strength == 0:
            return NEUTRAL
        changed: dict[str, float] = {}
        for name, plain in _PLAIN.items():
            value = getattr(self, name)
            changed[name] = value**strength if plain == 1 else value * strength
        changed["breath"] = min(changed["breath"], 1.0)
        # A weaker event is softer: by 6 dB at half strength.
        events = tuple((name, place, db + 12 * (strength - 1)) for name, place, db in self.events)
        return dataclasses.replace(self, events=events, **changed)


NEUTRAL = Recipe()
_AS_WRITTEN = frozenset({"hertz", "throat", "events"})
_PLAIN: dict[str, float] = {
    f.name: getattr(NEUTRAL, f.name) for f in dataclasses.fields(Recipe) if f.name not in _AS_WRITTEN
}


@dataclass(frozen=True)
class Promise:
    """The promised difference of one measure between a target clip and its neutral twin, at strength 1.

    `measure` is a field of `audio.Measures`. The target's value divided by the neutral one ("ratio") or minus it
    ("difference") is above `least` (sign +1) or below it (sign -1).
    """

    measure: str
    how: Literal["ratio", "difference"]
    sign: Literal[1, -1]
    least: float


RECIPES: dict[str, Recipe] = {
    "male": NEUTRAL,  # the voice itself is a man's or a woman's
    "female": NEUTRAL,
    "adult": NEUTRAL,
    # Lee, Potamianos & Narayanan 1999: a child of seven speaks near 265 Hz with resonances a third above a man's.
    "child": Recipe(range=1.1, rate=0.95, become=1, hertz=265, throat=1.3),
    # Linville 2001: slower, softer, unsteady in pitch and level, tremor, air in the voice, lower resonances.
    "elderly": Recipe(
        f0=0.93, range=0.9, rate=0.84, pauses=1.3, halts=0.2, gain=-1, tilt=-0.5, formants=0.97, breath=0.14,
        jitter=0.013, shimmer=1.2, tremor=0.035,
    ),
    # Yumoto, Gould & Baer 1982: noise in place of harmonics, irregular pitch and level.
    "hoarse": Recipe(f0=0.9, range=0.75, rate=0.95, gain=-1, tilt=0.5, breath=0.45, jitter=0.04, shimmer=3),
    # Trouvain & Truong 2015, after running: higher pitch, more and longer breaths between the words.
    "breath": Recipe(
        f0=1.1, breath=0.15,
        events=(("pant", "before", -5), ("gasp", "inside", -7), ("pant", "after", -6)),
    ),
    # Vogel, Fletcher & Maruff 2010; Krajewski, Batliner & Golz 2009: slower, more pauses, flat, low, soft, creaky.
    "tired": Recipe(
        f0=0.88, range=0.5, rate=0.86, pauses=1.5, halts=0.25, gain=-4, tilt=-1.8, breath=0.16, jitter=0.008, creak=0.5,
    ),
    # Erickson et al. 2006: crying raises the pitch of sad speech, the voice shakes and lets air through.
    "sobbing": Recipe(
        f0=1.15, rate=0.9, gain=-6, tilt=-1, breath=0.18, jitter=0.012, tremor=0.05,
        events=(("sob", "before", -1), ("sniff", "inside", -4), ("sob", "after", -2)),
    ),
    # Emotions. Directions: Banse & Scherer 1996, Juslin & Laukka 2003, Murray & Arnott 1993; amounts: RAVDESS.
    # Happiness: high and lively, climbing, articulate; a smile raises the resonances (Tartter 1980).
    "happy": Recipe(
        f0=1.3, range=1.55, slope=3, accent=1.2, drawl=0.1, gain=3, stress=2.5, edge=2, clarity=1.2, formants=1.02,
        shimmer=0.5, jitter=0.002,
    ),
    # Sadness: slow, halting, soft and dull, a narrow and falling pitch, little stress.
    "sad": Recipe(
        range=0.8, slope=-1, rise=-1, accent=-1.5, rate=0.84, halts=0.35, gain=-6, stress=-1.5, tilt=-1, breath=0.18,
        jitter=0.008,
    ),
    # Surprise: the highest pitch and the widest range, climbing to the very end.
    "surprise": Recipe(
        f0=1.4, range=1.6, slope=0.7, rise=6.5, accent=2.5, rate=1.02, gain=2, stress=2.5, edge=1, clarity=1.18,
        shimmer=0.6, jitter=0.003,
    ),
    # Anger: loud and pressed, strong upper sound, hard stresses, articulate, rough.
    "angry": Recipe(
        f0=1.25, range=1.35, slope=-1.5, rise=1, rate=0.96, drawl=0.12, gain=5, stress=1.5, dynamics=1.1, tilt=2.5,
        edge=-1.5, clarity=1.25, jitter=0.011,
    ),
    # Fear: high, unsteady, shaking and breathy, words torn apart by short pauses.
    "fear": Recipe(
        f0=1.38, range=1.1, slope=2, rise=1.5, accent=-1, halts=0.35, gain=-1, stress=2.5, dynamics=1.1, tilt=0.5,
        edge=2.5, breath=0.18, jitter=0.01, tremor=0.03,
    ),
    # Disgust: low, very slow, drawn out, with hissing consonants and heavy accents.
    "disgust": Recipe(
        f0=0.92, range=1.15, slope=-1.3, accent=3, rate=0.84, halts=0.3, drawl=0.15, stress=2.4, dynamics=1.06,
        tilt=0.3, edge=4.5, clarity=1.08, breath=0.05, jitter=0.006,
    ),
    # Rostolland 1982; Traunmüller & Eriksson 2000: pitch and upper sound up with effort, vowels longer, level even.
    "shout": Recipe(
        f0=1.45, range=1.15, slope=-1, rate=0.97, drawl=0.12, gain=5, dynamics=0.85, tilt=3.5, clarity=1.1,
        jitter=0.012,
    ),
    # Jovičić 1998; Ito, Takeda & Itakura 2005: no voice, a flat spectrum without lows, resonances a little higher.
    "whisper": Recipe(gain=-6, tilt=1.5, breath=1),
    # Miller, Grosjean & Lomanto 1984: pace is articulation and pauses both; Picheny, Durlach & Braida 1986 for slow.
    "fast": Recipe(rate=1.4, pauses=0.7),
    "slow": Recipe(rate=0.66, pauses=1.3, halts=0.3),
    # Korpáš, Sadloňová & Vrabec 1996: a burst, rushing air, a short voiced end.
    "cough": Recipe(events=(("cough", "before", 3), ("cough", "inside", 2))),
    # Vocal events otherwise follow recordings: their length, pitch, spectrum and the fall of their level.
    "sigh": Recipe(gain=-2, range=0.9, events=(("sigh", "before", 0),)),
    # Bachorowski, Smoski & Owren 2001; Provine & Yong 1991: notes of 75 ms, five a second, an octave up, fading.
    "laughter": Recipe(
        f0=1.12, range=1.25, gain=1, formants=1.02, events=(("laugh", "before", 1), ("laugh", "after", 0))
    ),
    # Provine 1986: a long breath in, a shorter one out.
    "yawn": Recipe(f0=0.95, range=0.8, rate=0.94, gain=-2, tilt=-0.5, events=(("yawn", "before", 0),)),
    # Raine et al. 2019 on voices in pain: drawn-out, sagging vowels.
    "moan": Recipe(f0=0.97, rate=0.95, gain=-2, tilt=-0.5, events=(("moan", "before", 0), ("moan", "after", -1))),
}  # fmt: skip
OTHER_MANNERS: dict[tuple[str, str], Recipe] = {  # the first manner of a cue is its entry in RECIPES
    # Bachorowski & Owren 2001: laughs without voice please least; short, soft, breathy, from a tense and hurried voice.
    ("laughter", "nervous"): Recipe(
        f0=1.15, range=0.85, rate=1.06, halts=0.2, gain=-2, breath=0.12, jitter=0.008, tremor=0.02,
        events=(("titter", "before", -3), ("titter", "inside", -4), ("titter", "after", -3)),
    ),
    # The effort of a shout with the pitch of elation (Banse & Scherer 1996): higher, wider, climbing, drawn out.
    ("shout", "joyful"): Recipe(
        f0=1.72, range=1.6, slope=3, rise=3, accent=1.5, rate=0.94, drawl=0.25, gain=5, tilt=2, clarity=1.1,
        formants=1.04,
    ),
}  # fmt: skip
FIRST_MANNER = {"laughter": "hearty", "shout": "angry"}


def _times(measure: str, least: float) -> Promise:
    return Promise(measure, "ratio", 1 if least > 1 else -1, least)


def _by(measure: str, least: float) -> Promise:
    return Promise(measure, "difference", 1 if least > 0 else -1, least)


# About two thirds of the smallest change in thirty clips in six voices.
PROMISES: dict[str, tuple[Promise, ...]] = {
    "child": (_times("f0_hz", 1.12), _times("centroid_hz", 1.05)),
    "elderly": (_times("seconds", 1.18), _times("f0_hz", 0.97), _times("centroid_hz", 0.94)),
    "hoarse": (_by("voiced", -0.2), _times("centroid_hz", 1.05)),
    "breath": (_times("seconds", 1.6), _by("voiced", -0.14), _times("f0_hz", 1.03)),
    "tired": (_times("seconds", 1.15), _by("rms_dbfs", -3), _times("f0_hz", 0.94), _times("centroid_hz", 0.85)),
    "sobbing": (_times("seconds", 1.7), _by("rms_dbfs", -4.5), _by("f0_range_st", 2.5)),
    "happy": (_times("f0_hz", 1.18), _by("rms_dbfs", 2), _by("f0_range_st", 0.6)),
    "sad": (_by("rms_dbfs", -5), _times("seconds", 1.15), _times("centroid_hz", 0.92)),
    "surprise": (_times("f0_hz", 1.3), _by("f0_sd_st", 0.25), _by("rms_dbfs", 1)),
    "angry": (_by("rms_dbfs", 3), _by("tilt_db_oct", 1.4), _times("centroid_hz", 1.25), _times("f0_hz", 1.12)),
    "fear": (_times("f0_hz", 1.2), _by("modulation", 0.07), _times("centroid_hz", 1.04)),
    "disgust": (_times("seconds", 1.18), _by("f0_range_st", 0.6), _by("modulation", 0.04)),
    "shout": (_by("rms_dbfs", 1.5), _times("f0_hz", 1.25), _by("tilt_db_oct", 1.4), _times("centroid_hz", 1.3)),
    "whisper": (_by("voiced", -0.15), _by("rms_dbfs", -5), _times("centroid_hz", 1.25)),
    "fast": (_times("seconds", 0.78),),
    "slow": (_times("seconds", 1.4),),
    "cough": (_by("seconds", 1.3), _by("modulation", 0.05)),
    "sigh": (_by("seconds", 1.2), _by("rms_dbfs", -1)),
    "laughter": (_by("seconds", 1.8), _times("f0_hz", 1.06)),
    "yawn": (_by("seconds", 1.7), _by("rms_dbfs", -1)),
    "moan": (_by("seconds", 3), _times("centroid_hz", 0.8), _by("hnr_db", 1.5)),
}
MANNER_PROMISES: dict[tuple[str, str], tuple[Promise, ...]] = {  # on top of the cue's own
    ("laughter", "hearty"): (_by("f0_range_st", 1.5),),
    ("laughter", "nervous"): (_by("rms_dbfs", -1.5), _by("pause_seconds", 0.4)),
    ("shout", "angry"): (_by("tilt_db_oct", 2.3),),
    ("shout", "joyful"): (_times("f0_hz", 1.5), _times("seconds", 1.1)),
}


def promises_of(slug: str, manner: str = "") -> tuple[Promise, ...]:
    """Return the promises of a cue in one of its manners ("": its first)."""
    return PROMISES.get(slug, ()) + MANNER_PROMISES.get((slug, manner or FIRST_MANNER.get(slug, "")), ())


@functools.cache
def recipe_of(slug: str, manner: str = "", strength: float = 1.0) -> Recipe:
    """Return the recipe of a cue in one of its manners ("": its first). Without a cue, or with a cue of the
    environment, the recipe changes nothing."""
    if not 0 <= strength <= STRONGEST:
        raise UsageError(f"strength must be between 0 (nothing changes) and {STRONGEST}, not {strength}")
    if slug and slug not in BY_SLUG:
        raise UsageError(f"no cue {slug!r}{suggest(slug, BY_SLUG)}")
    if slug not in RECIPES:
        return NEUTRAL
    if not manner or FIRST_MANNER.get(slug) == manner:
        return RECIPES[slug].at(strength)
    if (slug, manner) not in OTHER_MANNERS:
        kinds = manners(slug)
        raise UsageError(
            f"{slug} has no manner {manner!r}{suggest(manner, kinds)}; it has: {', '.join(kinds) or 'one'}"
        )
    return OTHER_MANNERS[slug, manner].at(strength)


def together(recipes: Sequence[Recipe]) -> Recipe:
    """Combine several recipes: factors multiply, amounts add, and the events of all are inserted.

    Breath is combined so that each recipe replaces its share of the voice that the others leave. At most one recipe may
    imitate another speaker.
    """
    if len(recipes) == 1:
        return recipes[0]
    out: dict[str, float] = {}
    for name, plain in _PLAIN.items():
        values = [getattr(recipe, name) for recipe in recipes]
        out[name] = math.prod(values) if plain == 1 else sum(values)
    out["breath"] = 1 - math.prod(1 - recipe.breath for recipe in recipes)
    other = next((recipe for recipe in recipes if recipe.become), NEUTRAL)
    out |= {"become": other.become, "hertz": other.hertz, "throat": other.throat}
    return Recipe(events=tuple(event for recipe in recipes for event in recipe.events), **out)


def manners(slug: str) -> tuple[str, ...]:
    """Return the manners of a voice cue that has several, with the default first."""
    first = (FIRST_MANNER[slug],) if slug in FIRST_MANNER else ()
    return (*first, *(kind for cue, kind in OTHER_MANNERS if cue == slug))
