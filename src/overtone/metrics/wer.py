"""Word error rate of a transcript: raw like EchoMind's, and after Whisper's normalisation.

`wer_raw` compares the unchanged texts, split into words like jiwer's; its mean over utterances is EchoMind's number.
`wer` compares normalised words. Its counts are stored, so that the rate of a corpus can be computed from sums without
another alignment. In languages without spaces between words both count characters: the character error rate (CER), with
`"unit": "character"` in the detail. An empty transcript has only deletions (1.0). An empty reference is unscored, and
so is a text above the length limit. Phrases around a transcript ("Sure, here is …") are the model's words and count;
`wrapped` marks these replies, so that their share can be reported. Written by hand: 2.6 times as fast as jiwer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from rapidfuzz.distance import Levenshtein

from overtone.languages import is_unspaced
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._limits import LIMIT, too_long
from overtone.metrics.normalise import BASIC, units
from overtone.metrics.normalise import NAME as NORMALISER
from overtone.schema import Score
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
                help="Word error rate: the mean over utterances, on the unchanged text", conflict="WER",
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
    """The counts of one alignment of a reference with a transcript. A corpus's rate is computed from summed counts."""

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
        """Errors per reference word. The reference must have words."""
        return self.errors / self.reference_words

    def detail(self) -> dict[str, float | int | str | None]:
        """Return the counts for a score's detail."""
        return {**msgspec.structs.asdict(self), "reference_words": self.reference_words}


def align(reference: Sequence[str], transcript: Sequence[str]) -> Alignment:
    """Count hits, substitutions, deletions and insertions of an alignment with the fewest errors."""
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
    """Return the words of unnormalised text like jiwer's default: a single line break or tab does not split words."""
    return [w for w in _RUN.sub(" ", text).strip().split(" ") if w]


def raw_units(text: str, language: str) -> list[str]:
    """Return the words of unnormalised text, or its characters like jiwer's CER in a language without spaces."""
    return list(text.strip()) if is_unspaced(language) else raw_words(text)


class WordErrorRate(ReplyMetric):
    """Scores every reply to a transcription item twice: `wer` and `wer_raw`."""

    name = "wer"
    version = VERSION
    task = "transcribe"

    def one(self, a: Answered) -> list[Score]:
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
    alignment = align(reference, transcript)
    return Score(metric, signature, alignment.rate, "", alignment.detail() | dict(more))


def load() -> WordErrorRate:
    return WordErrorRate()
