"""Length and variety of a reply: words, characters, and the share of distinct words and word pairs.

`reply_distinct_1` of one reply is its number of distinct words ÷ its number of words; `reply_distinct_2` is the same
for pairs of neighbouring words. For many replies, a word in several of them counts as one distinct word; the scores'
details hold hashes for this. The share falls as replies are added, so compare only equal numbers of replies. A reply
that is too short is unscored. In languages without spaces between words, `reply_words` is unscored, and distinct
characters are counted.
"""

from __future__ import annotations

import base64
import hashlib

from overtone.languages import is_unspaced, words
from overtone.metrics import Answered, ReplyMetric
from overtone.schema import Score
from overtone.scores import of_replies

VERSION = 2
WORDS = f"reply_words|v{VERSION}|words:letters"
CHARS = f"reply_chars|v{VERSION}|trim:yes"
DISTINCT = tuple(f"reply_distinct_{n}|v{VERSION}|words:letters,unspaced=char|case:lower" for n in (1, 2))
BYTES = 5  # per hash: among a million distinct word pairs, about one shares its hash with another
_LONG = {"scale": "words", "better": "neither", "high": None, "table": "more"}
_VARIED = {"better": "neither", "reduce": "distinct", "table": "more", "instead": "reply_words"}
SCORES = {
    "reply_words": of_replies("Words", unit="words", order=17, **_LONG),
    "reply_chars": of_replies("Characters", unit="characters", order=18, **_LONG),
    "reply_distinct_1": of_replies("Distinct words", order=19, **_VARIED),
    "reply_distinct_2": of_replies("Distinct word pairs", order=20, **_VARIED),
}


class Lengths(ReplyMetric):
    """Scores every reply of a conversation: `reply_words`, `reply_chars`, `reply_distinct_1`, `reply_distinct_2`."""

    name = "lengths"
    version = VERSION

    def one(self, a: Answered) -> list[Score]:
        text, language = a.text, a.language
        units, unspaced = words(text, language), is_unspaced(language)
        return [
            Score("reply_words", WORDS, None, f"text in {language!r} has no spaces between words; see reply_chars")
            if unspaced
            else Score("reply_words", WORDS, float(len(units))),
            Score("reply_chars", CHARS, float(len(text.strip()))),
            *(_distinct(units, n, "characters" if unspaced else "words") for n in (1, 2)),
        ]


def _distinct(units: list[str], n: int, unit: str) -> Score:
    grams = [" ".join(units[i : i + n]) for i in range(len(units) - n + 1)]
    if not grams:
        return Score(f"reply_distinct_{n}", DISTINCT[n - 1], None, f"fewer than {n} {unit}")
    different = sorted({hashlib.blake2b(gram.encode(), digest_size=BYTES).digest() for gram in grams})
    hashes = base64.b64encode(b"".join(different)).decode()
    detail: dict[str, float | int | str | None] = {"different": len(different), "total": len(grams), "hashes": hashes}
    return Score(f"reply_distinct_{n}", DISTINCT[n - 1], len(different) / len(grams), "", detail)


def load() -> Lengths:
    return Lengths()
