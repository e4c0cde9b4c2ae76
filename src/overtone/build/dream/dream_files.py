"""Read DREAM's files: dialogues, questions with three choices, and the question types of two annotators.

The benchmark and the builder both read them. A folder is DREAM's repository, its `data` folder, or a spoken set, which
has the same files. Anything that differs from the released layout is an error: other versions have other questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.build.licence import RESEARCH
from overtone.errors import DataError
from overtone.paths import inside, read_plain, shown

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
TYPES = {"m": "matching", "s": "summary", "l": "logic", "a": "arithmetic", "c": "commonsense"}
ANNOTATORS = (1, 2)
CHOICES = 3
LICENCE = RESEARCH
_FOLDERS = ("", "data/")
_NOTES = ("", "annotation/", "data/", "../annotation/")  # folders of the annotators' files, as seen from the dialogues
_HEAD = ["dialogueID", "questionIndex", "type"]
_ID = re.compile(r"\d+-\d+")
_MAX_BYTES = 100_000_000
_FETCH = "fetch DREAM again from nlpdata/dream (GitHub)"


class Line(Struct, frozen=True):
    """One turn: the label of its speaker and the words."""

    speaker: str
    words: str


class Question(Struct, frozen=True):
    """A question with three choices. `types` holds the type letters of each annotator; it is empty without
    annotations."""

    text: str
    choices: tuple[str, ...]
    answer: int
    types: tuple[str, ...] = ()


class Dialogue(Struct, frozen=True):
    id: str
    lines: tuple[Line, ...]
    questions: tuple[Question, ...]

    @property
    def text(self) -> str:
        """The turns as the files have them, one per line."""
        return "\n".join(f"{line.speaker}: {line.words}".strip() for line in self.lines)

    @property
    def speakers(self) -> tuple[str, ...]:
        """The labels of the speakers in order of appearance."""
        return tuple(dict.fromkeys(line.speaker for line in self.lines))


def split_file(root: Path, split: Split) -> Path | None:
    """Return the file of a split, or None if the folder does not have it."""
    for folder in _FOLDERS:
        if (root / folder / f"{split}.json").is_file():
            return inside(root, f"{folder}{split}.json")
    return None


def read_split(root: Path, split: Split) -> list[Dialogue]:
    """Return the dialogues of a split with the question types of both annotators, in file order.

    Raises DataError if the split is missing or if the files are not DREAM's.
    """
    path = split_file(root, split)
    if path is None:
        others = [f"{other}.json" for other in SPLITS if split_file(root, other)]
        has = f"it has {', '.join(others)}: give one of these files to use its split" if others else _FETCH
        raise DataError(f"{shown(str(root))}: holds no {split}.json; {has}")
    return with_types(read_dialogues(path), path, split)


def read_dialogues(path: Path) -> list[Dialogue]:
    """Return the dialogues of one file, without question types."""
    name = shown(str(path))
    try:
        tree = msgspec.json.decode(read_plain(path, _MAX_BYTES).removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{name}: not valid JSON: {error}; {_FETCH}") from None
    if not isinstance(tree, list) or not tree:
        raise DataError(f"{name}: a list of dialogues is expected; {_FETCH}")
    dialogues: list[Dialogue] = []
    places: dict[str, int] = {}
    for position, row in enumerate(tree):
        dialogue = _dialogue(row, f"{name}: position {position}")
        if dialogue.id in places:
            raise DataError(f"{name}: dialogue {dialogue.id} is at positions {places[dialogue.id]} and {position}")
        places[dialogue.id] = position
        dialogues.append(dialogue)
    return dialogues


def _dialogue(row: Any, where: str) -> Dialogue:
    if isinstance(row, dict):
        raise DataError(f"{where}: holds an object, as in another version of DREAM; {_FETCH}")
    if not isinstance(row, list) or len(row) != 3:
        raise DataError(f"{where}: [turns, questions, id] is expected; {_FETCH}")
    turns, questions, name = row
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise DataError(f"{where}: the id of the dialogue is missing or not like 4-199; {_FETCH}")
    where = f"{where} ({name})"
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise DataError(f"{where}: the turns are not a list of texts; {_FETCH}")
    if not isinstance(questions, list) or not questions:
        raise DataError(f"{where}: the dialogue has no question; {_FETCH}")
    lines = tuple(_line(turn, where) for turn in turns)
    if not any(_has_words(line) for line in lines):
        raise DataError(f"{where}: the dialogue has no turns with words; {_FETCH}")
    return Dialogue(name, lines, tuple(_question(q, f"{where}, question {n}") for n, q in enumerate(questions, 1)))


def _has_words(line: Line) -> bool:
    return any(character.isalnum() for character in line.words)


def _line(turn: str, where: str) -> Line:
    speaker, colon, words = turn.partition(":")
    if not colon or not speaker.strip():
        raise DataError(f"{where}: the turn {shown(turn[:40])!r} does not begin with a speaker, as in 'M: …'; {_FETCH}")
    return Line(speaker.strip(), words.strip())


def _question(given: Any, where: str) -> Question:
    fields = given if isinstance(given, dict) else {}
    text, choices, answer = (fields.get(key) for key in ("question", "choice", "answer"))
    if not isinstance(text, str) or not text.strip() or not isinstance(answer, str) or not isinstance(choices, list):
        raise DataError(f"{where}: 'question', 'choice' and 'answer' are expected; {_FETCH}")
    if len(choices) != CHOICES or not all(isinstance(choice, str) and choice.strip() for choice in choices):
        raise DataError(f"{where}: {CHOICES} choices are expected, each a text; {_FETCH}")
    if choices.count(answer) != 1:
        state = "more than one of" if answer in choices else "none of"
        raise DataError(f"{where}: the answer {shown(answer)!r} is {state} the choices; {_FETCH}")
    return Question(text.strip(), tuple(choice.strip() for choice in choices), choices.index(answer))


# ── question types ──────────────────────────────────────────────────────────────────────────────────────────────────


def type_files(path: Path, split: Split) -> list[Path]:
    """Return the files of the annotators that exist for a split. `path` is the file of the dialogues."""
    files = []
    for annotator in ANNOTATORS:
        name = f"annotator{annotator}_{split}.txt"
        files += [found for folder in _NOTES if (found := path.parent / folder / name).is_file()][:1]
    return files


def with_types(dialogues: list[Dialogue], path: Path, split: Split) -> list[Dialogue]:
    """Return the dialogues with the types of both annotators. Raises DataError if only one annotator's file exists."""
    files = type_files(path, split)
    if not files:
        return dialogues
    if len(files) < len(ANNOTATORS):
        raise DataError(
            f"{shown(str(path.parent))}: has {files[0].name}, but the file of the other annotator is missing"
        )
    counts = {d.id: len(d.questions) for d in dialogues}
    tables = [dict(_types(file, counts)) for file in files]

    def typed(dialogue: Dialogue) -> Dialogue:
        questions = [
            msgspec.structs.replace(q, types=tuple(table.get((dialogue.id, n), "") for table in tables))
            for n, q in enumerate(dialogue.questions, 1)
        ]
        return msgspec.structs.replace(dialogue, questions=tuple(questions))

    return [typed(dialogue) for dialogue in dialogues]


def _types(path: Path, counts: dict[str, int]) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield (dialogue, number of the question) and type letters. `counts` has the number of questions per dialogue."""
    name = shown(str(path))
    try:
        rows = [line.split("\t") for line in read_plain(path, _MAX_BYTES).decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise DataError(f"{name}: not UTF-8 text; {_FETCH}") from None
    if not rows or rows[0] != _HEAD:
        raise DataError(f"{name}: the first line must be {', '.join(_HEAD)}, separated by tabs; {_FETCH}")
    for number, row in enumerate(rows[1:], 2):
        where = f"{name}, line {number}"
        if len(row) != len(_HEAD) or not row[1].isdecimal() or not row[2] or set(row[2]) - set(TYPES):
            raise DataError(f"{where}: an id, a number and letters of {''.join(TYPES)} are expected; {_FETCH}")
        dialogue, question = row[0], int(row[1])
        if not 1 <= question <= counts.get(dialogue, 0):
            raise DataError(f"{where}: the split has no question {question} of dialogue {shown(dialogue)}; {_FETCH}")
        yield (dialogue, question), row[2]


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(dialogues: list[Dialogue]) -> bytes:
    """Return dialogues as a file in DREAM's own layout."""
    rows = [
        [
            d.text.split("\n"),
            [{"question": q.text, "choice": q.choices, "answer": q.choices[q.answer]} for q in d.questions],
            d.id,
        ]
        for d in dialogues
    ]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n"


def encode_types(dialogues: list[Dialogue], annotator: int) -> bytes:
    """Return the types of one annotator (0 or 1) as a file in DREAM's own layout."""
    rows = ["\t".join(_HEAD)]
    for dialogue in dialogues:
        for number, question in enumerate(dialogue.questions, 1):
            if question.types and question.types[annotator]:
                rows.append(f"{dialogue.id}\t{number}\t{question.types[annotator]}")
    return ("\n".join(rows) + "\n").encode()
