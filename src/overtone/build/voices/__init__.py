"""The voices of a set: engines found by name, joined into a cast that assigns a speaker to each script."""

from __future__ import annotations

from overtone.build.voices._cast import DEFAULT, ROLES, Cast, cast
from overtone.build.voices._records import PACE, SCALE, Engine, How, Speaker, Synthesiser, VoiceError

__all__ = [
    "DEFAULT",
    "PACE",
    "REPLY_VOICE",
    "ROLES",
    "SCALE",
    "Cast",
    "Engine",
    "How",
    "Speaker",
    "Synthesiser",
    "VoiceError",
    "cast",
    "held_out",
]

REPLY_VOICE = "en-us+Nguyen@1.14^65"  # speaks every reference reply, so that the assistant has one voice


def held_out() -> frozenset[str]:
    """Return the engine names of all voices of the default cast and of the replies. Models that are fitted or tuned on
    synthetic speech must not have heard these voices."""
    from overtone.build.voices.espeak import CHOSEN, split_voice

    return frozenset(split_voice(name)[0] for name in (*CHOSEN["male"], *CHOSEN["female"], REPLY_VOICE))
