"""Whether a reply's voice says its text: word error rate between the text and a transcript of the audio.

The text is the reference and the embedded recogniser's transcript the hypothesis. Both are normalised; 0 means that
they are equal word for word. The recogniser makes errors even on perfect speech, so compare models with each other, not
with 0. The counts are stored, so that the rate of a corpus can be computed from sums. Audio without words scores 1. A
reply without audio or without text is unscored; so is a text above the limit, and everything if the recogniser is not
installed. In languages without spaces between words it is the character error rate. The option
`recogniser=FOLDER_OR_ID` uses a Whisper in the measuring environment, which knows other languages too.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import OvertoneError
from overtone.languages import DEFAULT
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._limits import LIMIT, too_long
from overtone.metrics._recogniser import Recogniser, recogniser_of
from overtone.metrics.normalise import units
from overtone.metrics.wer import NORMALISED_BY, align
from overtone.schema import Score
from overtone.scores import of_replies

VERSION = 2
ON_REQUEST = True  # it transcribes every reply
NAME = f"consistency_wer|v{VERSION}|{NORMALISED_BY}|empty:1|{LIMIT}"
SCORES = {
    "consistency_wer": of_replies(
        "Voice against text, WER", better="lower", high=None, reduce="errors", table="delivery",
        short="Voice against text", unit="WER, %", order=53, characters=True,
    )
}  # fmt: skip


class Consistency(ReplyMetric):
    """Scores the audio of replies to conversation items against their text: `consistency_wer`."""

    name = "consistency"
    version = VERSION
    page = 16

    def __init__(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        signature = f"{NAME}|recogniser:{self.recogniser.identity()}"
        return [[_score(a, signature, self.recogniser)] for a in answered]


def _score(a: Answered, signature: str, recogniser: Recogniser) -> Score:
    try:
        samples, rate = a.sound()
        words = units(a.text, a.language)
        if not words:
            return Score("consistency_wer", signature, None, "the reply has no words")
        known = "" if a.language == DEFAULT else a.language  # English may be a guess: let the recogniser decide
        heard = recogniser.transcribe(samples, rate, a.item.language or known)
    except OvertoneError as error:  # no audio, or no recogniser: the reason for this reply; scoring continues
        return Score("consistency_wer", signature, None, str(error))
    transcript = units(heard, a.language)
    if reason := too_long(transcript, words):
        return Score("consistency_wer", signature, None, reason)
    alignment = align(words, transcript)
    return Score("consistency_wer", signature, alignment.rate, "", alignment.detail() | {"transcript": heard})


def load(*, recogniser: str = "") -> Consistency:
    """Load the metric with the package's recogniser, or with the Whisper of this folder or hub id."""
    return Consistency(recogniser_of(recogniser))
