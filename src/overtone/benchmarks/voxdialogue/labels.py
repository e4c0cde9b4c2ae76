"""What is to be heard in a line of VoxDialogue, read from its style, from marks in its text, or from its voice.

Generation files give a style as a list, "(male, neutral, 75)". Audio files give a sentence that was made from it: "A
male speaker with normal pitch, normal speaking rate, and neutral emotion. Volume is loud". The sentence leaves out age
and accent; for age the line names the VoxCeleb recording whose voice was copied, and the authors list those ages.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown

WORDS = {"surprised": "surprise", "fearful": "fear", "disgusted": "disgust"}  # its words for cues of ours
AGES = "voxceleb_age.csv"
SOURCES = {  # where the label of an attribute is, when an audio file does not tell it
    "age": f"put the generation files, or {AGES} of Exgc/VoxDialogue, into the folder",
    "accent": "put the generation files into the folder",
}
_PLACES = {"gender": 0, "emotion": 1, "age": 2, "speed": 2, "volume": -1, "fidelity": -1, "accent": -1}  # in a list
_SENTENCE = re.compile(
    r"an? (?P<gender>\w+) speaker with \w+ pitch, (?P<speed>\w+) speaking rate,? and (?P<emotion>\w+) emotion", re.I
)
_TOLD = re.compile(r"\b(volume|fidelity|age|accent) is ([\w-]+)", re.I)
_STRESS = re.compile(r"<(?:stress|strong)>\s*(.*?)\s*</(?:stress|strong)>", re.I | re.S)
_SOUND = re.compile(r"\[([a-z][a-z -]*)\]", re.I)
_CSV_BYTES = 50_000_000

Ages = Mapping[tuple[str, str], int]  # (VoxCeleb speaker, video) → age


class Line(Struct, frozen=True):
    """One line of a dialogue: who speaks, what (marks included), how (as the release says it), where it is recorded,
    and whose voice was copied."""

    speaker: str
    said: str
    how: str
    wav: str
    voice: str = ""

    @property
    def words(self) -> str:
        return _plain(_STRESS.sub(r"\1", self.said))


class Label(Struct, frozen=True):
    """What is heard: in words, and as one of our cues where it is one. Both are empty where it is as usual."""

    text: str
    cue: str = ""


def label_of(attribute: str, line: Line, topic: str, ages: Ages | None = None) -> Label | None:
    """Return what is to be heard in a line, or None where its file does not say."""
    if attribute == "stress":
        marked = _STRESS.search(line.said)
        return Label(f"stress on “{marked[1]}”" if marked else "stress")
    if attribute == "nonverbal":
        return _sounds(line.said)
    if attribute in ("audio", "music"):
        return Label(topic.replace("_", " "))
    if attribute == "language":
        return Label("spoken in Chinese")
    told = _style(line.how).get(attribute, "")
    if attribute == "age" and not told:
        told = str((ages or {}).get(_recording(line.voice), ""))
    return _label(attribute, told) if told else None


def _label(attribute: str, told: str) -> Label:
    if attribute == "age":
        if not told.isdecimal():
            return Label(told, _slug(told))
        years = int(told)
        return Label(f"{years} years old", "elderly" if years >= 60 else "child" if years < 13 else "adult")
    if attribute == "accent":
        return Label(told if "accent" in told else f"{told} accent")
    if attribute == "volume":
        return Label("" if told == "normal" else f"{told} volume")
    if attribute == "fidelity":
        return Label("" if told == "good" else f"{told} sound quality")
    return Label(told, _slug(told))


def _sounds(said: str) -> Label:
    """The first sounds that are marked in a line, each with the place where it comes: the judge is asked about both."""
    found = []
    for mark in itertools.islice(_SOUND.finditer(said), 3):
        before, after = _plain(said[: mark.start()]), _plain(said[mark.end() :])
        name = mark[1].lower()
        if not re.search(r"\w", before):
            found.append(f"{name} at the beginning")
        elif not re.search(r"\w", after):
            found.append(f"{name} at the end")
        else:
            found.append(f"{name} in the middle, after “{' '.join(before.split()[-6:])}”")
    first = _SOUND.search(said)
    if first is None:
        return Label("a sound that is not a word")
    return Label("; ".join(found), _slug(first[1].lower()))


def _plain(said: str) -> str:
    """A text without the sounds that are marked in it."""
    return re.sub(r" (?=[.,!?;:])", "", " ".join(_SOUND.sub(" ", said).split()))


def _style(how: str) -> dict[str, str]:
    """Attribute → its value, as a style says it; what it does not say is left out."""
    sentence = _SENTENCE.search(how)
    if sentence is not None:
        told = {**sentence.groupdict(), **{name.lower(): value for name, value in _TOLD.findall(how)}}
        return {name: value.lower() for name, value in told.items()}
    parts = [part.strip() for part in how.split(",") if part.strip()]
    places = {name: place for name, place in _PLACES.items() if place < len(parts) and len(parts) > 1}
    return {name: parts[place] if name == "accent" else parts[place].lower() for name, place in places.items()}


def _slug(word: str) -> str:
    cue = find_cue(WORDS.get(word, word))
    return cue.slug if cue else ""


def _recording(voice: str) -> tuple[str, str]:
    """Speaker and video of a path like id02022/Ahk1sThoa0c/00001.m4a."""
    parts = [part for part in PurePosixPath(voice.replace("\\", "/")).parts if part != "/"]
    return (parts[-3], parts[-2]) if len(parts) > 2 else ("", "")


def read_ages(root: Path) -> Ages:
    """Read the ages of VoxCeleb's speakers from the authors' table, where that lies in the folder."""
    path = next(iter(sorted(root.rglob(AGES))), None)
    if path is None:
        return {}
    path = inside(root, path.relative_to(root).as_posix())
    name = shown(str(path))
    try:
        rows = csv.DictReader(io.StringIO(read_plain(path, _CSV_BYTES).decode("utf-8-sig")))
        return {(row["VoxCeleb_ID"], row["video_id"]): int(float(row["speaker_age"])) for row in rows}
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise DataError(f"{name}: not the table of ages of Exgc/VoxDialogue ({error}); fetch it again") from None
