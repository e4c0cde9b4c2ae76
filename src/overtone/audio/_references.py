"""References to audio files in a folder's JSON files and tables. EchoMind's files are read by their keys; in other
files, every name with the suffix of an audio file counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import DataError
from overtone.languages import tag_problem
from overtone.paths import read_plain

SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".au", ".caf", ".w64", ".m4a", ".aac")
_TABLES = (".jsonl", ".csv", ".tsv")
_SUFFIX = re.compile(rf"(?:{'|'.join(re.escape(s) for s in SUFFIXES)})(?![\w.])", re.I)
_BETWEEN = re.compile(r"""[,;\t\r\n"'/\\]""")
_LONGEST_NAME = 255
_MAX_BYTES = 500_000_000


class Reference(Struct, frozen=True):
    """A reference to an audio file: `path`, as written in the JSON file `named_in`, is relative to `home`."""

    home: Path
    path: str
    named_in: str


class Labels(Struct):
    """The contents of JSON files and tables: references to check, all names mentioned, and problems of the files."""

    references: list[Reference]
    mentioned: set[str]  # base names
    broken: list[tuple[str, str]]  # JSON file, what is wrong with it
    bad_tags: dict[tuple[str, str], None]  # JSON file, what is wrong with a language in it


def read_labels(root: Path, files: list[str]) -> Labels:
    """Read every JSON file and table among `files` (paths under `root`, with `/`)."""
    labels = Labels([], set(), [], {})
    for name in files:
        path = root / name
        if name.lower().endswith(_TABLES) and (text := _table(path)):
            labels.mentioned.update(_in_table(text))
        if not name.lower().endswith(".json"):
            continue
        ours = path.name.startswith("script_info") or path.parent.name == "MCQ"
        try:
            content = msgspec.json.decode(read_plain(path, _MAX_BYTES))
        except (DataError, ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
            if ours:
                labels.broken.append((name, str(error)))
            continue
        if ours and not isinstance(content, list):
            labels.broken.append((name, "it is not a list"))
            continue
        labels.mentioned.update(text.replace("\\", "/").rpartition("/")[2] for text in _sounds(content))
        if path.name.startswith("script_info") or path.name == "dialogues.json":
            labels.bad_tags.update(dict.fromkeys((name, problem) for problem in _bad_tags(content)))
        if path.name.startswith("script_info"):
            labels.references.extend(_of_scripts(content, path.parent, name))
        elif path.parent.name == "MCQ":
            labels.references.extend(_of_questions(content, path.parent.parent, name))
    return labels


def _table(path: Path) -> str:
    """Return a table's text; "" if it cannot be read or is too large. This is not an error, as the table may be
    unrelated."""
    try:
        return read_plain(path, _MAX_BYTES).decode("utf-8", "replace")
    except DataError:
        return ""


def _in_table(text: str) -> Iterator[str]:
    """Yield every audio file name in a table. The search looks for a suffix and then reads backwards to the beginning
    of the name, because a forward search takes hours on a long line."""
    for suffix in _SUFFIX.finditer(text):
        before = text[max(0, suffix.start() - _LONGEST_NAME) : suffix.start()]
        if name := _BETWEEN.split(before)[-1]:
            yield name + suffix[0]


def _of_scripts(content: list[Any], home: Path, name: str) -> Iterator[Reference]:
    """Yield the references in a script file. Inputs are in `audio/` next to the file, replies in `audio_response/` next
    to it or one folder up.
    """
    replies = home / "audio_response" if (home / "audio_response").is_dir() else home.parent / "audio_response"
    for script in content:
        for key, value in _pairs(script):
            if key.endswith("_input_audio_file") and value:
                yield Reference(home / "audio", value, name)
            elif key.endswith("_response_audio_file") and value:
                yield Reference(replies, value, name)


def _bad_tags(content: Any) -> Iterator[str]:
    """Yield a problem for each row with an invalid language tag."""
    for row in content if isinstance(content, list) else ():
        for key, value in row.items() if isinstance(row, dict) else ():
            stated = value.strip() if isinstance(value, str) and key.lower() in ("language", "lang") else ""
            if stated and (problem := tag_problem(stated)):
                yield problem


def _of_questions(content: list[Any], home: Path, name: str) -> Iterator[Reference]:
    for question in content:
        if isinstance(question, dict) and isinstance(question.get("audio_name"), str):
            folder = question.get("audio_dir")
            sound = question["audio_name"]
            yield Reference(home / "audio", f"{folder}/{sound}" if isinstance(folder, str) and folder else sound, name)


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            for key, inner in current.items():
                if isinstance(inner, str):
                    yield key, inner
                else:
                    stack.append(inner)
        elif isinstance(current, list):
            stack.extend(current)


def _sounds(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value that looks like the name of an audio file."""
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, str):
            if current.lower().endswith(SUFFIXES):
                yield current
        elif isinstance(current, dict):
            stack.extend(current.values())
        elif isinstance(current, list):
            stack.extend(current)
