"""A folder of sounds and a table: clips.csv says of each clip what is said, what is asked and what is right."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import ClassVar, Literal

from overtone.cues import BY_SLUG
from overtone.errors import DataError
from overtone.paths import inside
from overtone.schema import Clip, Item, Option, Turn

ROOM = "benchmarks"
NAME = "my-benchmark"
COLUMNS = ("id", "file", "words", "cue", "question", "options", "answer", "reply")
LETTERS = "ABCDEFGH"


class Table:
    """One row is one clip with at most one question. Reading the table opens no sound."""

    name = NAME
    prompts: ClassVar = {"choose.letters": "item"}  # list a question's own letters, also when they are only A and B

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []
        path = root / "clips.csv"
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = csv.DictReader(file)
                missing = set(COLUMNS) - set(rows.fieldnames or ())
                self.rows = list(rows)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}; --data names the folder that holds it") from None
        if missing:
            raise DataError(f"{path} has no column {', '.join(sorted(missing))}")
        ids = [row["id"] for row in self.rows]
        if len(set(ids)) < len(ids) or "" in ids:
            raise DataError(f"{path}: every row needs an id of its own")

    def items(self, levels: frozenset[int], styles: frozenset[str], asr: Literal["target", "all"]) -> Iterator[Item]:
        """By level, then in the table's order: the same on every machine."""
        self.warnings.clear()
        if "target" not in styles:  # these clips have one style
            return
        usable = [row for row in self.rows if self._usable(row)]
        if 1 in levels:
            yield from (self._item(row, 1, "transcribe", "asr") for row in usable if row["words"])
            yield from (self._item(row, 1, "choose", "coarse") for row in usable if row["question"])
        if 3 in levels:
            yield from (self._item(row, 3, "converse", "conversation") for row in usable if row["reply"])

    def _usable(self, row: dict[str, str]) -> bool:
        """A path that leaves the folder is an error; a file that is not there is left out, and said."""
        if inside(self.root, row["file"]).is_file():
            return True
        self.warnings.append(f"clips.csv, {row['id']}: {row['file']} does not exist; left out")
        return False

    def _item(self, row: dict[str, str], level: int, task: str, category: str) -> Item:
        clip = PurePosixPath(row["file"]).with_suffix("").as_posix()
        cue = row["cue"] if row["cue"] in BY_SLUG else ""
        if row["cue"] != cue:
            self.warnings.append(f"clips.csv, {row['id']}: {row['cue']!r} is no cue; taken as none")
        options: tuple[Option, ...] = ()
        if task == "choose":
            texts = [text.strip() for text in row["options"].split("|")]
            options = tuple(Option(letter, text) for letter, text in zip(LETTERS, texts, strict=False))
        reference = {"transcribe": row["words"], "converse": row["reply"]}.get(task, "")
        return Item(
            id=f"{NAME}/{task}/{row['id']}",
            benchmark=NAME,
            level=level,
            task=task,
            category=category,
            case=f"mine/{clip}/target",
            group=f"mine/{clip}",
            style="target",
            source="mine",
            turns=(Turn(Clip(row["file"]), words=row["words"], cue=cue),),
            cue=cue,
            dimension=BY_SLUG[cue].dimension if cue else "",
            question=row["question"] if task == "choose" else "",
            options=options,
            gold=self._gold(row, options),
            references=(reference,) if reference else (),
        )

    def _gold(self, row: dict[str, str], options: tuple[Option, ...]) -> str:
        """The right letter. An answer that is no option's text is not guessed at: the question then has no gold."""
        for option in options:
            if option.text == row["answer"]:
                return option.letter
        if options:
            self.warnings.append(f"clips.csv, {row['id']}: the answer is none of the options; asked, not scored")
        return ""


def load(data: Path) -> Table:
    return Table(data)
