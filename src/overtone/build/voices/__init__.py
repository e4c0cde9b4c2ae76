"""The voices a set is spoken with: engines found by name, joined into a cast that knows who speaks which script."""

from __future__ import annotations

from dataclasses import dataclass

from overtone.build.voices._cast import DEFAULT, ROLES, Cast, cast
from overtone.build.voices._find import engines, open_engine
from overtone.build.voices._records import PACE, Engine, How, Speaker, VoiceError

__all__ = [
    "DEFAULT",
    "PACE",
    "REPLY_VOICE",
    "ROLES",
    "Cast",
    "Engine",
    "How",
    "Speaker",
    "VoiceError",
    "cast",
    "engines",
    "held_out",
    "open_engine",
]

REPLY_VOICE = "en-us+Annie"  # speaks every reference reply: an assistant sounds like one assistant


def held_out() -> frozenset[str]:
    """Engine names of every voice of the default cast and of the replies. What is fitted or tuned on synthetic speech
    must not have heard them."""
    from overtone.build.voices.espeak import CHOSEN

    return frozenset({name for names in CHOSEN.values() for name in names} | {REPLY_VOICE})


@dataclass(frozen=True)
class BuildVoice:
    """A voice of the embedded engine; `scale` is the size of its throat against a grown man's, for vocal events."""

    name: str  # how scripts call it
    engine: str  # how the engine calls it
    sex: str  # male or female
    scale: float
    partner: str  # who speaks in its place when the other sex is wanted


VOICES: dict[str, BuildVoice] = {
    v.name: v
    for v in (
        BuildVoice("arlo", "en-us+m3", "male", 1.0, "edith"),
        BuildVoice("bruno", "en-us+m5", "male", 1.0, "dora"),
        BuildVoice("carl", "en-us+m1", "male", 1.0, "freya"),
        BuildVoice("dora", "en-us+f2", "female", 1.16, "bruno"),
        BuildVoice("edith", "en-us+f3", "female", 1.16, "arlo"),
        BuildVoice("freya", "en-us+f5", "female", 1.16, "carl"),
    )
}


def starter_voices() -> frozenset[str]:
    """Engine names of every voice heard in the starter set, replies included."""
    return frozenset({v.engine for v in VOICES.values()} | {REPLY_VOICE})
