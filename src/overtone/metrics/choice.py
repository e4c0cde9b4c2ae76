"""Accuracy on multiple-choice questions, read leniently (the headline) and strictly, side by side.

An answered question is right or wrong: a reply that hedges, refuses, leaves the menu or cannot be read is the model's
failure and scores 0, with its status kept. Only a question without a right answer is unscored.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.tasks.extract import LENIENT, STRICT, Extracted, lenient, strict

VERSION = 1
SIGNATURE = f"accuracy|v{VERSION}|extract:{LENIENT}"
SIGNATURE_STRICT = f"accuracy_strict|v{VERSION}|extract:{STRICT}"


class Accuracy:
    """Scores every reply to a multiple-choice item twice: `accuracy` and `accuracy_strict`."""

    name = "choice"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "choose"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [
            [
                _score(a, "accuracy", SIGNATURE, lenient(a.text, a.item.options)),
                _score(a, "accuracy_strict", SIGNATURE_STRICT, strict(a.text, a.item.options)),
            ]
            for a in answered
        ]


def _score(a: Answered, metric: str, signature: str, read: Extracted) -> Score:
    if not a.item.gold:
        return Score(metric, signature, None, "no gold answer")
    if a.refused:  # the endpoint's own word outranks ours
        read = Extracted(None, "refused", "marked by the endpoint")
    chosen = next((o for o in a.item.options if o.letter == read.letter), None)
    detail: dict[str, float | int | str | None] = {
        "answer": read.letter,
        "status": read.status,
        "rule": read.rule,
        "gold": a.item.gold,
        "options": len(a.item.options),
        "provenance": chosen.provenance if chosen else "",
    }
    return Score(metric, signature, float(read.letter == a.item.gold), "", detail)


def load() -> Accuracy:
    return Accuracy()
