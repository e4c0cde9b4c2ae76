"""Word error rate of a transcript: as EchoMind computes it (raw) and after Whisper's English normalisation.

`wer_raw` compares the texts as they are, split into words as jiwer splits them; its mean over utterances is
EchoMind's number. `wer` compares normalised words and keeps the counts, so that a corpus's rate is a quotient of sums
and nothing is aligned twice. An empty transcript is all deletions (1.0); an empty reference leaves nothing to divide
by and is unscored. No wrapper around a transcript ("Sure, here is …") is stripped: the words are the model's; `wrapped`
flags such a reply, so that its share can be reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from rapidfuzz.distance import Levenshtein

from overtone.metrics import Answered
from overtone.metrics.normalise import NAME as NORMALISER
from overtone.metrics.normalise import english
from overtone.schema import Item, Score

VERSION = 1
RAW = f"wer_raw|v{VERSION}|norm:none|split:jiwer|empty:1"
NORMALISED = f"wer|v{VERSION}|norm:{NORMALISER}|split:space|empty:1|unwrap:no"

WRAPPER = re.compile(
    r"^\W*(?:sure|certainly|of course|okay|ok|here)\b.{0,60}?\b(?:transcri\w+|text|speech|words?)\b.{0,40}?:"
    r"|^\W*(?:the\s+)?(?:audio|speech|spoken|transcri\w+|text|speaker|person|man|woman|voice)\b[^.:\"'“”]{0,60}?"
    r"(?:\b(?:is|says?|said|reads?|goes|states?|content|text)\b|:)\s*:?\s*[\"'“‘<\[]"
    r"|^\W*transcri(?:pt|ption)\w*\s*:"
    r"|^\s*[\"“'‘«].*[\"”'’»]\s*$",
    re.I | re.S,
)
_RUN = re.compile(r"\s\s+")


class Alignment(Struct, frozen=True):
    """The counts of one alignment of a reference's words with a transcript's; sums of these make a corpus's rate."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int

    @property
    def reference_words(self) -> int:
        return self.hits + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Errors per reference word. Defined only where the reference has words."""
        return self.errors / self.reference_words


def align(reference: Sequence[str], transcript: Sequence[str]) -> Alignment:
    """Count what a cheapest alignment of the two word sequences keeps, replaces, drops and adds."""
    if reference == transcript:
        return Alignment(len(reference), 0, 0, 0)
    ids: dict[str, int] = {}
    first = [ids.setdefault(w, len(ids)) for w in reference]
    second = [ids.setdefault(w, len(ids)) for w in transcript]
    substitutions = deletions = insertions = 0
    for tag, _, _ in Levenshtein.editops(first, second).as_list():
        if tag == "replace":
            substitutions += 1
        elif tag == "delete":
            deletions += 1
        else:
            insertions += 1
    return Alignment(len(reference) - substitutions - deletions, substitutions, deletions, insertions)


def raw_words(text: str) -> list[str]:
    """The words of unnormalised text as jiwer's default sees them: a lone line break or tab does not part two words."""
    return [w for w in _RUN.sub(" ", text).strip().split(" ") if w]


class WordErrorRate:
    """Scores every reply to a transcription item twice: `wer` and `wer_raw`."""

    name = "wer"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "transcribe"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [self._one(a) for a in answered]

    def _one(self, a: Answered) -> list[Score]:
        reference = a.item.references[0] if a.item.references else ""
        wrapped = int(bool(WRAPPER.search(a.text)))
        return [
            _score("wer", NORMALISED, english(reference).split(), english(a.text).split(), wrapped),
            _score("wer_raw", RAW, raw_words(reference), raw_words(a.text), wrapped),
        ]


def _score(metric: str, signature: str, reference: list[str], transcript: list[str], wrapped: int) -> Score:
    if not reference:
        return Score(metric, signature, None, "empty reference")
    found = align(reference, transcript)
    counts: dict[str, float | int | str | None] = {
        "hits": found.hits,
        "substitutions": found.substitutions,
        "deletions": found.deletions,
        "insertions": found.insertions,
        "reference_words": found.reference_words,
        "wrapped": wrapped,
    }
    return Score(metric, signature, found.rate, "", counts)


def load() -> WordErrorRate:
    return WordErrorRate()
