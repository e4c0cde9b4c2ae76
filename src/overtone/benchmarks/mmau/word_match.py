"""MMAU's rule for reading an answer: a reply is right if it has every word of the right choice, and none that occurs
only in wrong choices. The rule is reproduced with all its quirks, to be comparable with published numbers. The metric
`accuracy` reads the same replies by our own rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.scores import ScoreInfo

VERSION = 1
NAME = f"mmau_match|v{VERSION}"
SCORES = {  # the benchmark's own table shows it
    "mmau_match": ScoreInfo("Match, MMAU's rule", reduce="share", tasks=("choose",), headline=False, table="none")
}
_WORD = re.compile(r"\b\w+\b")


def tokens(text: str) -> set[str]:
    """Return the words in lower case. A letter before an option (`B.`) is a word too."""
    return set(_WORD.findall(text.lower()))


def judged(answer: str, prediction: str, choices: Iterable[str]) -> tuple[bool, set[str], set[str]]:
    """Return whether the prediction matches the answer, the answer's words that it lacks, and its words from wrong
    choices."""
    words_said, right = tokens(prediction), tokens(answer)
    wrong: set[str] = set()
    for choice in choices:
        words = tokens(choice)
        if words != right:  # a choice with the same words in another order is right too
            wrong |= words - right
    lacks, foreign = right - words_said, words_said & wrong
    return bool(words_said) and not lacks and not foreign, lacks, foreign


class Match:
    """Scores every reply to a question of MMAU with 1 or 0. An empty reply scores 0; a missing one has no score."""

    name = "mmau"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return True

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [[_one(a)] for a in answered]


def _one(a: Answered) -> Score:
    if not a.reference:
        return Score("mmau_match", NAME, None, "the answer is hidden")
    right, lacks, foreign = judged(a.reference, a.text, [option.text for option in a.item.options])
    detail: dict[str, float | int | str | None] = {
        "lacks": " ".join(sorted(lacks)),
        "foreign": " ".join(sorted(foreign)),
    }
    return Score("mmau_match", NAME, float(right), "", detail)


def load() -> Match:
    return Match()
