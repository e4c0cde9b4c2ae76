"""BLEU of a reply against its reference: EchoMind's mean of sentence scores, and sacreBLEU's corpus score.

`bleu` is NLTK's sentence BLEU-4 (uniform weights, smoothing method 1) of lower-cased text; its mean over replies is
EchoMind's number. `bleu_corpus` is sacreBLEU's score (13a tokens, case kept, exponential smoothing). For many replies
it is not a mean, but computed from the sums of the counts in their details; for one reply it is the score of a corpus
with this reply only. Both are between 0 and 1. An empty reply scores 0; an item without a reference is unscored. In
languages other than English, both use 13a tokens; in languages without spaces between words, both use characters, like
sacreBLEU's `char`. Written by hand for exact parity with both libraries without installing them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from overtone.languages import DEFAULT, is_unspaced
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._treebank import NAME as TOKENS
from overtone.metrics._treebank import words
from overtone.schema import Score
from overtone.scores import of_replies
from overtone.stats.corpus_sums import bleu, brevity

VERSION = 2
SENTENCE = f"bleu|v{VERSION}|n:4|smooth:method1|tok:{TOKENS},other=13a,unspaced=char|case:lower|empty:0"
CORPUS = f"bleu_corpus|v{VERSION}|n:4|smooth:exp|tok:13a,unspaced=char|case:mixed|eff:no|like:sacrebleu-2.6"
ORDERS = 4
EPSILON = 0.1  # smoothing method 1: the count if no n-gram matches
SCORES = {
    "bleu": of_replies("BLEU-4", order=11, characters=True, finding=True),
    "bleu_corpus": of_replies("BLEU-4, corpus", reduce="bleu", table="more", order=15, characters=True, instead="bleu"),
}

_SYMBOLS = re.compile(r"([!-&(-+:-@/\[-`{-~])")
_MARK_AFTER = re.compile(r"([^0-9])([.,])")
_MARK_BEFORE = re.compile(r"([.,])([^0-9])")
_DASH = re.compile(r"([0-9])(-)")


class Counts(Struct, frozen=True):
    """Counts of a reply's tokens and n-grams: all n-grams, and those that are also in its reference. Counts of several
    replies can be added."""

    reply: int
    reference: int
    correct: tuple[int, int, int, int]
    total: tuple[int, int, int, int]

    def detail(self) -> dict[str, float | int | str | None]:
        detail: dict[str, float | int | str | None] = {"reply_tokens": self.reply, "reference_tokens": self.reference}
        detail |= {f"correct_{n}": c for n, c in enumerate(self.correct, 1)}
        return detail | {f"total_{n}": t for n, t in enumerate(self.total, 1)}


def count(reply: Sequence[str], reference: Sequence[str]) -> Counts:
    """Count a reply's n-grams, and how many are in the reference (each at most as often as the reference has it)."""
    correct = [0, 0, 0, 0]
    for n in range(1, ORDERS + 1):
        left = Counter(zip(*(reference[i:] for i in range(n)), strict=False))
        for gram in zip(*(reply[i:] for i in range(n)), strict=False):
            if left.get(gram):
                left[gram] -= 1
                correct[n - 1] += 1
        if not correct[n - 1]:
            break  # longer ones cannot match either
    total = [max(0, len(reply) - n) for n in range(ORDERS)]
    return Counts(len(reply), len(reference), (*correct,), (*total,))  # type: ignore[arg-type]


def sentence_bleu(counts: Counts) -> float:
    """Compute NLTK's sentence_bleu with smoothing method 1."""
    if not counts.correct[0]:
        return 0.0
    logs = [math.log((c or EPSILON) / max(t, 1)) for c, t in zip(counts.correct, counts.total, strict=True)]
    return brevity(counts.reply, counts.reference) * math.exp(math.fsum(logs) / ORDERS)


def tokens_13a(text: str) -> list[str]:
    """Return the tokens of mteval-v13a, sacreBLEU's default."""
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, plain in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
            text = text.replace(entity, plain)
    text = _SYMBOLS.sub(r" \1 ", f" {text} ")
    text = _MARK_BEFORE.sub(r" \1 \2", _MARK_AFTER.sub(r"\1 \2 ", text))
    return _DASH.sub(r"\1 \2 ", text).split()


def tokens(text: str, language: str) -> list[str]:
    """Return the tokens for `bleu_corpus`: 13a tokens, or characters in a language without spaces between words."""
    return list("".join(text.split())) if is_unspaced(language) else tokens_13a(text)


class Bleu(ReplyMetric):
    """Scores every reply of a conversation twice: `bleu` and `bleu_corpus`."""

    name = "bleu"
    version = VERSION

    def one(self, a: Answered) -> list[Score]:
        if not a.reference.strip():
            return [Score(name, s, None, "no reference") for name, s in (("bleu", SENTENCE), ("bleu_corpus", CORPUS))]
        language = a.language
        lower = [text.lower() for text in (a.text, a.reference)]
        one = count(*(words(text) if language == DEFAULT else tokens(text, language) for text in lower))
        many = count(*(tokens(text, language) for text in (a.text, a.reference)))
        alone = bleu(many.reply, many.reference, many.correct, many.total)
        return [
            Score("bleu", SENTENCE, sentence_bleu(one), "", one.detail()),
            Score("bleu_corpus", CORPUS, alone, "", many.detail()),
        ]


def load() -> Bleu:
    return Bleu()
