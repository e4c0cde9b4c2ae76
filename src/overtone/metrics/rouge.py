"""ROUGE-L of a reply like rouge_score's: F1 of the longest common subsequence of words with the reference.

`rouge_l` compares words without stemming, rouge_score's default, because EchoMind does not say whether it uses stems.
`rouge_l_stemmed` compares stems. English words are runs of a-z and 0-9 in lower case. In other languages text is split
at spaces and punctuation, or into characters if the language has no spaces; `rouge_l_stemmed` is then unscored. A reply
without words scores 0; an item without a reference is unscored, and so is a text above the length limit. Written by
hand for exact parity without installing rouge_score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

from overtone.languages import DEFAULT
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._limits import LIMIT, english_only, too_long
from overtone.metrics._porter import NAME as STEMMER
from overtone.metrics._porter import stem
from overtone.metrics.normalise import plain_units
from overtone.schema import Score
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
    """Return the words that rouge_score finds in English; for another language, its words or characters."""
    return _WORD.findall(text.lower()) if language == DEFAULT else plain_units(text, language)


def stems(tokens: Sequence[str]) -> list[str]:
    """Return the stems of words; words of at most three letters do not change."""
    return [stem(word) if len(word) > 3 else word for word in tokens]


def common(reply: Sequence[str], reference: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of words."""
    ids: dict[str, int] = {}
    first = [ids.setdefault(word, len(ids)) for word in reply]
    return LCSseq.similarity(first, [ids.setdefault(word, len(ids)) for word in reference])


class RougeL(ReplyMetric):
    """Scores every reply of a conversation twice: `rouge_l` and `rouge_l_stemmed`."""

    name = "rouge"
    version = VERSION

    def one(self, a: Answered) -> list[Score]:
        language = a.language
        reply, reference = words(a.text, language), words(a.reference, language)
        if reason := too_long(reply, reference) if a.reference.strip() else "no reference":
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
