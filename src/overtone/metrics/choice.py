"""Accuracy on multiple-choice questions, read leniently (the headline) and strictly.

An answered question is right or wrong. A reply that hedges, refuses, does not name an option or cannot be read scores
0, because it is the model's failure; its status is in the detail. A question without a right answer is unscored. A
reply in speech only is read from a recogniser's transcript, in which a letter may be written as it sounds; without a
transcript it is unscored.

In the condition `likelihood`, no reply is read. `accuracy` takes the option with the greatest log-likelihood per token.
`accuracy_less` subtracts from each option's log-likelihood its log-likelihood without the clip or its words, and takes
the greatest difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import OvertoneError
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._recogniser import Recogniser, recogniser_of
from overtone.schema import Score
from overtone.scores import CHOICE, CHOICE_LESS, CHOICE_STRICT, MeasureInfo, ScoreInfo
from overtone.tasks.answers.extract import LENIENT, STRICT, Extracted, lenient, strict

VERSION = 1
SIGNATURE = f"accuracy|v{VERSION}|extract:{LENIENT}"
SIGNATURE_STRICT = f"accuracy_strict|v{VERSION}|extract:{STRICT}"
LIKELIHOOD_MEAN = f"{SIGNATURE}|text:likelihood"  # of the same measurement as SIGNATURE: a run may have both conditions
SIGNATURE_LESS = f"{CHOICE_LESS}|v{VERSION}"
SCORES = {
    CHOICE: ScoreInfo(
        "Accuracy", reduce="share", tasks=("choose",),
        measures=(
            MeasureInfo(
                "voice_accuracy", "Voice accuracy", "choose", 1, gold=True, headline=True, column="Voice ACC", order=1,
                help="Questions about the voice: right ÷ answered", colours=(0.25, 1.0),
            ),
            MeasureInfo(
                "reasoning_accuracy", "Reasoning accuracy", "choose", 2, gold=True, headline=True,
                column="Reasoning ACC", help="Questions that need words and voice: right ÷ answered", order=2,
                colours=(0.25, 1.0), conflict="Reasoning",
            ),
        ),
    ),
    CHOICE_STRICT: ScoreInfo(
        "Accuracy, strict reading", reduce="share", tasks=("choose",), headline=False, table="none",
        measures=(
            MeasureInfo("voice_accuracy_strict", "Voice accuracy, strict reading", "choose", 1, gold=True),
            MeasureInfo("reasoning_accuracy_strict", "Reasoning accuracy, strict reading", "choose", 2, gold=True),
        ),
    ),
    CHOICE_LESS: ScoreInfo(
        "Accuracy by likelihood less prior", reduce="share", tasks=("choose",), headline=False, table="more",
        measures=(
            MeasureInfo(
                "voice_accuracy_less", "Voice accuracy, likelihood less prior", "choose", 1, gold=True,
                column="Voice ACC, less prior", help="By each option's likelihood minus that without the clip",
            ),
            MeasureInfo(
                "reasoning_accuracy_less", "Reasoning accuracy, likelihood less prior", "choose", 2, gold=True,
                column="Reasoning ACC, less prior", help="By each option's likelihood minus that without the clip",
            ),
        ),
    ),
}  # fmt: skip


class Accuracy(ReplyMetric):
    """Scores every reply to a multiple-choice item twice: `accuracy` and `accuracy_strict` or `accuracy_less`."""

    name = "choice"
    version = VERSION
    task = "choose"

    def __init__(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser

    def one(self, a: Answered) -> list[Score]:
        if a.likelihoods:
            return _by_likelihood(a)
        names: tuple[tuple[str, str], ...] = (("accuracy", SIGNATURE), ("accuracy_strict", SIGNATURE_STRICT))
        if not a.item.gold:
            return [Score(metric, signature, None, "no gold answer") for metric, signature in names]
        if a.refused:  # what the endpoint reports precedes the text
            refused = Extracted(None, "refused", "marked by the endpoint")
            return [_score(a, metric, signature, refused) for metric, signature in names]
        if a.text.strip() or not a.audio_sha:
            readings = _readings(a, a.text)
            return [_score(a, *name, read) for name, read in zip(names, readings, strict=True)]
        heard_by = self.recogniser.identity()
        names = tuple((metric, f"{signature}|text:transcript:{heard_by}") for metric, signature in names)
        try:
            words = self.recogniser.transcribe(*a.sound(), a.item.language)
        except OvertoneError as error:  # the reply cannot be heard: that is not the model's failure
            return [Score(metric, signature, None, str(error)) for metric, signature in names]
        readings = _readings(a, words)
        return [_score(a, *name, read, words) for name, read in zip(names, readings, strict=True)]


def _by_likelihood(a: Answered) -> list[Score]:
    """Score the most likely option twice: by the log-likelihood per token, and by the log-likelihood minus its
    prior."""
    names = ((CHOICE, LIKELIHOOD_MEAN), (CHOICE_LESS, SIGNATURE_LESS))
    weighed = a.likelihoods[0]
    if not a.item.gold:
        return [Score(metric, signature, None, "no gold answer") for metric, signature in names]
    if len(weighed) != len(a.item.options):
        reason = f"{len(weighed)} likelihoods of {len(a.item.options)} options"
        return [Score(metric, signature, None, reason) for metric, signature in names]
    scores = [_score(a, *names[0], _likeliest(a, [one.mean for one in weighed], "mean"))]
    less = [one.less for one in weighed if one.less is not None]
    if len(less) < len(weighed):
        return [*scores, Score(*names[1], None, "the model gave no likelihood without the clip")]
    return [*scores, _score(a, *names[1], _likeliest(a, less, "less prior"))]


def _likeliest(a: Answered, values: Sequence[float], rule: str) -> Extracted:
    best = max(range(len(values)), key=values.__getitem__)  # the first of equal ones
    return Extracted(a.item.options[best].letter, "parsed", f"likelihood, {rule}")


def _readings(a: Answered, text: str) -> tuple[Extracted, Extracted]:
    heard = bool(a.audio_sha)  # the text may be the model's own transcript of its speech
    return lenient(text, a.item.options, heard=heard), strict(text, a.item.options, heard=heard)


def _score(a: Answered, metric: str, signature: str, read: Extracted, transcript: str | None = None) -> Score:
    chosen = next((o for o in a.item.options if o.letter == read.letter), None)
    detail: dict[str, float | int | str | None] = {
        "answer": read.letter,
        "status": read.status,
        "rule": read.rule,
        "gold": a.item.gold,
        "options": len(a.item.options),
        "provenance": chosen.provenance if chosen else "",
    }
    if transcript is not None:
        detail["transcript"] = transcript
    return Score(metric, signature, float(read.letter == a.item.gold), "", detail)


def load(*, recogniser: str = "") -> Accuracy:
    """Load the metric with the package's recogniser, or with the Whisper of this folder or hub id."""
    return Accuracy(recogniser_of(recogniser))
