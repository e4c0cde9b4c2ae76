"""Error rate of a transcript: as EchoMind computes it (raw) and after normalisation as Whisper's authors do it.

`wer_raw` compares the texts as they are, split into words as jiwer splits them; its mean over utterances is
EchoMind's number. `wer` compares normalised words and keeps the counts, so that a corpus's rate is a quotient of sums
and nothing is aligned twice. In languages without spaces between words both count characters: the character error rate
(CER), with `"unit": "character"` in the detail. An empty transcript is all deletions (1.0); an empty reference leaves
nothing to divide by and is unscored, and so is a text longer than the cap. No wrapper around a transcript ("Sure, here
is …") is stripped: the words are the model's; `wrapped` flags such a reply, so that its share can be reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from rapidfuzz.distance import Levenshtein

from overtone.languages import is_unspaced
from overtone.metrics import Answered
from overtone.metrics._limits import LIMIT, too_long
from overtone.metrics.normalise import BASIC, units
from overtone.metrics.normalise import NAME as NORMALISER
from overtone.schema import Item, Score
from overtone.scores import MeasureInfo, ScoreInfo

VERSION = 2
NORMALISED_BY = f"norm:{NORMALISER},other={BASIC}|split:space,unspaced=char"
RAW = f"wer_raw|v{VERSION}|norm:none|split:jiwer,unspaced=char|empty:1|{LIMIT}"
NORMALISED = f"wer|v{VERSION}|{NORMALISED_BY}|empty:1|unwrap:no|{LIMIT}"
SCORES = {
    "wer": ScoreInfo(
        "WER, normalised", better="lower", high=None, tasks=("transcribe",), headline=False, table="none",
        needs="alignment", characters=True,
        measures=(
            MeasureInfo("wer", "WER, normalised", "transcribe", 1),
            MeasureInfo(
                "wer_corpus", "WER, corpus", "transcribe", 1, corpus=True, column="WER, corpus", order=4,
                help="All word errors ÷ all reference words, on normalised text",
            ),
        ),
    ),
    "wer_raw": ScoreInfo(
        "WER", better="lower", high=None, tasks=("transcribe",), characters=True,
        measures=(
            MeasureInfo(
                "wer_raw", "WER", "transcribe", 1, headline=True, column="WER", order=3, colours=(0.5, 0.0),
                help="Word error rate: the mean over utterances, on the text as it came", conflict="WER",
            ),
        ),
    ),
}  # fmt: skip

WRAPPER = re.compile(
    r"^\W*(?:sure|certainly|of course|okay|ok|here)\b.{0,60}?\b(?:transcri\w+|text|speech|words?)\b.{0,40}?:"
    r"|^\W*(?:the\s+)?(?:audio|speech|spoken|transcri\w+|text|speaker|person|man|woman|voice)\b[^.:\"'“”]{0,60}?"
    r"(?:\b(?:is|says?|said|reads?|goes|states?|content|text)\b|:)\s*(?::\s*)?[\"'“‘<\[]"
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


def raw_units(text: str, language: str) -> list[str]:
    """The words of unnormalised text, or its characters as jiwer's CER sees them, where words have no spaces."""
    return list(text.strip()) if is_unspaced(language) else raw_words(text)


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
        more: dict[str, int | str] = {"wrapped": int(bool(WRAPPER.search(a.text)))}
        language = a.language
        if is_unspaced(language):
            more["unit"] = "character"
        return [
            _score("wer", NORMALISED, units(reference, language), units(a.text, language), more),
            _score("wer_raw", RAW, raw_units(reference, language), raw_units(a.text, language), more),
        ]


def _score(
    metric: str, signature: str, reference: list[str], transcript: list[str], more: Mapping[str, int | str]
) -> Score:
    if not reference:
        return Score(metric, signature, None, "empty reference")
    if reason := too_long(transcript, reference):
        return Score(metric, signature, None, reason)
    found = align(reference, transcript)
    counts: dict[str, float | int | str | None] = {
        "hits": found.hits,
        "substitutions": found.substitutions,
        "deletions": found.deletions,
        "insertions": found.insertions,
        "reference_words": found.reference_words,
        **more,
    }
    return Score(metric, signature, found.rate, "", counts)


def load() -> WordErrorRate:
    return WordErrorRate()
