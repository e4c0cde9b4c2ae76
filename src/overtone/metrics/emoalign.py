"""EmoAlign: whether a reply's voice has the emotion of the reference reply's voice, and that of its style profile.

`emoalign_reference` is 1 if the same predictor names the same emotion for the reply's and the reference reply's audio,
else 0; `emoalign_profile` is 1 if the reply's emotion is that of its style profile. EchoMind released no profiles, so
Overtone has its own table from the clip's cue to the emotion expected in the reply (`data/reply_emotions.tsv`). "Other"
and "unknown" never match. Options: `predictor=embedded` (default), `emotion2vec`, or an ear's file, as `overtone fit
hearing` writes it; for emotion2vec also `model=FOLDER_OR_ID` and `hub=ms|hf`. See docs/reference/metrics/emoalign.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from overtone.errors import DataError, MissingExtra, OvertoneError, UsageError
from overtone.metrics import Answered, ReplyMetric
from overtone.paths import user_path
from overtone.schema import Score
from overtone.scores import of_replies
from overtone.spec import suggest

if TYPE_CHECKING:
    from overtone.audio import Samples
    from overtone.embedded.emotion import Emotion
    from overtone.metrics._helper import Helper

ON_REQUEST = True
VERSION = 1
SCORES = {
    "emoalign_reference": of_replies(
        "EmoAlign with the reference's voice", short="EmoAlign", table="emotion", order=1, needs="labels", finding=True
    ),
    "emoalign_profile": of_replies(
        "EmoAlign with the style's profile", table="emotion", order=2, needs="labels", finding=True
    ),
}
NAMES = tuple(SCORES)
LABELS = ("angry", "disgusted", "fearful", "happy", "neutral", "sad", "surprised")
NO_MATCH = ("other", "unknown")  # additional labels of emotion2vec; they never match
PREDICTORS = ("embedded", "emotion2vec")
PROFILES = Path(__file__).with_name("data") / "reply_emotions.tsv"

Sound = tuple["Samples", int]
Detail = dict[str, float | int | str | None]


class Predictor(Protocol):
    """A predictor of the emotion in a voice."""

    def identity(self) -> str:
        """Return the model and its version for the signature, or a text that says the model is missing."""
        ...

    def predict(self, sound: Sound) -> Emotion:
        """Return the emotion of one sound. Raises OvertoneError, worded as a score's reason."""
        ...


class Embedded:
    """The predictor that comes with the package."""

    def identity(self) -> str:
        from overtone.embedded import emotion

        return emotion.identity()

    def predict(self, sound: Sound) -> Emotion:
        from overtone.embedded import emotion

        return emotion.predict(*sound)


class Fitted:
    """The emotions of an ear that was fitted to people's recordings."""

    def __init__(self, path: Path) -> None:
        from overtone.embedded import fitted_ear

        self._ear = fitted_ear.read(path)
        self._identity = fitted_ear.identity(path)
        if all(head.name != "emotion" for head in self._ear.facts.heads):
            raise DataError(f"{path}: this ear has no emotions; fit it to a corpus with emotions")

    def identity(self) -> str:
        return self._identity

    def predict(self, sound: Sound) -> Emotion:
        return self._ear.emotion(*sound)


class Emotion2vec:
    """emotion2vec+ in the measuring environment. The process starts with the first sound."""

    def __init__(self, model: str, hub: str) -> None:
        self._options = {"model": model, "hub": hub}
        self._name = Path(model).name if Path(model).is_dir() else model

    @functools.cached_property
    def _helper(self) -> Helper:
        from overtone.metrics._helper import Helper

        return Helper("emotion2vec", self._options, hub=True)

    def _started(self) -> Helper:
        from overtone.metrics._helper import measures_python

        try:
            return self._helper.start_once()
        except MissingExtra as error:
            if "'funasr'" not in str(error):
                raise
            install = f"{measures_python()} -m pip install funasr"
            raise MissingExtra(f"emotion2vec: FunASR is not in the measuring environment; run '{install}'") from None

    def identity(self) -> str:
        try:
            facts = self._started().facts
        except OvertoneError:
            return f"{self._name}:missing"
        version = facts.get("versions", {}).get("funasr", "")
        return f"{facts['model']}{'-' + facts['sha256'][:8] if facts['sha256'] else ''}:funasr{version}"

    def predict(self, sound: Sound) -> Emotion:
        import numpy as np

        from overtone.audio import resample
        from overtone.embedded.emotion import Emotion

        helper = self._started()
        x = resample(*sound, int(helper.facts["rate"]))
        if len(x) < 400:  # the model's first layers need 25 ms
            return Emotion("unknown", {})
        answer = helper.call({"do": "predict"}, [np.ascontiguousarray(x, np.float32).tobytes()])
        probabilities = named(**answer["values"][0])
        return Emotion(max(probabilities, key=probabilities.__getitem__), probabilities)


def named(labels: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """Return emotion's English name → probability. The model's labels are like `生气/angry`; `<unk>` is unknown."""
    out: dict[str, float] = {}
    for label, score in zip(labels, scores, strict=True):
        name = label.rpartition("/")[2].strip().lower()
        name = "unknown" if name in ("<unk>", "unk") else name
        if name not in (*LABELS, *NO_MATCH):
            raise OvertoneError(
                f"the model names an emotion {label!r}, which is not a label of emotion2vec+; give another model"
            )
        out[name] = out.get(name, 0.0) + score
    return out


class EmoAlign(ReplyMetric):
    """Scores the audio of replies to conversation items: `emoalign_reference` and `emoalign_profile`."""

    name = "emoalign"
    version = VERSION
    page = 16

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self._references: dict[str, Emotion | str] = {}  # by path; a text is the reason why it is missing

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        identity = self.predictor.identity()
        signatures = {name: f"{name}|v{VERSION}|predictor:{identity}" for name in NAMES}
        signatures["emoalign_profile"] += f"|profiles:{_profiles()[0]}"
        return [self._scores(a, signatures) for a in answered]

    def _scores(self, a: Answered, signatures: dict[str, str]) -> list[Score]:
        try:
            heard = self.predictor.predict(a.sound())
        except OvertoneError as error:  # no audio, or no predictor: the reason for this reply; scoring continues
            return [Score(name, signatures[name], None, str(error)) for name in NAMES]
        reference = self._reference(a)
        if isinstance(reference, str):
            first = Score(NAMES[0], signatures[NAMES[0]], None, reference)
        else:
            first = _compared(NAMES[0], signatures[NAMES[0]], heard, reference.label, reference.probability)
        return [first, _compared(NAMES[1], signatures[NAMES[1]], heard, profile(a), None)]

    def _reference(self, a: Answered) -> Emotion | str:
        path = a.reference_audio
        if path not in self._references:
            try:
                self._references[path] = self.predictor.predict(a.reference_sound())
            except OvertoneError as error:
                self._references[path] = str(error)
        return self._references[path]


def _compared(name: str, signature: str, heard: Emotion, wanted: str, sure: float | None) -> Score:
    detail: Detail = {
        "reply": heard.label,
        "wanted": wanted,
        "reply_probability": round(heard.probability, 4),
        "reply_unknown": int(heard.label not in LABELS),
        "wanted_unknown": int(wanted not in LABELS),
    }
    if sure is not None:
        detail["wanted_probability"] = round(sure, 4)
    return Score(name, signature, float(matches(heard.label, wanted)), "", detail)


def matches(one: str, other: str) -> bool:
    """Return whether two labels are the same emotion. "Other" and "unknown" match nothing, not even themselves."""
    return one == other and one in LABELS


def profile(a: Answered) -> str:
    """Return the emotion expected in the voice of the reply, from the cue of the turn's clip."""
    turn = a.item.turns[a.key.turn] if a.key.turn < len(a.item.turns) else None
    cue = turn.cue if turn is not None and len(a.item.turns) > 1 else a.item.cue
    return _profiles()[1].get(cue, "unknown")


@functools.cache
def _profiles() -> tuple[str, dict[str, str]]:
    """Return the table's hash, and the table: cue → emotion. The key "" is for clips without a cue."""
    import hashlib

    text = PROFILES.read_text("utf-8")
    table: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cue, _, label = line.partition("\t")
        if label not in LABELS:
            raise DataError(f"{PROFILES}, line {number}: {label!r} is not one of {', '.join(LABELS)}")
        table["" if cue == "neutral" else cue] = label
    return hashlib.sha256(text.encode()).hexdigest()[:8], table


def predictor_of(metric: str, predictor: str, model: str, hub: str) -> Predictor:
    """Return the predictor of this name, or of this file. The error for an unknown predictor mentions `metric`."""
    if predictor not in PREDICTORS:
        path = user_path(predictor)
        if path.is_file():
            try:
                return Fitted(path)
            except DataError as error:
                raise UsageError(f"{metric}: predictor={error}") from None
        raise UsageError(
            f"{metric}: no predictor {predictor!r}{suggest(predictor, PREDICTORS)}; known: {', '.join(PREDICTORS)}, "
            "or the file of an ear"
        )
    return Embedded() if predictor == "embedded" else Emotion2vec(model, hub)


def load(*, predictor: str = "embedded", model: str = "iic/emotion2vec_plus_large", hub: str = "ms") -> EmoAlign:
    """Load the metric with the predictor of this name."""
    return EmoAlign(predictor_of("emoalign", predictor, model, hub))
