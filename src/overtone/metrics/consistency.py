"""Whether a reply's voice says its text: word error rate between the text and a transcript of the audio.

The text is the reference, the embedded recogniser's transcript the hypothesis, both normalised; 0 is word for word, and
lower is better. The recogniser makes errors of its own on perfect speech, so compare models, not one model with 0.
Counts are kept, so that a corpus's rate is a quotient of sums. Audio without a word has 1. A reply without audio, or
without text to compare it with, is unscored; so is everything where the recogniser is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import OvertoneError
from overtone.metrics import Answered
from overtone.metrics.normalise import NAME as NORMALISER
from overtone.metrics.normalise import english
from overtone.metrics.wer import align
from overtone.schema import Item, Score

VERSION = 1
ON_REQUEST = True  # it recognises the speech of every reply
NAME = f"consistency_wer|v{VERSION}|norm:{NORMALISER}|split:space|empty:1"


class Consistency:
    """Scores the audio of replies to conversation items against their text: `consistency_wer`."""

    name = "consistency"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        from overtone.embedded import present
        from overtone.embedded.recogniser import identity

        signature = f"{NAME}|recogniser:{identity() if present('moonshine_voice') else 'missing'}"
        return [[_score(a, signature)] for a in answered]


def _score(a: Answered, signature: str) -> Score:
    from overtone.embedded.recogniser import transcribe

    try:
        samples, rate = a.sound()
        words = english(a.text).split()
        if not words:
            return Score("consistency_wer", signature, None, "the reply has no words")
        heard = transcribe(samples, rate)
    except OvertoneError as error:  # no sound, or no recogniser: one reply's reason, never the end of the others
        return Score("consistency_wer", signature, None, str(error))
    found = align(words, english(heard).split())
    detail: dict[str, float | int | str | None] = {
        "hits": found.hits,
        "substitutions": found.substitutions,
        "deletions": found.deletions,
        "insertions": found.insertions,
        "reference_words": found.reference_words,
        "transcript": heard,
    }
    return Score("consistency_wer", signature, found.rate, "", detail)


def load() -> Consistency:
    return Consistency()
