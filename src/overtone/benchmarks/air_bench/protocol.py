"""AIR-Bench's own reading of a letter: a reply's first character, else its last but one. What fits neither is passed
over there, so it has no score here, with the reason. Reproduced with its quirks; `accuracy` reads the same replies.
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
    """The letter AIR-Bench sees, "" where it sees none: "A dog barks" is an A, "The answer is B." is a B."""
    said = reply.strip().replace("\n", "")
    if said == "None":
        return ""
    if said[:1] and said[0] in _LETTERS:
        return said[0]
    return said[-2] if len(said) > 1 and said[-2] in _LETTERS else ""


class Letter:
    """Scores every reply to a question of AIR-Bench's foundation part: 1, 0, or nothing."""

    name = "air-bench"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "choose"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [[_one(a)] for a in answered]


def _one(a: Answered) -> Score:
    if not a.item.gold:
        return Score("air_letter", NAME, None, "no gold answer")
    seen = letter(a.text)
    if not seen:
        why = "passed over, as AIR-Bench does: neither the first nor the last but one character is A, B, C or D"
        return Score("air_letter", NAME, None, why)
    return Score("air_letter", NAME, float(seen == a.item.gold), "", {"answer": seen})


def load() -> Letter:
    return Letter()
