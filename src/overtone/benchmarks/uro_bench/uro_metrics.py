"""URO-Bench's two scores that need no judge: how exactly a reply repeats, and whether its voice has the wanted emotion.

Both use the transcript of the reply, or its text if it has no audio. `uro_repeat` is 1 − WER if the WER is at most ½,
otherwise 0; its mean is ok_rate × (1 − WER of these replies). `uro_emotion` is the probability of the wanted emotion
in the reply's voice × (1 − WER), with the WER at most 1. A reply without audio scores 0; a reply whose wanted emotion
is unknown to the predictor is unscored. URO-Bench swaps reply and reference: its WER is divided by the words of the
reply, and so are these two scores. `uro_wer` is ours and divides by the words of the reference. Chinese is compared
character by character, without punctuation; digits stay digits (URO-Bench turns them into Chinese numerals).

The options `predictor`, `model` and `hub` are those of emoalign, `recogniser` is that of consistency.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from overtone.errors import OvertoneError
from overtone.metrics import Answered
from overtone.metrics._limits import LIMIT, too_long
from overtone.metrics._recogniser import Recogniser, recogniser_of
from overtone.metrics.emoalign import LABELS, Predictor, predictor_of
from overtone.metrics.normalise import NAME as NORMALISER
from overtone.metrics.normalise import english
from overtone.metrics.wer import align
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 3
_WER = f"norm:{NORMALISER}/letters|split:space/letters|empty:1|{LIMIT}"
REPEAT = f"uro_repeat|v{VERSION}|{_WER}|per:reply|ok:0.5"
EMOTION = f"uro_emotion|v{VERSION}|{_WER}|per:reply|most:1"
WER = f"uro_wer|v{VERSION}|{_WER}|per:reference"
SCORES = {
    "uro_wer": of_replies("WER of the words to be said", better="lower", high=None),
    "uro_repeat": of_replies("Repeated truly"),
    "uro_emotion": of_replies("Wanted emotion in the voice"),
}

NOUNS = {"anger": "angry", "disgust": "disgusted", "fear": "fearful", "sadness": "sad", "surprise": "surprised"}
NOUNS |= {"happiness": "happy", "joy": "happy"}

Detail = dict[str, float | int | str | None]


class Uro:
    """Scores replies to URO-Bench's Repeat and GenEmotion sets."""

    name = "uro"
    version = VERSION

    def __init__(self, predictor: Predictor, recogniser: Recogniser) -> None:
        self.predictor = predictor
        self.recogniser = recogniser

    def applies(self, item: Item) -> bool:
        return item.category.startswith(("Repeat", "GenEmotion"))

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        recogniser = f"|recogniser:{self.recogniser.identity()}"
        emotional = any(a.item.category.startswith("GenEmotion") for a in answered)
        predictor = f"|predictor:{self.predictor.identity()}{recogniser}" if emotional else ""
        return [self._one(a, recogniser, predictor) for a in answered]

    def _one(self, a: Answered, recogniser: str, predictor: str) -> list[Score]:
        emotional = a.item.category.startswith("GenEmotion")
        first = ("uro_emotion", EMOTION + predictor) if emotional else ("uro_repeat", REPEAT + recogniser)
        names = (first, ("uro_wer", WER + recogniser))
        if not a.reference:
            return [Score(name, signature, None, "no reference") for name, signature in names]
        try:
            transcript = self.recogniser.transcribe(*a.sound(), a.item.language) if a.audio_sha else a.text
            probability = self._probability(a) if emotional else None
        except OvertoneError as error:  # a missing recogniser or predictor leaves this reply unscored, not the others
            return [Score(name, signature, None, str(error)) for name, signature in names]
        if reason := too_long(*(units(text, a.item.language) for text in (transcript, a.reference))):
            return [Score(name, signature, None, reason) for name, signature in names]
        theirs, ours = rates(transcript, a.reference, a.item.language)
        wer = Score(*names[1], ours, "", {"transcript": transcript})
        if emotional and _wanted(a.item) not in LABELS:
            reason = f"the wanted emotion {a.item.gold!r} is not one of {', '.join(LABELS)}"
            return [Score(*first, None, reason), wer]
        detail: Detail = {"transcript": transcript, "wer": theirs, "heard": int(bool(a.audio_sha))}
        if probability is None:
            value = 1 - theirs if theirs <= 0.5 else 0.0
        else:
            value = probability * (1 - min(theirs, 1.0))
            detail |= {"probability": probability, "wanted": a.item.gold}
        return [Score(*first, value, "", detail), wer]

    def _probability(self, a: Answered) -> float:
        """Return the probability of the wanted emotion in the reply's voice; 0 without a voice."""
        if not a.audio_sha:
            return 0.0
        return self.predictor.predict(a.sound()).probabilities.get(_wanted(a.item), 0.0)


def _wanted(item: Item) -> str:
    """Return the wanted emotion by the name that predictors use."""
    word = item.gold.strip().lower()
    return NOUNS.get(word, word)


def rates(reply: str, reference: str, language: str) -> tuple[float, float]:
    """Return two word error rates: errors ÷ words of the reply (URO-Bench's), and errors ÷ words of the reference (the
    usual one). A rate is 1 if the divisor is 0."""
    said, wanted = (units(text, language) for text in (reply, reference))
    return align(said, wanted).rate if said else 1.0, align(wanted, said).rate if wanted else 1.0


def units(text: str, language: str) -> list[str]:
    """Return the units that URO-Bench compares: normalised English words, or Chinese characters without punctuation."""
    if language != "zh":
        return english(text).split()
    kept = "".join(c for c in text if unicodedata.category(c)[0] not in "PS")
    return list(kept.replace("  ", " ").strip().lower())


def load(
    *, predictor: str = "embedded", model: str = "iic/emotion2vec_plus_large", hub: str = "ms", recogniser: str = ""
) -> Uro:
    """Return the metric with the predictor and the recogniser of these names."""
    return Uro(predictor_of("uro", predictor, model, hub), recogniser_of(recogniser))
