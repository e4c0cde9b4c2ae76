"""A folder of sounds and a table: clips.csv says of each clip what is said, what is asked and what is right."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from overtone.benchmarks import Selection
from overtone.errors import DataError
from overtone.metrics import Answered
from overtone.paths import inside
from overtone.schema import Clip, Item, Option, Score, Turn
from overtone.scores import ScoreInfo
from overtone.suite import Column, Facts, Headline, Suite

ROOM = "benchmarks"
NAME = "my-benchmark"
COLUMNS = ("id", "file", "words", "question", "options", "answer", "reply")
LETTERS = "ABCDEFGH"


class Table:
    """One row is one clip with at most one question. Reading the table opens no sound."""

    name = NAME
    prompts: ClassVar = {"choose.letters": "item"}  # list a question's own letters, even if they are only A and B

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
            raise DataError(f"{path}: every row needs an id that no other row has")

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items by task, then in the table's order: the same on every machine."""
        self.warnings.clear()
        usable = [row for row in self.rows if self._usable(row)]
        yield from (_item(row, "transcribe", references=(row["words"],)) for row in usable if row["words"])
        yield from (self._question(row) for row in usable if row["question"])
        yield from (_item(row, "converse", references=(row["reply"],)) for row in usable if row["reply"])

    def _usable(self, row: dict[str, str]) -> bool:
        """Return whether the clip exists; if not, warn. A path that leaves the folder is an error."""
        if inside(self.root, row["file"]).is_file():
            return True
        self.warnings.append(f"clips.csv, {row['id']}: {row['file']} does not exist; left out")
        return False

    def _question(self, row: dict[str, str]) -> Item:
        """Return a question. If the answer is not one of the options, the question has no gold: nothing is guessed."""
        texts = [text.strip() for text in row["options"].split("|")]
        options = tuple(Option(letter, text) for letter, text in zip(LETTERS, texts, strict=False))
        gold = "".join(option.letter for option in options if option.text == row["answer"])
        if not gold:
            self.warnings.append(f"clips.csv, {row['id']}: the answer is none of the options; asked, not scored")
        return _item(row, "choose", question=row["question"], options=options, gold=gold)


def _item(row: dict[str, str], task: str, **fields: Any) -> Item:
    """Return an item. The clip is its group: two questions about one clip are not two independent observations."""
    turn = Turn(Clip(row["file"]), words=row["words"])
    return Item.of(NAME, row["id"], task, turn, group=row["file"], **fields)


class Exact:
    """This benchmark's own protocol: the reply is the text of the right option and nothing else."""

    name = "exact"
    version = 1
    SCORES: ClassVar = {"exact": ScoreInfo("Exact answers", tasks=("choose",))}

    @classmethod
    def load(cls) -> Exact:
        return cls()

    def applies(self, item: Item) -> bool:
        return item.task == "choose"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [[self._one(a)] for a in answered]

    def _one(self, a: Answered) -> Score:
        right = [option.text for option in a.item.options if option.letter == a.item.gold]
        if not right:
            return Score("exact", "exact|v1|case:ignored", None, "no right answer is known")
        return Score("exact", "exact|v1|case:ignored", float(a.text.strip().casefold() == right[0].casefold()))


METRICS = {"exact": Exact}  # computed for the replies to this benchmark only
SUITE = Suite(
    Facts(
        title="My benchmark",
        cues="rain, tiredness",
        tasks="transcribe, choose, converse",
        hears="one clip",
        answers="text",
        turns="one",
        metrics="accuracy and exact answers, WER",
        data="clips.csv and the sounds that it names",
        licence="yours",
        offline="everything",
    ),
    headlines=(
        Headline(
            "mine",
            "My benchmark",
            (
                Column("accuracy", "Accuracy", "accuracy", {"task": ("choose",)}),
                Column("exact", "Exact", "exact", {"task": ("choose",)}, help="the whole text of the option"),
                Column("wer", "WER", "wer", {"task": ("transcribe",)}, better="lower"),
            ),
        ),
    ),
)


def load(data: Path) -> Table:
    return Table(data)
