"""METEOR of a reply like NLTK's: words are matched exactly, by stem, then by WordNet synonym, with a penalty for order.

Text is lower-cased and split at spaces like EchoMind's (punctuation stays on its word). Without a working WordNet,
replies are unscored, with the command that installs it, because matching without synonyms is a different metric. Stems
and synonyms are English, so an item in another language is unscored. An empty reply scores 0; an item without a
reference is unscored, and so is a text above the length limit. Written by hand for parity without installing NLTK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from overtone.embedded.wordnet import WordNet, wordnet
from overtone.errors import DataError, MissingExtra
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._limits import LIMIT, english_only, too_long
from overtone.metrics._porter import NAME as STEMMER
from overtone.metrics._porter import stem
from overtone.schema import Score
from overtone.scores import of_replies

VERSION = 2
ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5
NAME = (
    f"meteor|v{VERSION}|alpha:{ALPHA}|beta:{BETA:g}|gamma:{GAMMA}|split:space|case:lower|stem:{STEMMER}|lang:en|{LIMIT}"
)
WORDNET = "METEOR's WordNet"
SCORES = {"meteor": of_replies("METEOR", order=13, finding=True)}

Words = list[tuple[int, str]]  # (index in the text, word)


class Alignment(Struct, frozen=True):
    """The number of matched words, and of chunks: runs of matches in the same order in both texts."""

    matches: int
    chunks: int
    reply: int
    reference: int

    @property
    def value(self) -> float:
        if not self.matches:
            return 0.0
        precision, recall = self.matches / self.reply, self.matches / self.reference
        mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
        return float((1 - GAMMA * (self.chunks / self.matches) ** BETA) * mean)


def align(reply: Sequence[str], reference: Sequence[str], synonyms: Callable[[str], Iterable[str]]) -> Alignment:
    """Match the words of both texts. Words are taken from the last to the first, each with the last free word of the
    reference.

    As in NLTK, synonyms are looked up and compared by the stems of the remaining words.
    """
    ours, theirs = list(enumerate(reply)), list(enumerate(reference))
    pairs = _match(ours, theirs, lambda word: (word,))
    ours, theirs = ([(i, stem(word)) for i, word in left] for left in (ours, theirs))
    pairs += _match(ours, theirs, lambda word: (word,))
    pairs += _match(ours, theirs, synonyms)
    pairs.sort()
    joined = sum(b[0] == a[0] + 1 and b[1] == a[1] + 1 for a, b in pairwise(pairs))
    return Alignment(len(pairs), len(pairs) - joined, len(reply), len(reference))


def _match(ours: Words, theirs: Words, names: Callable[[str], Iterable[str]]) -> list[tuple[int, int]]:
    """Match words, and remove the matched ones from both lists."""
    free: dict[str, list[int]] = {}
    for at, word in theirs:
        free.setdefault(word, []).append(at)
    pairs: list[tuple[int, int]] = []
    if free:
        for at, word in reversed(ours):
            places = [free[name] for name in names(word) if free.get(name)]
            if places:
                pairs.append((at, max(places, key=lambda indices: indices[-1]).pop()))
    taken, given = {a for a, _ in pairs}, {b for _, b in pairs}
    ours[:] = [pair for pair in ours if pair[0] not in taken]
    theirs[:] = [pair for pair in theirs if pair[0] not in given]
    return pairs


class Meteor(ReplyMetric):
    """Scores every reply of a conversation: `meteor`."""

    name = "meteor"
    version = VERSION

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        try:
            words = wordnet()
            signature = f"{NAME}|wordnet:{words.identity}"
            return [[_score(a, signature, words)] for a in answered]
        except (MissingExtra, DataError) as problem:
            absent = f"{NAME}|wordnet:missing"
            reasons = [english_only(WORDNET, a.language) or str(problem) for a in answered]
            return [[Score("meteor", absent, None, reason)] for reason in reasons]


def _score(a: Answered, signature: str, words: WordNet) -> Score:
    reference = a.reference.lower().split()
    if not reference:
        return Score("meteor", signature, None, "no reference")
    reply = a.text.lower().split()
    if reason := english_only(WORDNET, a.language) or too_long(reply, reference):
        return Score("meteor", signature, None, reason)
    alignment = align(reply, reference, words.synonyms)
    detail = {
        "matches": alignment.matches,
        "chunks": alignment.chunks,
        "reply_words": alignment.reply,
        "reference_words": alignment.reference,
    }
    return Score("meteor", signature, alignment.value, "", {**detail})


def load() -> Meteor:
    return Meteor()
