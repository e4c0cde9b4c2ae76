"""The recordings of the experiment as records: what is learnt from, what is tested, and in which folds."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from overtone import corpora
from overtone.corpora import Recording
from overtone.echat.data.exchange_records import UNDERSTANDING, Record
from overtone.echat.data.labels import DIMENSIONS, Labels, label
from overtone.errors import UsageError
from overtone.paths import shown

FOLDS = 6
SOUNDS = ("cough", "cry", "laugh", "sigh")  # the vocal sounds that our synthetic set has too


class Source(Struct, frozen=True):
    """A corpus of the experiment: its adapter and folder, whether it is learnt from, and what it tests."""

    kind: str
    folder: str
    learnt: bool = True
    folded: bool = False
    tests: tuple[str, ...] = ()  # dimensions, and `words`
    language: str = "en"  # other languages are heard without their words


SOURCES = {
    "ravdess": Source("ravdess", "people/ravdess", folded=True, tests=("emotion", "gender", "words")),
    "nonverbal": Source("nonverbal", "nonverbal", folded=True, tests=("event",)),
    "speechocean": Source("speechocean", "people/speechocean_train", folded=True, tests=("age", "gender", "words")),
    "tess": Source("tess", "people/tess"),
    "savee": Source("savee", "people/savee"),
    "emodb": Source("emodb", "people/emodb", language="de"),
    "esc50": Source("esc50", "esc50", language=""),
    "librispeech": Source("librispeech", "librispeech", learnt=False, tests=("words",)),
    "speechocean-test": Source("speechocean", "speechocean", learnt=False, tests=("age", "gender", "words")),
}
LEARNT = tuple(name for name, source in SOURCES.items() if source.learnt)


def read(data: Path, names: Sequence[str], most: int = 0) -> dict[str, list[Recording]]:
    """Return the recordings of each corpus, at most `most` of each (0: all). Raises UsageError for an unknown one."""
    found = {}
    for name in names:
        if name not in SOURCES:
            raise UsageError(f"--corpora {shown(name)!r} is unknown; known: {', '.join(SOURCES)}")
        source = SOURCES[name]
        rows = corpora.read(source.kind, data / source.folder).recordings
        if "event" in source.tests:
            rows = [row for row in rows if label("event", row.event) in SOUNDS]
        if not rows:
            raise UsageError(f"{shown(str(data / source.folder))}: no recordings; leave {name} out of --corpora")
        found[name] = _some(rows, most)
    return found


def _some(rows: Sequence[Recording], most: int) -> list[Recording]:
    """Return at most so many recordings, in turn of every speaker."""
    if not most or len(rows) <= most:
        return list(rows)
    rng = random.Random(0)
    of: dict[str, list[Recording]] = {}
    for row in rows:
        of.setdefault(row.speaker, []).append(row)
    for mine in of.values():
        rng.shuffle(mine)
    turns = range(max(map(len, of.values())))
    return [row for turn in turns for mine in of.values() for row in mine[turn : turn + 1]][:most]


def labels_of(row: Recording) -> Labels:
    """Return the labels that training knows. A child's sex is not labelled."""
    emotion = label("emotion", corpora.basic(row.emotion))
    event = label("event", row.event)
    return Labels(
        emotion=emotion if emotion in DIMENSIONS["emotion"] else "",
        age="" if row.age_group == "teenager" else label("age", row.age_group),
        gender="" if row.age_group == "child" else row.sex,
        event=event if event in DIMENSIONS["event"] else "",
    )


def record_of(name: str, row: Recording, *, test: bool) -> Record:
    """Return a recording as a record: to learn from, or to be asked what its corpus tests.

    Gender and words are tested on adults only.
    """
    source = SOURCES[name]
    known = labels_of(row).known()
    words = row.words if row.language.startswith(source.language) and source.language == "en" else ""
    if test:
        asked = [d for d in source.tests if row.age_group in ("", "adult") or d not in ("gender", "words")]
        known = {d: text for d, text in known.items() if d in asked}
        words = words if "words" in asked else ""
    tags = [f"<{tag}>" for tag, dimension in UNDERSTANDING.items() if dimension in known]
    digest = hashlib.sha256(f"{name}/{row.name}".encode()).hexdigest()[:10]
    who = f"{name}:{row.speaker}"
    return Record(
        f"{name}_{digest}", wav="x", question=words, labels=Labels(**known), dataset=name,
        task=" ".join(["<TRANSCRIBE>"] * bool(words) + tags),
        extra={"part": name if test else "train", "group": who, "speaker": who, "licence": row.licence},
    )  # fmt: skip


def folds(rows: Sequence[Recording]) -> dict[str, int]:
    """Return the fold of each speaker: as many speakers, and as many of each sex, age and sound, as possible.

    RAVDESS' actors alternate between men and women, so its folds are actors 1 to 3, 4 to 6 …
    """
    kinds: dict[str, set[str]] = {}
    for row in rows:
        known = labels_of(row).known()
        kinds.setdefault(row.speaker, set()).update(text for d, text in known.items() if d != "emotion")
    if all(name.isdecimal() and 1 <= int(name) <= 3 * FOLDS for name in kinds):
        return {name: (int(name) - 1) // 3 for name in kinds}
    order = sorted(kinds, key=lambda name: (sorted(kinds[name]), hashlib.sha256(name.encode()).digest()))
    return {name: at % FOLDS for at, name in enumerate(order)}
