"""Accuracy on multiple-choice questions, read leniently (the headline) and strictly, side by side.

An answered question is right or wrong: a reply that hedges, refuses, leaves the menu or cannot be read is the model's
failure and scores 0, with its status kept. Only a question without a right answer is unscored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

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


class Asked(Struct, frozen=True):
    """One question as asked: its task, how many options it had, and what became of it (`status` "" when missing)."""

    question: str
    task: str
    options: int
    right: bool = False
    status: str = ""  # parsed, hedged, refused, …; "" when no reply came

    @property
    def answered(self) -> bool:
        return bool(self.status)


class Summary(Struct, frozen=True):
    """Accuracy said in every way one is asked for it. None where its denominator is empty."""

    n_asked: int
    n_answered: int
    n_missing: int
    n_parsed: int
    n_right: int
    accuracy: float | None  # right ÷ answered: the headline
    of_parsed: float | None  # right ÷ parsed
    chance: float | None  # mean of 1 ÷ options over the asked
    corrected: float | None  # (accuracy − chance) ÷ (1 − chance)
    over_questions: float | None  # mean of each question's own mean
    over_tasks: float | None  # mean of each task's own accuracy
    extraction_failures: float | None  # answered but not parsed ÷ answered
    worst: float | None  # all missing replies wrong
    best: float | None  # all missing replies right


def summarise_accuracy(rows: Iterable[Asked]) -> Summary:
    """Sum up questions as asked, missing replies included. Only the missing move the bounds: a bad reply is wrong."""
    asked = list(rows)
    answered = [r for r in asked if r.answered]
    parsed = sum(r.status == "parsed" for r in answered)
    right = sum(r.right for r in answered)
    missing = len(asked) - len(answered)
    accuracy = _ratio(right, len(answered))
    chance = _ratio(sum(1 / r.options for r in asked), len(asked))
    corrected = None
    if accuracy is not None and chance is not None and chance < 1:
        corrected = (accuracy - chance) / (1 - chance)
    return Summary(
        n_asked=len(asked),
        n_answered=len(answered),
        n_missing=missing,
        n_parsed=parsed,
        n_right=right,
        accuracy=accuracy,
        of_parsed=_ratio(right, parsed),
        chance=chance,
        corrected=corrected,
        over_questions=_mean_of_means((r.question, r.right) for r in answered),
        over_tasks=_mean_of_means((r.task, r.right) for r in answered),
        extraction_failures=_ratio(len(answered) - parsed, len(answered)),
        worst=_ratio(right, len(asked)),
        best=_ratio(right + missing, len(asked)),
    )


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _mean_of_means(pairs: Iterable[tuple[str, bool]]) -> float | None:
    groups: dict[str, list[bool]] = defaultdict(list)
    for name, right in pairs:
        groups[name].append(right)
    return _ratio(sum(sum(g) / len(g) for g in groups.values()), len(groups))
