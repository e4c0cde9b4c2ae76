"""Labels of VoxDialogue's lines: how a line should sound, from its style, the marks in its text, or its voice.

Generation files give a style as a list, "(male, neutral, 75)". Audio files give a sentence made from it: "A male
speaker with normal pitch, normal speaking rate, and neutral emotion. Volume is loud". The sentence leaves out age and
accent. For age, the line names the VoxCeleb recording whose voice was copied, and the authors publish those ages.
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

WORDS = {"surprised": "surprise", "fearful": "fear", "disgusted": "disgust"}  # VoxDialogue's name → our cue
AGES = "voxceleb_age.csv"
SOURCES = {  # attribute → how to get its label if the audio file does not have it
    "age": f"put the generation files, or {AGES} of Exgc/VoxDialogue, into the folder",
    "accent": "put the generation files into the folder",
}
_POSITIONS = {"gender": 0, "emotion": 1, "age": 2, "speed": 2, "volume": -1, "fidelity": -1, "accent": -1}  # in a list
_SENTENCE = re.compile(
    r"an? (?P<gender>\w+) speaker with \w+ pitch, (?P<speed>\w+) speaking rate,? and (?P<emotion>\w+) emotion", re.I
)
_STATED = re.compile(r"\b(volume|fidelity|age|accent) is ([\w-]+)", re.I)
_STRESS = re.compile(r"<(?:stress|strong)>\s*(.*?)\s*</(?:stress|strong)>", re.I | re.S)
_SOUND = re.compile(r"\[([a-z][a-z -]*)\]", re.I)
_CSV_BYTES = 50_000_000

Ages = Mapping[tuple[str, str], int]  # (VoxCeleb speaker, video) → age


class Line(Struct, frozen=True):
    """One line of a dialogue."""

    speaker: str
    content: str  # the text with its marks
    how: str  # the style, as the release describes it
    wav: str  # the path of the recording
    voice: str = ""  # the VoxCeleb recording whose voice was copied

    @property
    def words(self) -> str:
        return _plain(_STRESS.sub(r"\1", self.content))


class Label(Struct, frozen=True):
    """How a line sounds, in words, and our cue for it if there is one. Both are empty if the line sounds normal."""

    text: str
    cue: str = ""


def label_of(attribute: str, line: Line, topic: str, ages: Ages | None = None) -> Label | None:
    """Return the label of a line, or None if its file does not state it."""
    if attribute == "stress":
        marked = _STRESS.search(line.content)
        return Label(f"stress on “{marked[1]}”" if marked else "stress")
    if attribute == "nonverbal":
        return _sounds(line.content)
    if attribute in ("audio", "music"):
        return Label(topic.replace("_", " "))
    if attribute == "language":
        return Label("spoken in Chinese")
    value = _style(line.how).get(attribute, "")
    if attribute == "age" and not value:
        value = str((ages or {}).get(_recording(line.voice), ""))
    return _label(attribute, value) if value else None


def _label(attribute: str, value: str) -> Label:
    if attribute == "age":
        if not value.isdecimal():
            return Label(value, _slug(value))
        years = int(value)
        return Label(f"{years} years old", "elderly" if years >= 60 else "child" if years < 13 else "adult")
    if attribute == "accent":
        return Label(value if "accent" in value else f"{value} accent")
    if attribute == "volume":
        return Label("" if value == "normal" else f"{value} volume")
    if attribute == "fidelity":
        return Label("" if value == "good" else f"{value} sound quality")
    return Label(value, _slug(value))


def _sounds(content: str) -> Label:
    """Return a label with a line's first three marked sounds and their positions, because the judge is asked about
    both."""
    sounds = []
    for mark in itertools.islice(_SOUND.finditer(content), 3):
        before, after = _plain(content[: mark.start()]), _plain(content[mark.end() :])
        name = mark[1].lower()
        if not re.search(r"\w", before):
            sounds.append(f"{name} at the beginning")
        elif not re.search(r"\w", after):
            sounds.append(f"{name} at the end")
        else:
            sounds.append(f"{name} in the middle, after “{' '.join(before.split()[-6:])}”")
    first = _SOUND.search(content)
    if first is None:
        return Label("a sound that is not a word")
    return Label("; ".join(sounds), _slug(first[1].lower()))


def _plain(content: str) -> str:
    """Return a text without its marks for sounds."""
    return re.sub(r" (?=[.,!?;:])", "", " ".join(_SOUND.sub(" ", content).split()))


def _style(how: str) -> dict[str, str]:
    """Return attribute → value for the attributes that a style states."""
    sentence = _SENTENCE.search(how)
    if sentence is not None:
        stated = {**sentence.groupdict(), **{name.lower(): value for name, value in _STATED.findall(how)}}
        return {name: value.lower() for name, value in stated.items()}
    values = [value.strip() for value in how.split(",") if value.strip()]
    positions = {name: at for name, at in _POSITIONS.items() if at < len(values) and len(values) > 1}
    return {name: values[at] if name == "accent" else values[at].lower() for name, at in positions.items()}


def _slug(word: str) -> str:
    cue = find_cue(WORDS.get(word, word))
    return cue.slug if cue else ""


def _recording(voice: str) -> tuple[str, str]:
    """Return speaker and video of a path like id02022/Ahk1sThoa0c/00001.m4a."""
    parts = [part for part in PurePosixPath(voice.replace("\\", "/")).parts if part != "/"]
    return (parts[-3], parts[-2]) if len(parts) > 2 else ("", "")


def read_ages(root: Path) -> Ages:
    """Read the ages of VoxCeleb's speakers from the authors' table; empty if the folder does not have it."""
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
