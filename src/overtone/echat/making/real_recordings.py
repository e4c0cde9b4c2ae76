"""The user's recordings for `overtone build echat-real`: which corpora, and their labels in OSUM-EChat's vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from overtone import corpora
from overtone.corpora import Recording
from overtone.echat.data.labels import EVENTS, Labels, label
from overtone.errors import AudioError, UsageError
from overtone.languages import primary
from overtone.paths import shown

RATE = 16_000
SHOWN_WARNINGS = 8  # warnings of one sort that are printed; the rest are counted
_AGES = {"child": "child", "adult": "adult", "elderly": "old"}  # teenagers are neither children nor adults
_LANGUAGE = "en"  # of words that a model is to transcribe


def read(data: Path | None, specs: Sequence[str]) -> tuple[list[Recording], list[str]]:
    """Read every corpus below a folder, and those named `kind:DIR`. Return recordings and warnings about the rest.

    Raises UsageError if a folder is missing, has no known corpus, or has another layout than the named one.
    """
    named = [corpora.parse(spec) for spec in specs]
    if data is not None:
        if not data.is_dir():
            raise UsageError(f"{shown(str(data))}: no such folder; give the folder with your corpora")
        found = corpora.find(data)
        if not found:
            raise UsageError(
                f"{shown(str(data))}: no known corpus ({', '.join(corpora.kinds())}; each in a separate folder). "
                "For your own recordings, write a labels.csv in UTF-8 with the column file"
            )
        named += found
    if not named:
        raise UsageError("no recordings are named; give --data DIR with your corpora, or --corpus KIND:DIR")
    recordings: dict[tuple[str, str], Recording] = {}
    warnings: list[str] = []
    equal: list[str] = []
    for kind, folder in dict.fromkeys((kind, folder.resolve()) for kind, folder in named):
        reading = corpora.read(kind, folder)
        warnings += reading.warnings
        for one in reading.recordings:
            if (one.corpus, one.name) in recordings:
                equal.append(f"{shown(one.path)} has the same name as another recording of {one.corpus}; skipped")
            else:
                recordings[one.corpus, one.name] = one
    foreign = Counter((one.corpus, one.emotion) for one in recordings.values() if not corpora.basic(one.emotion))
    warnings += [
        f"{corpus}: training has no emotion {shown(emotion)!r}; {count} recordings are used without it"
        for (corpus, emotion), count in sorted(foreign.items())
        if emotion
    ]
    return [recordings[key] for key in sorted(recordings)], warnings + _bounded(equal, "recordings of equal names")


def readable(recordings: Iterable[Recording]) -> tuple[list[Recording], list[str]]:
    """Return the recordings whose sound can be decoded, and a bounded number of sentences about the others."""
    good, damaged = [], []
    for one in recordings:
        try:
            corpora.sound(one, RATE)
            good.append(one)
        except AudioError as error:
            damaged.append(f"{error}; the recording is left out")
    return good, _bounded(damaged, "recordings that cannot be decoded")


def _bounded(lines: list[str], what: str) -> list[str]:
    more = len(lines) - SHOWN_WARNINGS
    return [*lines[:SHOWN_WARNINGS], *([f"{more} more {what} are left out"] if more > 0 else [])]


def labels(one: Recording) -> Labels:
    """Return the labels of a recording that training knows. Other emotions are unknown; other sounds are `other`."""
    event = label("event", one.event)
    return Labels(
        emotion=label("emotion", corpora.basic(one.emotion)),
        age=_AGES.get(one.age_group, ""),
        gender="" if one.age_group == "child" else one.sex,
        event=event if event in ("", *EVENTS) else "other",
    )


def words(one: Recording) -> str:
    """Return the words that a model learns to transcribe: those of English recordings."""
    return one.words if primary(one.language) in ("", _LANGUAGE) else ""
