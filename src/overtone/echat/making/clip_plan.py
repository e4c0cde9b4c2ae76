"""Plan the recording of an exchange: its speaker, delivery strength, room and noise.

Train and test share neither speakers nor ranges of strength. Small random differences between recordings imitate real
variation. All parameters of a clip follow from its exchange and take, so it is the same on every machine.
"""

from __future__ import annotations

import functools
import hashlib
import math

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone.build.recipes import FIRST_MANNER, manners
from overtone.build.scenes import MOODS
from overtone.build.tract import random_of
from overtone.build.voices import Speaker
from overtone.build.voices._records import SCALE, Sex
from overtone.build.voices.espeak import CHOSEN
from overtone.cues import BY_SLUG
from overtone.echat.making.compose import Exchange

# Chosen by the embedded recogniser's word error rate on six sentences: docs/explanation/echat-held-out.md has a table.
_MEN = ("m1", "m3", "max", "m6", "Michael", "robert", "victor", "m5", "Hugo", "pablo", "m4", "Diogo")
_WOMEN = (
    *("f1", "f4", "steph", "aunty", "belinda", "f4@1.06", "f1@1.1^60", "steph@1.05", "belinda@1.06"),
    *("Hugo@1.22^95", "Denis@1.18^85", "m5@1.18^85", "Diogo@1.18^85"),
)
TRAIN: dict[Sex, tuple[str, ...]] = {
    "male": tuple(f"en-us+{variant}" for variant in _MEN),
    "female": tuple(f"en-us+{variant}" for variant in _WOMEN),
}
DEV: dict[Sex, tuple[str, ...]] = {
    "male": ("en-us+m8", "en-us+Henrique"),
    "female": ("en-us+linda", "en-us+Henrique@1.18^85"),
}
ENGINE = "flite"  # used only in the part `engine`
FLITE: dict[Sex, tuple[str, ...]] = {
    "male": ("rms", "kal16", "awb", "rms@0.93"),
    "female": ("slt", "slt@0.94", "slt@1.08"),
}
# CHOSEN is the cast of the open benchmark and of the EChat-eval set, so a model trained on this set has not heard it.
SPEAKERS = {
    "train": TRAIN,
    "style": TRAIN,
    "words": TRAIN,
    "dev": DEV,
    "seen": CHOSEN,
    "recipe": CHOSEN,
    "engine": FLITE,
}

Band = tuple[tuple[float, float], ...]
STRENGTH: Band = ((0.7, 1.15),)
HELD_STRENGTH: Band = ((0.5, 0.65), (1.2, 1.4))
SNR: Band = ((6.0, 14.0),)  # dB of the voice over the background
HELD_SNR: Band = ((3.0, 5.0), (16.0, 18.0))
# A child is another speaker, not a stronger delivery: half a child would be a woman. So pitch and vocal tract vary.
CHILD: tuple[Band, Band] = (((240.0, 290.0),), ((1.26, 1.34),))
HELD_CHILD: tuple[Band, Band] = (((215.0, 232.0), (300.0, 330.0)), ((1.21, 1.25), (1.36, 1.4)))
HELD_MANNERS = {"laughter": ("nervous",), "music": ("sad", "exciting")}  # kinds that occur only in the part `recipe`
ROOMS = {"small": 0.6, "car": 0.15, "street": 0.15, "hall": 0.1}
IN_A_ROOM, IN_NOISE = 0.2, 0.12  # shares of clips
NOISE: Band = ((20.0, 30.0),)


class Clip(Struct, frozen=True):
    """The parameters of one recording. Its repr is hashed (see `bundle_id`), so do not rename the class or a field."""

    drawn: str  # seed of its random sounds: its part and key
    text: str
    engine: str
    speaker: str
    sex: str
    cues: tuple[str, ...] = ()  # in the order in which they are applied
    manner: str = ""
    strength: float = 1.0
    hertz: float = 0.0  # pitch of a child
    throat: float = 0.0  # vocal tract of a child, relative to a man's
    f0: float = 1.0  # this and the next five: random variation between recordings, in the units of a recipe
    formants: float = 1.0
    rate: float = 1.0
    range: float = 1.0
    gain: float = 0.0
    tilt: float = 0.0
    room: str = ""
    noise: float = 0.0  # dB of the voice over the noise; 0: no noise
    snr: float = 10.0
    seed: int = 0

    @property
    def scene(self) -> str:
        return next((slug for slug in self.cues if BY_SLUG[slug].dimension == "environment"), "")

    @property
    def who(self) -> Speaker:
        sex: Sex = "male" if self.sex == "male" else "female"
        return Speaker(self.engine, self.speaker, sex, SCALE[sex])

    def without_last(self) -> Clip:
        """Return the clip's twin: the same speaker, variation and room, without the last cue."""
        return replace(self, cues=self.cues[:-1])


def clip_of(x: Exchange, seed: int, take: int = 0) -> Clip:
    """Return the plan of the recording of an exchange's query. Another take has the next speaker."""
    sex: Sex = "male" if x.sex == "male" else "female"
    people = SPEAKERS[x.part][sex]
    first = int.from_bytes(hashlib.sha256(f"{seed}/speaker/{sex}/{x.voice}".encode()).digest()[:8], "big")
    held = x.part == "recipe"
    delivery = random_of(seed, "delivery", x.part, x.key)
    manner = ""
    hertz = throat = 0.0
    for slug in x.cues:
        if slug == "child":
            pitch, size = HELD_CHILD if held else CHILD
            hertz, throat = _within(pitch, delivery), _within(size, delivery)
        kinds = _manners(slug, held)
        manner = kinds[int(delivery.integers(len(kinds)))] if kinds else manner
    plain = Clip(
        f"{x.part}/{x.key}",
        x.question,
        ENGINE if x.part == "engine" else "espeak",
        people[(first + take) % len(people)],
        sex,
        x.cues,
        manner,
        _within(HELD_STRENGTH if held else STRENGTH, delivery),
        hertz,
        throat,
        snr=_within(HELD_SNR if held else SNR, delivery),
        seed=seed,
    )
    return varied(plain, random_of(seed, "day", x.part, x.person), *x.manner)


def varied(clip: Clip, rng: np.random.Generator, rate: float, span: float, level: float) -> Clip:
    """Return the clip with random variation, on top of a style's pace, pitch range and level."""
    f0, formants, pace, wide = (math.exp(rng.uniform(-w, w)) for w in (0.06, 0.03, 0.07, 0.12))
    gain, tilt, place = float(rng.uniform(-3, 3)), float(rng.uniform(-0.4, 0.4)), float(rng.random())
    kind, quiet = str(rng.choice(list(ROOMS), p=list(ROOMS.values()))), _within(NOISE, rng)
    return replace(
        clip, f0=round(f0, 4), formants=round(formants, 4), rate=round(rate * pace, 4), range=round(span * wide, 4),
        gain=round(gain + 20 * math.log10(level), 3), tilt=round(tilt, 3), room=kind if place < IN_A_ROOM else "",
        noise=quiet if IN_A_ROOM <= place < IN_A_ROOM + IN_NOISE else 0.0,
    )  # fmt: skip


@functools.cache
def _manners(slug: str, held: bool) -> tuple[str, ...]:
    """Return the kinds of a cue that may occur in a part (`held`: a test part); () for a cue with one kind. Shouts have
    no label."""
    every = tuple(MOODS) if slug == "music" else manners(slug) if slug in FIRST_MANNER else ()
    return tuple(kind for kind in every if (kind in HELD_MANNERS.get(slug, ())) == held) or every


def _within(band: Band, rng: np.random.Generator) -> float:
    """Draw a number from one of the band's ranges."""
    low, high = band[int(rng.integers(len(band)))]
    return round(float(rng.uniform(low, high)), 4)
