"""ROUGE-L of a reply: how much of it and of its reference is one common sequence of words, as rouge_score counts it.

`rouge_l` compares words as they are; EchoMind does not say whether it stems them, so this is rouge_score's own default.
`rouge_l_stemmed` compares stems. Words are runs of a-z and 0-9 in lower case: text in other scripts has none. A reply
without words has 0; an item without a reference is unscored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

from overtone.metrics import Answered
from overtone.metrics._porter import NAME as STEMMER
from overtone.metrics._porter import stem
from overtone.schema import Item, Score

VERSION = 1
PLAIN = f"rouge_l|v{VERSION}|f1|tok:a-z0-9|stem:no|like:rouge_score-0.1.2"
STEMMED = f"rouge_l_stemmed|v{VERSION}|f1|tok:a-z0-9|stem:{STEMMER}|like:rouge_score-0.1.2"

_WORD = re.compile(r"[a-z0-9]+")


def words(text: str) -> list[str]:
    """The words rouge_score sees."""
    return _WORD.findall(text.lower())


def stems(found: Sequence[str]) -> list[str]:
    """Their stems; words of three letters or fewer stay as they are."""
    return [stem(word) if len(word) > 3 else word for word in found]


def common(reply: Sequence[str], reference: Sequence[str]) -> int:
    """The length of the longest sequence of words that both have in order."""
    ids: dict[str, int] = {}
    first = [ids.setdefault(word, len(ids)) for word in reply]
    return LCSseq.similarity(first, [ids.setdefault(word, len(ids)) for word in reference])


class RougeL:
    """Scores every reply of a conversation twice: `rouge_l` and `rouge_l_stemmed`."""

    name = "rouge"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [self._one(a) for a in answered]

    def _one(self, a: Answered) -> list[Score]:
        if not a.reference.strip():
            both = (("rouge_l", PLAIN), ("rouge_l_stemmed", STEMMED))
            return [Score(name, signature, None, "no reference") for name, signature in both]
        reply, reference = words(a.text), words(a.reference)
        return [
            _score("rouge_l", PLAIN, reply, reference),
            _score("rouge_l_stemmed", STEMMED, stems(reply), stems(reference)),
        ]


def _score(metric: str, signature: str, reply: list[str], reference: list[str]) -> Score:
    shared = common(reply, reference)
    value = 2 * shared / (len(reply) + len(reference)) if shared else 0.0
    detail = {"common": shared, "reply_words": len(reply), "reference_words": len(reference)}
    return Score(metric, signature, value, "", {**detail})


def load() -> RougeL:
    return RougeL()
