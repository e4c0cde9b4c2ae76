"""One recording of a corpus, and the vocabulary that the labels of all corpora share.

A label that a corpus does not state is "" (or None), never a default. Whoever trains on it masks it.
"""

from __future__ import annotations

import re

from msgspec import Struct

EMOTIONS = ("neutral", "happy", "sad", "angry", "fear", "disgust", "surprise")  # others keep their names
INTENSITIES = ("low", "normal", "strong")
SEXES = ("male", "female")
AGE_GROUPS = ("child", "teenager", "adult", "elderly")  # below 13, 13–17, 18–59, from 60 years

_EMOTION = {
    "happy": "happiness joy joyful joyous happily",
    "sad": "sadness sorrow sorrowful sadly",
    "angry": "anger angrily mad",
    "fear": "fearful afraid scared anxiety fearfully",
    "disgust": "disgusted",
    "surprise": "surprised surprising pleasant_surprise pleasant_surprised ps",
    "neutral": "neutrality",
    "frustrated": "frustration",
    "excited": "excitement",
    "bored": "boredom",
    "amused": "amusement",
    "sleepy": "sleepiness",
    "contempt": "contemptuous",
    "confused": "confusion",
}
_EVENT = {
    "laughter": "laugh laughing laughs",
    "cough": "coughing coughs",
    "crying": "cry sobbing",
    "sigh": "sighing sighs",
    "yawn": "yawning",
    "scream": "screaming",
    "moan": "moaning",
    "panting": "pant",
    "sneeze": "sneezing",
    "sniff": "sniffing sniffs sniffle",
    "throat clearing": "throatclearing clearing_throat",
    "breathing": "breath breaths breathe",
    "gasp": "gasping",
}
_EMOTION_OF = {other.replace("_", " "): name for name, others in _EMOTION.items() for other in others.split()}
_EVENT_OF = {other.replace("_", " "): name for name, others in _EVENT.items() for other in others.split()}
_SEX_OF = {"m": "male", "f": "female", "man": "male", "woman": "female"}


class Recording(Struct, frozen=True, kw_only=True):
    """One recording, or one speaker's turn in a longer one. `name` identifies it within its corpus."""

    corpus: str = ""  # the adapter's name
    name: str  # the file's path relative to the corpus's folder; a turn in a longer file has #CHANNEL@START-END
    path: str = ""  # the file
    speaker: str = ""  # unique within the corpus; the source recording for a sound that nobody makes
    sex: str = ""
    age: int | None = None  # in years
    age_group: str = ""
    emotion: str = ""  # one of EMOTIONS, or another name in lower case
    intensity: str = ""
    event: str = ""  # a vocal or other sound, by the word for it: laughter, cough, sea waves
    style: str = ""  # how the words are spoken, where a corpus says so: whisper, projected, fast
    words: str = ""
    language: str = ""  # BCP-47
    licence: str = ""  # an SPDX identifier, or words such as `non-commercial research only`
    split: str = ""  # the publisher's part: train, dev, test, or a name of theirs
    start: float = 0.0  # seconds
    end: float | None = None  # seconds; None for the end of the file
    channel: int | None = None  # counted from 0; None for the mean of all


def basic(emotion: str) -> str:
    """Return the emotion if it is one of EMOTIONS, neutral for calm, and "" for every other name."""
    return "neutral" if emotion == "calm" else emotion if emotion in EMOTIONS else ""


def age_group(years: int) -> str:
    """Return the age group of a person."""
    return "child" if years < 13 else "teenager" if years < 18 else "adult" if years < 60 else "elderly"


def emotion(text: str) -> str:
    """Return an emotion's name in the common vocabulary. A name without a counterpart stays, in lower case."""
    plain = _plain(text)
    return _EMOTION_OF.get(plain, plain)


def event(text: str) -> str:
    """Return a sound's name in the common vocabulary. A name without a counterpart stays, in lower case."""
    plain = _plain(text)
    return _EVENT_OF.get(plain, plain)


def sex(text: str) -> str:
    """Return male or female, or "" for anything else."""
    plain = _plain(text)
    plain = _SEX_OF.get(plain, plain)
    return plain if plain in SEXES else ""


def sentence(words: str) -> str:
    """Return words as a sentence: a full stop where punctuation lacks, and small letters if all are capitals."""
    plain = " ".join(words.split())
    if plain and (plain == plain.upper() or plain == plain.lower()) and plain.isascii():
        plain = re.sub(r"\bi\b", "I", plain.lower())
        plain = plain[0].upper() + plain[1:]
    return f"{plain}." if plain and plain.isascii() and plain[-1].isalnum() else plain


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("_", " ").replace("-", " ").split())
