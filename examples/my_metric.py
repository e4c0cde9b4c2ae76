"""How often a conversation's reply apologises: `apologies`, a count per reply."""

from __future__ import annotations

import re
from collections.abc import Sequence

from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.scores import ScoreInfo

ROOM = "metrics"
SCORES = {"apologies": ScoreInfo("Apologies", "words", "lower", low=0, high=None, tasks=("converse",))}
VERSION = 1  # raise it with any change that can move a value
SIGNATURE = f"apologies|v{VERSION}|lang:en"
APOLOGY = re.compile(r"\b(sorry|apologi[sz]e|apolog(y|ies)|forgive me|pardon me)\b", re.I)


class Apologies:
    """Reads the text alone, so it can be computed again from any stored run."""

    name = "apologies"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [[self._one(a)] for a in answered]

    def _one(self, a: Answered) -> Score:
        if a.refused:
            return Score("apologies", SIGNATURE, None, "refused by the endpoint")
        if not a.text.strip():
            return Score("apologies", SIGNATURE, None, "empty reply")
        found = len(APOLOGY.findall(a.text))
        return Score("apologies", SIGNATURE, float(found), "", {"words": len(a.text.split())})


def load() -> Apologies:
    return Apologies()
