"""URO-Bench's two scores that need no judge: how truly a reply repeats, and whether its voice carries a wanted emotion.

Both read what a recogniser hears in the reply, or its text where it has no audio. `uro_repeat` is 1 − WER where the WER
is at most ½, else 0; its mean is the set's ok_rate × (1 − WER of those). `uro_emotion` is the probability of the wanted
emotion in the reply's voice × (1 − WER), the WER at most 1; a reply without audio has 0, one whose wanted emotion no
predictor knows is unscored. As there, the WER is divided by the words of the reply, not of what was to be said: the two
are swapped. `uro_wer` is ours, divided as usual. Chinese is compared letter by letter, without marks; digits stay
digits (there they become Chinese numerals).

Options: `predictor`, `model` and `hub` as of emoalign, and `recogniser` as of consistency.
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
        heard_by = f"|recogniser:{self.recogniser.identity()}"
        emotion = any(a.item.category.startswith("GenEmotion") for a in answered)
        by_ear = f"|predictor:{self.predictor.identity()}{heard_by}" if emotion else ""
        return [self._one(a, heard_by, by_ear) for a in answered]

    def _one(self, a: Answered, heard_by: str, by_ear: str) -> list[Score]:
        speaks = a.item.category.startswith("GenEmotion")
        first = ("uro_emotion", EMOTION + by_ear) if speaks else ("uro_repeat", REPEAT + heard_by)
        names = (first, ("uro_wer", WER + heard_by))
        if not a.reference:
            return [Score(name, signature, None, "no reference") for name, signature in names]
        try:
            said = self.recogniser.transcribe(*a.sound(), a.item.language) if a.audio_sha else a.text
            likely = self._likely(a) if speaks else None
        except OvertoneError as error:  # no recogniser or predictor: one reply's reason, never the end of the others
            return [Score(name, signature, None, str(error)) for name, signature in names]
        if reason := too_long(*(units(text, a.item.language) for text in (said, a.reference))):
            return [Score(name, signature, None, reason) for name, signature in names]
        theirs, ours = rates(said, a.reference, a.item.language)
        usual = Score(*names[1], ours, "", {"transcript": said})
        if speaks and _wanted(a.item) not in LABELS:
            return [Score(*first, None, f"the wanted emotion {a.item.gold!r} is none of {', '.join(LABELS)}"), usual]
        value = (1 - theirs if theirs <= 0.5 else 0.0) if likely is None else likely * (1 - min(theirs, 1.0))
        detail: Detail = {"transcript": said, "wer": theirs, "heard": int(bool(a.audio_sha))}
        if likely is not None:
            detail |= {"probability": likely, "wanted": a.item.gold}
        return [Score(*first, value, "", detail), usual]

    def _likely(self, a: Answered) -> float:
        """The probability of the wanted emotion in the reply's voice; 0 where there is no voice."""
        if not a.audio_sha:
            return 0.0
        return self.predictor.predict(a.sound()).probabilities.get(_wanted(a.item), 0.0)


def _wanted(item: Item) -> str:
    """The emotion asked for, as predictors call it."""
    word = item.gold.strip().lower()
    return NOUNS.get(word, word)


def rates(said: str, wanted: str, language: str) -> tuple[float, float]:
    """The word error rate as there, divided by the words of what was said, and as usual, by those of what was wanted. 1
    where there is nothing to divide by."""
    one, other = (units(text, language) for text in (said, wanted))
    return align(one, other).rate if one else 1.0, align(other, one).rate if other else 1.0


def units(text: str, language: str) -> list[str]:
    """What URO-Bench compares of a text: normalised English words, or the letters of Chinese, without marks."""
    if language != "zh":
        return english(text).split()
    kept = "".join(c for c in text if unicodedata.category(c)[0] not in "PS")
    return list(kept.replace("  ", " ").strip().lower())


def load(
    *, predictor: str = "embedded", model: str = "iic/emotion2vec_plus_large", hub: str = "ms", recogniser: str = ""
) -> Uro:
    """The metric with the predictor and the recogniser of these names."""
    return Uro(predictor_of("uro", predictor, model, hub), recogniser_of(recogniser))
