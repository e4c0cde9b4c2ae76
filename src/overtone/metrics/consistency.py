"""Whether a reply's voice says its text: word error rate between the text and a transcript of the audio.

The text is the reference, the embedded recogniser's transcript the hypothesis, both normalised; 0 is word for word, and
lower is better. The recogniser makes errors of its own on perfect speech, so compare models, not one model with 0.
Counts are kept, so that a corpus's rate is a quotient of sums. Audio without a word has 1. A reply without audio, or
without text to compare it with, is unscored; so is everything where the recogniser is not installed, and a text longer
than the cap. In languages without spaces between words it is the character error rate. The option
`recogniser=FOLDER_OR_ID` takes a Whisper in the measuring environment, which hears other languages too.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import OvertoneError
from overtone.languages import DEFAULT
from overtone.metrics import Answered
from overtone.metrics._limits import LIMIT, too_long
from overtone.metrics._recogniser import Recogniser, recogniser_of
from overtone.metrics.normalise import units
from overtone.metrics.wer import NORMALISED_BY, align
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 2
ON_REQUEST = True  # it recognises the speech of every reply
NAME = f"consistency_wer|v{VERSION}|{NORMALISED_BY}|empty:1|{LIMIT}"
SCORES = {
    "consistency_wer": of_replies(
        "Voice against text, WER", better="lower", high=None, reduce="errors", table="delivery",
        short="Voice against text", unit="WER, %", order=53, characters=True,
    )
}  # fmt: skip


class Consistency:
    """Scores the audio of replies to conversation items against their text: `consistency_wer`."""

    name = "consistency"
    version = VERSION

    def __init__(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        signature = f"{NAME}|recogniser:{self.recogniser.identity()}"
        return [[_score(a, signature, self.recogniser)] for a in answered]


def _score(a: Answered, signature: str, recogniser: Recogniser) -> Score:
    try:
        samples, rate = a.sound()
        words = units(a.text, a.language)
        if not words:
            return Score("consistency_wer", signature, None, "the reply has no words")
        known = "" if a.language == DEFAULT else a.language  # English may be a guess: leave it to the recogniser
        heard = recogniser.transcribe(samples, rate, a.item.language or known)
    except OvertoneError as error:  # no sound, or no recogniser: one reply's reason, never the end of the others
        return Score("consistency_wer", signature, None, str(error))
    transcript = units(heard, a.language)
    if reason := too_long(transcript, words):
        return Score("consistency_wer", signature, None, reason)
    found = align(words, transcript)
    detail: dict[str, float | int | str | None] = {
        "hits": found.hits,
        "substitutions": found.substitutions,
        "deletions": found.deletions,
        "insertions": found.insertions,
        "reference_words": found.reference_words,
        "transcript": heard,
    }
    return Score("consistency_wer", signature, found.rate, "", detail)


def load(*, recogniser: str = "") -> Consistency:
    """The metric with the package's recogniser, or with the Whisper of that folder or id."""
    return Consistency(recogniser_of(recogniser))
