"""Sixteen synthesised backgrounds for a speaker: they need no recording and no licence but our own.

`scene(slug, n, rate, rng)` returns n samples at root mean square 1. Each maker has several kinds of its scene and draws
one, because no two rains sound the same. The sound that identifies a scene starts within the first second.
"""

from __future__ import annotations

from collections.abc import Callable

from overtone.build.scenes.crowds import applause, chatter, cheering, children
from overtone.build.scenes.ingredients import microphone
from overtone.build.scenes.music import MOODS, music
from overtone.build.scenes.places import basketball, car, subway
from overtone.build.scenes.signals import alarm, dog, honking, ringtone
from overtone.build.scenes.weather import rain, thunder, waves, wind
from overtone.build.tract import Rng, Sound, unit
from overtone.errors import UsageError
from overtone.spec import suggest

__all__ = ["MOODS", "SCENES", "Maker", "scene"]

Maker = Callable[[int, int, Rng], Sound]

_MAKERS: tuple[Maker, ...] = (
    wind, thunder, rain, waves, basketball, car, subway, applause, cheering, chatter, children, alarm, ringtone,
    honking, dog, music,
)  # fmt: skip
SCENES: dict[str, Maker] = {maker.__name__: maker for maker in _MAKERS}


def scene(slug: str, n: int, rate: int, rng: Rng, manner: str = "") -> Sound:
    """Return `n` samples of the scene named by an environment cue's slug, at root mean square 1. `manner` is the mood
    of music, one of MOODS; the other scenes have none. The same generator state gives the same sound."""
    if slug not in SCENES:
        raise UsageError(f"no scene {slug!r}{suggest(slug, SCENES)}; known: {', '.join(SCENES)}")
    if manner and slug != "music":
        raise UsageError(f"the scene {slug!r} has no manner {manner!r}; only music comes in moods")
    made = music(n, rate, rng, manner) if slug == "music" else SCENES[slug](n, rate, rng)
    heard = microphone(unit(made), rate, rng)
    return unit(heard - heard.mean())
