"""How long a reply is, and how varied: words, characters, and the share of its words and word pairs that differ.

`reply_distinct_1` and `_2` of one reply are its different words (pairs of neighbours) ÷ all of them. That of many
replies counts a word that two of them share once: it comes from the hashes in their details. It falls as replies are
added, so compare equal numbers of replies only. A reply too short to have any is unscored. In languages without spaces
between words `reply_words` is unscored, and distinctness is that of characters.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from overtone.languages import DEFAULT, is_unspaced, words
from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 2
WORDS = f"reply_words|v{VERSION}|words:letters"
CHARS = f"reply_chars|v{VERSION}|trim:yes"
DISTINCT = tuple(f"reply_distinct_{n}|v{VERSION}|words:letters,unspaced=char|case:lower" for n in (1, 2))
BYTES = 5  # of a hash: in a million different word pairs, about one shares its hash with another
_LONG = {"scale": "words", "better": "neither", "high": None, "table": "more"}
_VARIED = {"better": "neither", "reduce": "distinct", "table": "more", "instead": "reply_words"}
SCORES = {
    "reply_words": of_replies("Words", unit="words", order=17, **_LONG),
    "reply_chars": of_replies("Characters", unit="characters", order=18, **_LONG),
    "reply_distinct_1": of_replies("Distinct words", order=19, **_VARIED),
    "reply_distinct_2": of_replies("Distinct word pairs", order=20, **_VARIED),
}


class Lengths:
    """Scores every reply of a conversation: `reply_words`, `reply_chars`, `reply_distinct_1`, `reply_distinct_2`."""

    name = "lengths"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [self._one(a.text, a.language) for a in answered]

    def _one(self, text: str, language: str = DEFAULT) -> list[Score]:
        found = words(text, language)
        uncounted = is_unspaced(language)
        return [
            Score("reply_words", WORDS, None, f"text in {language!r} has no spaces between words; see reply_chars")
            if uncounted
            else Score("reply_words", WORDS, float(len(found))),
            Score("reply_chars", CHARS, float(len(text.strip()))),
            *(_distinct(found, n, "characters" if uncounted else "words") for n in (1, 2)),
        ]


def _distinct(found: list[str], n: int, unit: str) -> Score:
    grams = [" ".join(found[i : i + n]) for i in range(len(found) - n + 1)]
    if not grams:
        return Score(f"reply_distinct_{n}", DISTINCT[n - 1], None, f"fewer than {n} {unit}")
    different = sorted({hashlib.blake2b(gram.encode(), digest_size=BYTES).digest() for gram in grams})
    hashes = base64.b64encode(b"".join(different)).decode()
    detail: dict[str, float | int | str | None] = {"different": len(different), "total": len(grams), "hashes": hashes}
    return Score(f"reply_distinct_{n}", DISTINCT[n - 1], len(different) / len(grams), "", detail)


def load() -> Lengths:
    return Lengths()
