"""AIR-Bench's rule for reading a letter: a reply's first character, otherwise its last but one.

AIR-Bench skips replies that have a letter in neither place, so they are unscored here, with the reason. The rule is
reproduced with its quirks; the metric `accuracy` reads the same replies by our own rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.scores import ScoreInfo

VERSION = 1
NAME = f"air_letter|v{VERSION}"
_LETTERS = "ABCD"
SCORES = {  # the benchmark's own table shows it
    "air_letter": ScoreInfo("Letter, AIR-Bench's rule", reduce="share", tasks=("choose",), headline=False, table="none")
}


def letter(reply: str) -> str:
    """Return the letter that AIR-Bench reads, or "". It reads A in "A dog barks" and B in "The answer is B."."""
    text = reply.strip().replace("\n", "")
    if text == "None":
        return ""
    if text[:1] and text[0] in _LETTERS:
        return text[0]
    return text[-2] if len(text) > 1 and text[-2] in _LETTERS else ""


class Letter:
    """Scores every reply to a question of AIR-Bench's foundation part with 1 or 0, or leaves it unscored."""

    name = "air-bench"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "choose"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [[_one(a)] for a in answered]


def _one(a: Answered) -> Score:
    if not a.item.gold:
        return Score("air_letter", NAME, None, "no gold answer")
    answer = letter(a.text)
    if not answer:
        reason = "skipped, as in AIR-Bench: neither the first nor the last but one character is A, B, C or D"
        return Score("air_letter", NAME, None, reason)
    return Score("air_letter", NAME, float(answer == a.item.gold), "", {"answer": answer})


def load() -> Letter:
    return Letter()
