"""Speak reference replies: one assistant's voice, with pace, pitch and level from the style's description."""

from __future__ import annotations

import re

import numpy as np

from overtone import audio
from overtone.build.delivery import ORDINARY_DBFS, RATE
from overtone.build.licence import Ingredient
from overtone.build.tract import Sound
from overtone.build.voices import REPLY_VOICE, Cast
from overtone.build.voices.espeak import GAP, LICENCE, in_language, split_voice
from overtone.embedded.espeak_voice import identity, speak

_PACE, _PITCH, _RANGE = 165, 50, 50
_MANNERS: tuple[tuple[str, tuple[int, int, int, float]], ...] = (  # words → change of pace, pitch, range, dB
    (r"slow|unhurried|patient|drowsy|pauses", (-28, -4, -6, 0.0)),
    (r"soft|gentle|quiet|close|calm|steady|low\b|understanding|protective", (-14, -6, -8, -2.5)),
    (r"hushed|conspiratorial", (-10, -14, -25, -6.0)),
    (r"quick|brisk|brief|crisp|short|point", (22, 2, 0, 0.5)),
    (r"bright|cheer|joy|merry|lively|delight|excited|thrill|festive|jolly|upbeat|enthus|keen|laugh", (10, 12, 22, 2.0)),
    (r"amused|playful|teasing|good-humoured|light|pleased", (4, 7, 14, 0.5)),
    (r"loud|raised", (-6, 6, 8, 4.0)),
    (r"serious|businesslike|grimace|concern|worried|caring", (-6, -5, -4, -0.5)),
)


def manner(style: str) -> tuple[int, int, int, float]:
    """Return words per minute, pitch, range and dB above ordinary for a style described in words."""
    pace, pitch, span, db = _PACE, _PITCH, _RANGE, 0.0
    for pattern, (d_pace, d_pitch, d_span, d_db) in _MANNERS:
        if re.search(pattern, style, re.I):
            pace, pitch, span, db = pace + d_pace, pitch + d_pitch, span + d_span, db + d_db
    return max(115, min(pace, 230)), max(15, min(pitch, 85)), max(10, min(span, 95)), max(-8.0, min(db, 5.0))


def speak_reply(cast: Cast, text: str, style: str, path: str) -> tuple[Sound, str, Ingredient]:
    """Return the reply at RATE, the name of its voice, and its ingredient. The first engine of the cast that can speak
    this reply is used, otherwise the embedded voice. Recordings must contain it."""
    for name, engine in cast.engines.items():
        said = engine.speak_reply(text, style, path)
        if said is not None:
            samples = audio.level(audio.resample(*said, RATE), ORDINARY_DBFS + manner(style)[3])
            return samples.astype(np.float64), name, Ingredient("voice", engine.identity(), engine.licence)
    name = _voice(cast)
    return _embedded(text, style, name), name, Ingredient("voice", identity(), LICENCE)


def _voice(cast: Cast) -> str:
    """Return the embedded voice, in the cast's language if that is not English."""
    spoken = {language for engine in cast.engines.values() for language in getattr(engine, "languages", ())}
    return in_language(REPLY_VOICE, spoken.pop()) if len(spoken) == 1 and "en" not in spoken else REPLY_VOICE


def _embedded(text: str, style: str, name: str) -> Sound:
    pace, pitch, span, db = manner(style)
    voice, size, own = split_voice(name)
    pitch = max(0, min(pitch + own - _PITCH, 99))
    samples, rate = speak(text, voice=voice, rate_wpm=round(pace / size), pitch=pitch, range=span, gap=GAP)
    return audio.level(audio.resample(samples, round(rate * size), RATE), ORDINARY_DBFS + db).astype(np.float64)
