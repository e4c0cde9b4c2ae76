"""The study's inputs as the tokens of one language model: rating prompts, digits, questions, plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from overtone.benchmarks.emobank.rating_questions import WHO, asked
from overtone.errors import UsageError
from overtone.rated_sentences import Array
from overtone.studies.perspectives.inputs import Inputs, leads

WINDOW, WINDOWS = 256, 96  # tokens and number of the windows of plain text


class Speaker(Protocol):
    """The part of a language model that turns text into tokens."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. The marks of turns in the text become single ids; no marks are added."""

    def chat(self, asked: str) -> str:
        """Return a user's turn as text that ends where the assistant's reply begins."""


@dataclass(frozen=True)
class Answer:
    """How a tokenizer writes three digits such as "5 3 6": the tokens of "5 5 5", and the positions of the digits."""

    tokens: tuple[int, ...]
    at: tuple[int, ...]  # index of each digit among the tokens
    digits: tuple[tuple[int, ...], ...]  # for each of the three, the tokens of 0 to 9

    @classmethod
    def of(cls, speaker: Speaker) -> Answer:
        """Find the tokens of the digits by writing each digit in each position. Raises UsageError if a digit is not one
        token."""
        before = speaker.chat("?")
        start = len(speaker.encode(before))

        def written(place: int, digit: int) -> list[int]:
            shown = ["5", "5", "5"]
            shown[place] = str(digit)
            return speaker.encode(before + " ".join(shown))[start:]

        plain = written(0, 5)
        at, digits = [], []
        for place in range(3):
            rows = [written(place, digit) for digit in range(10)]
            differing = {i for row in rows for i, (a, b) in enumerate(zip(row, plain, strict=False)) if a != b}
            if {len(row) for row in rows} != {len(plain)} or len(differing) != 1:
                raise UsageError("the model's tokenizer does not write each digit as one token; use another model")
            at.append(differing.pop())
            digits.append(tuple(row[at[-1]] for row in rows))
        return cls(tuple(plain[: at[-1] + 1]), tuple(at), tuple(digits))

    def write(self, digits: Sequence[int]) -> list[int]:
        """Return the tokens of three digits."""
        out = list(self.tokens)
        for index, tokens, digit in zip(self.at, self.digits, digits, strict=True):
            out[index] = tokens[digit]
        return out


@dataclass(frozen=True)
class Questions:
    """Multiple-choice questions as tokens: prompts by condition, the options of each question, and the answer key."""

    prompts: Mapping[str, Sequence[list[int]]]
    options: Sequence[Sequence[list[int]]]
    gold: Sequence[int]
    about: Sequence[Mapping[str, Any]]  # cluster, level, …

    def lengths(self, condition: str) -> list[int]:
        """Return the number of tokens of each question with all its options."""
        return [
            len(p) + sum(map(len, options)) for p, options in zip(self.prompts[condition], self.options, strict=True)
        ]

    @property
    def most(self) -> int:
        """The largest number of options."""
        return max(map(len, self.options))


@dataclass(frozen=True)
class Tokens:
    """Everything that a model learns from or is asked about, as the model's tokens."""

    prompts: Mapping[str, Sequence[list[int]]]  # reader, writer, merged → the prompt of each sentence
    answer: Answer
    questions: Mapping[str, Questions]  # open, dream, dream-train; those that the inputs have
    windows: Sequence[list[int]]  # of plain text, for the perplexity

    def lengths(self, rows: Sequence[int] | Array) -> list[int]:
        """Return the number of tokens of each sentence's rating under its longest prompt, which is the same for all
        arms."""
        size = len(self.answer.tokens)
        return [max(len(prompts[i]) for prompts in self.prompts.values()) + size for i in rows]


def tokenise(inputs: Inputs, speaker: Speaker) -> Tokens:
    """Return the inputs as tokens. Raises UsageError if the tokenizer cannot write digits."""

    def chat(turn: str) -> list[int]:
        return speaker.encode(speaker.chat(turn))

    return Tokens(
        {who: [chat(asked(who, text)) for text in inputs.bank.texts] for who in WHO},
        Answer.of(speaker),
        {name: _questions(rows, name, chat, speaker) for name, rows in inputs.questions.items()},
        _windows(speaker.encode("\n\n".join(inputs.plain))) if inputs.plain else [],
    )


def _questions(rows: Sequence[Mapping[str, Any]], name: str, chat: Any, speaker: Speaker) -> Questions:
    prompts: dict[str, list[list[int]]] = {}
    for row in rows:
        for condition, lead in leads(row, name).items():
            prompts.setdefault(condition, []).append(chat(f"{lead}Question: {row['question']}"))
    options = [[speaker.encode(option) for option in row["options"]] for row in rows]
    return Questions(prompts, options, [row["gold"] for row in rows], [row["about"] for row in rows])


def _windows(ids: list[int]) -> list[list[int]]:
    most = min(WINDOWS, len(ids) // WINDOW)
    return [ids[i * WINDOW : (i + 1) * WINDOW] for i in range(most)] or [ids]
