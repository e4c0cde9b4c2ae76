"""How long a reply is, and how varied: words, characters, and the share of its words and word pairs that differ.

`reply_distinct_1` and `_2` of one reply are its different words (pairs of neighbours) ÷ all of them. That of many
replies counts a word that two of them share once: it comes from the hashes in their details. It falls as replies are
added, so compare equal numbers of replies only. A reply too short to have any is unscored.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from overtone.metrics import Answered
from overtone.schema import Item, Score

VERSION = 1
WORDS = f"reply_words|v{VERSION}|words:letters"
CHARS = f"reply_chars|v{VERSION}|trim:yes"
DISTINCT = tuple(f"reply_distinct_{n}|v{VERSION}|words:letters|case:lower" for n in (1, 2))
BYTES = 5  # of a hash: in a million different word pairs, about one shares its hash with another

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def words(text: str) -> list[str]:
    """Runs of letters and digits, in lower case; an apostrophe or hyphen inside a word belongs to it."""
    return _WORD.findall(text.lower())


class Lengths:
    """Scores every reply of a conversation: `reply_words`, `reply_chars`, `reply_distinct_1`, `reply_distinct_2`."""

    name = "lengths"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [self._one(a.text) for a in answered]

    def _one(self, text: str) -> list[Score]:
        found = words(text)
        return [
            Score("reply_words", WORDS, float(len(found))),
            Score("reply_chars", CHARS, float(len(text.strip()))),
            *(_distinct(found, n) for n in (1, 2)),
        ]


def _distinct(found: list[str], n: int) -> Score:
    grams = [" ".join(found[i : i + n]) for i in range(len(found) - n + 1)]
    if not grams:
        return Score(f"reply_distinct_{n}", DISTINCT[n - 1], None, f"fewer than {n} words")
    different = sorted({hashlib.blake2b(gram.encode(), digest_size=BYTES).digest() for gram in grams})
    hashes = base64.b64encode(b"".join(different)).decode()
    detail: dict[str, float | int | str | None] = {"different": len(different), "total": len(grams), "hashes": hashes}
    return Score(f"reply_distinct_{n}", DISTINCT[n - 1], len(different) / len(grams), "", detail)


def load() -> Lengths:
    return Lengths()
