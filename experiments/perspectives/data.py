"""What `prepare.py` wrote, read back: EmoBank, questions and the base model's replies as tokens."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from overtone.rated_sentences import Bank
from overtone.studies.perspectives.answers import Answers, Key


@dataclass(frozen=True)
class Questions:
    """Multiple choice as tokens: prompts per condition, the options of each question, and what the analysis needs."""

    prompts: dict[str, list[list[int]]]
    options: list[list[list[int]]]
    gold: list[int]
    about: list[dict[str, Any]]  # cluster, level, …

    @cached_property
    def answers(self) -> Answers:
        """What the analysis needs of the questions, without their words."""
        return Answers.of(
            [list(map(len, options)) for options in self.options],
            self.gold,
            [str(about["cluster"]) for about in self.about],
            [about.get("level", 0) for about in self.about],
        )


@dataclass(frozen=True)
class Data:
    """Everything that `prepare.py` wrote, with the SHA-256 of the file."""

    sha256: str
    bank: Bank
    heads: dict[str, list[int]]  # prompt name → its first tokens; all have the same length
    tails: list[list[int]]  # per sentence, the rest of the prompt
    digits: list[int]  # the tokens of 0 to 9
    space: int
    replies: list[tuple[list[int], list[int]]]  # the base model's: prompt, reply
    questions: dict[str, Questions]  # open, dream, dream-train
    windows: list[list[int]]  # of plain text, for the perplexity

    @classmethod
    def read(cls, folder: Path) -> Data:
        raw = (folder / "data.json.gz").read_bytes()
        found = json.loads(gzip.decompress(raw))
        bank = found.pop("bank")
        for part, kind in (("means", np.array), ("ratings", lambda rows: [np.array(r, float) for r in rows])):
            bank[part] = {who: kind(values) for who, values in bank[part].items()}
        questions = {name: Questions(**value) for name, value in found.pop("questions").items()}
        replies = [(prompt, reply) for prompt, reply in found.pop("replies")]
        return cls(hashlib.sha256(raw).hexdigest(), Bank(**bank), questions=questions, replies=replies, **found)

    @cached_property
    def key(self) -> Key:
        """The labels, answers and clusters that results of this data are analysed with."""
        answers = {name: self.questions[name].answers for name in ("open", "dream")}
        return Key.of(self.sha256, self.bank, answers)
