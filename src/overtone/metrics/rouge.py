"""ROUGE-L of a reply: how much of it and of its reference is one common sequence of words, as rouge_score counts it.

`rouge_l` compares words as they are; EchoMind does not say whether it stems them, so this is rouge_score's own default.
`rouge_l_stemmed` compares stems. English words are runs of a-z and 0-9 in lower case. In other languages words are what
stands between spaces and marks, in languages without spaces the characters; there are no stems, so `rouge_l_stemmed` is
unscored. A reply without words has 0; an item without a reference is unscored, and so is a text longer than the cap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

from overtone.languages import DEFAULT
from overtone.metrics import Answered
from overtone.metrics._limits import LIMIT, english_only, too_long
from overtone.metrics._porter import NAME as STEMMER
from overtone.metrics._porter import stem
from overtone.metrics.normalise import plain_units
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 2
PLAIN = f"rouge_l|v{VERSION}|f1|tok:a-z0-9,other=letters,unspaced=char|stem:no|like:rouge_score-0.1.2|{LIMIT}"
STEMMED = f"rouge_l_stemmed|v{VERSION}|f1|tok:a-z0-9|stem:{STEMMER}|lang:en|like:rouge_score-0.1.2|{LIMIT}"
SCORES = {
    "rouge_l": of_replies("ROUGE-L", order=12, characters=True, finding=True),
    "rouge_l_stemmed": of_replies("ROUGE-L, stems", table="more", order=16),
}

_WORD = re.compile(r"[a-z0-9]+")


def words(text: str, language: str = DEFAULT) -> list[str]:
    """The words rouge_score sees, or what stands for them in another language."""
    return _WORD.findall(text.lower()) if language == DEFAULT else plain_units(text, language)


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
        language = a.language
        reply, reference = words(a.text, language), words(a.reference, language)
        if reason := too_long(reply, reference):
            return [Score("rouge_l", PLAIN, None, reason), Score("rouge_l_stemmed", STEMMED, None, reason)]
        if reason := english_only("the stemmer", language):
            return [_score("rouge_l", PLAIN, reply, reference), Score("rouge_l_stemmed", STEMMED, None, reason)]
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
