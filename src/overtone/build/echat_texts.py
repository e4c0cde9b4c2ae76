"""Read the texts of the open set for EChat-eval, as written by their author.

Every sentence is said in two ways, and each way needs a different reply; the words alone do not determine the reply.
Labels are EChat's: emotion, age, gender and (sound) event. Sentences of a category have the label in the category's
name; sentences of `multi` have two or three labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from overtone.build.script import LONGEST, read_toml, unspeakable
from overtone.build.voices import ROLES
from overtone.cues import BY_SLUG, Cue
from overtone.errors import DataError
from overtone.paths import shown

FOLDER = Path(__file__).parent / "echat_eval"
CATEGORIES = ("emotion", "age", "gender", "event", "multi")
Emotion = Literal["happy", "sad", "angry", "fear", "surprise", "disgust", "neutral"]
Age = Literal["child", "adult", "old"]
Gender = Literal["male", "female"]

EVENTS = {  # our cue → EChat's caption
    # four of its eight vocal events: we have no sounds for screaming, throat clearing and sneezing, nor for a shout
    "laughter": "LAUGH",
    "cough": "COUGH",
    "sobbing": "CRY",
    "sigh": "SIGH",
    # the names of its fifty sound events are not published: these are the usual names of a set with fifty classes
    "rain": "RAIN",
    "thunder": "THUNDERSTORM",
    "wind": "WIND",
    "waves": "SEA WAVES",
    "dog": "DOG",
    "alarm": "CLOCK ALARM",
    "honking": "CAR HORN",
    "applause": "CLAPPING",
    "subway": "TRAIN",
}
TAGS = {"angry": "ANGER"} | EVENTS  # label → EChat's tag, if it is another word
SLUGS = {"old": "elderly"}  # label → our cue, if it is another word


class Rendition(Struct, frozen=True, forbid_unknown_fields=True):
    """One way to say a query: the labels of the voice, the reference reply, and the speaking style of that reply."""

    reply: str
    reply_emotion: Emotion  # the emotion of the reply's voice
    style: str
    emotion: Emotion | Literal[""] = ""
    age: Age | Literal[""] = ""
    gender: Gender | Literal[""] = ""
    event: str = ""  # slug of our cue, one of EVENTS

    @property
    def labels(self) -> dict[str, str]:
        """The non-empty labels, by kind."""
        named = {"emotion": self.emotion, "age": self.age, "gender": self.gender, "event": self.event}
        return {kind: label for kind, label in named.items() if label}

    @property
    def cues(self) -> tuple[Cue, ...]:
        """The cues of its labels, in the order of CATEGORIES; a neutral voice has none."""
        return tuple(BY_SLUG[SLUGS.get(label, label)] for label in self.labels.values() if label != "neutral")


class Query(Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence, and the ways in which it is said."""

    id: str
    topic: str
    voice: str
    words: str
    said: tuple[Rendition, ...]

    @property
    def category(self) -> str:
        return self.id.partition("-")[0]


class Spoken(Struct, frozen=True):
    """One item of the set: a query said in one way."""

    query: Query
    said: Rendition

    @property
    def id(self) -> str:
        return "-".join((self.query.id, *self.said.labels.values()))

    @property
    def voice(self) -> str:
        """The role that speaks the item: the query's role, or one of the other sex if the gender label requires it."""
        if not self.said.gender or ROLES[self.query.voice] == self.said.gender:
            return self.query.voice
        same = [[name for name, sex in ROLES.items() if (sex == self.said.gender) == fits] for fits in (True, False)]
        return same[0][same[1].index(self.query.voice) % len(same[0])]

    @property
    def clip(self) -> str:
        return f"audio/{self.query.category}/{self.id}.wav"

    @property
    def reply_clip(self) -> str:
        return f"audio_response/{self.query.category}/{self.id}_response.wav"

    def record(self) -> dict[str, Any]:
        """Return the entry of `echat_eval.json`: EChat's raw record with some additions.

        The additions are `category` and, in `extra`, the topic, the emotion of the reply's voice (`a_emotion`) and the
        speaking style of the reference reply (`style`).
        """
        keys = {"emotion": "q_emotion", "event": "caption"}
        tags = {keys.get(kind, kind): f"<{TAGS.get(name, name.upper())}>" for kind, name in self.said.labels.items()}
        return {
            "key": self.id,
            "category": self.query.category,
            "txt": self.said.reply,
            "wav": self.clip,
            "extra": {
                "dataset": "overtone",
                **tags,
                "question": self.query.words,
                "a_wav_path": self.reply_clip,
                "a_emotion": f"<{TAGS.get(self.said.reply_emotion, self.said.reply_emotion.upper())}>",
                "topic": self.query.topic,
                "style": self.said.style,
            },
            "task": "<S2TCHAT> <TEXT2TOKEN>",
        }


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    query: tuple[Query, ...]


def read(folder: Path = FOLDER) -> tuple[Query, ...]:
    """Read the queries of a folder, by category. Raises DataError with the name of an invalid query."""
    queries: list[Query] = []
    seen: set[str] = set()
    for path in (folder / f"{category}.toml" for category in CATEGORIES):
        for query in read_toml(path, _File, "queries").query:
            problem = "another query has this id" if query.id in seen else _problem(query, path.stem)
            if problem:
                raise DataError(f"{shown(path.name)}: query {shown(query.id)}: {problem}")
            seen.add(query.id)
            queries.append(query)
    return tuple(queries)


def spoken(queries: Iterable[Query]) -> Iterator[Spoken]:
    """Yield every item of the set."""
    return (Spoken(query, said) for query in queries for said in query.said)


def _problem(query: Query, category: str) -> str:
    """Return a message about the fault of a query, or "" if it is valid."""
    if not re.fullmatch(rf"{category}-\d\d", query.id):
        return f"an id is the category and two digits, like {category}-01"
    if not re.fullmatch(r"[a-z]{1,40}", query.topic):
        return f"a topic is one word of small letters, not {shown(query.topic)!r}"
    if query.voice not in ROLES:
        return f"no voice {shown(query.voice)!r}; known: {', '.join(ROLES)}"
    for text in (query.words, *(said.reply for said in query.said)):
        if unspeakable(text):
            return f"its words and replies must be 1 to {LONGEST} printable characters on one line"
    for said in query.said:
        if said.event and said.event not in EVENTS:
            return f"no event {shown(said.event)!r}; known: {', '.join(EVENTS)}"
        kinds = tuple(said.labels)
        if kinds != (category,) and not (category == "multi" and len(kinds) in (2, 3)):
            given = ", ".join(kinds) or "none"
            return f"its labels are {given}; a query has one label, of its category, or two or three in multi"
    if len({tuple(said.labels.values()) for said in query.said}) != len(query.said) or len(query.said) < 2:
        return "it must be said in at least two ways, each with different labels"
    return ""
