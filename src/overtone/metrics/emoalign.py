"""EmoAlign: whether a reply's voice carries the emotion of the reference reply's voice, and that of its style profile.

`emoalign_reference` is 1 where the predicted emotion of the reply's audio is that of the reference reply's audio by the
same predictor, else 0; `emoalign_profile` where it is the label of the reply's style profile. EchoMind released no
profiles, so the label comes from a table of ours, from the cue of the clip to the emotion one expects in the reply's
voice (`data/reply_emotions.tsv`). Other or unknown on either side is no match. The options: `predictor=embedded` (the
default) or `emotion2vec`, and for the latter `model=FOLDER_OR_ID` and `hub=ms|hf`. docs/metrics/emoalign.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from overtone.errors import DataError, MissingExtra, OvertoneError, UsageError
from overtone.metrics import Answered
from overtone.schema import Item, Score
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
NO_MATCH = ("other", "unknown")  # emotion2vec's labels beside ours; they never match
PREDICTORS = ("embedded", "emotion2vec")
PROFILES = Path(__file__).with_name("data") / "reply_emotions.tsv"

Sound = tuple["Samples", int]
Detail = dict[str, float | int | str | None]


class Predictor(Protocol):
    """Hears sounds and names their emotions."""

    def identity(self) -> str:
        """Model and version, for the signature; says so where it cannot run."""
        ...

    def predict(self, sound: Sound) -> Emotion:
        """The emotion of one sound. OvertoneError, fit to be a reason, where it cannot be heard."""
        ...


class Embedded:
    """The predictor that comes with the package."""

    def identity(self) -> str:
        from overtone.embedded import emotion

        return emotion.identity()

    def predict(self, sound: Sound) -> Emotion:
        from overtone.embedded import emotion

        return emotion.predict(*sound)


class Emotion2vec:
    """emotion2vec+ in the measuring environment. The process starts with the first sound."""

    def __init__(self, model: str, hub: str) -> None:
        self._options = {"model": model, "hub": hub}
        self._name = Path(model).name if Path(model).is_dir() else model
        self._helper: Helper | None = None
        self._broken: OvertoneError | None = None  # why it does not start: found out once, not for every reply

    def _started(self) -> Helper:
        if self._broken is not None:
            raise self._broken
        if self._helper is None:
            from overtone.metrics._helper import Helper, measures_python

            helper = Helper("emotion2vec", self._options, hub=True)
            try:
                helper.start()
            except OvertoneError as error:
                self._broken = error
                if isinstance(error, MissingExtra) and "'funasr'" in str(error):
                    self._broken = MissingExtra(
                        "emotion2vec: FunASR is not in the measuring environment; run "
                        f"'{measures_python()} -m pip install funasr'"
                    )
                raise self._broken from None
            self._helper = helper
        return self._helper

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
        found = named(**answer["values"][0])
        return Emotion(max(found, key=found.__getitem__), found)


def named(labels: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """Probabilities under plain names: the model's tokens are like `生气/angry`, and `<unk>` is unknown."""
    out: dict[str, float] = {}
    for label, score in zip(labels, scores, strict=True):
        name = label.rpartition("/")[2].strip().lower()
        name = "unknown" if name in ("<unk>", "unk") else name
        if name not in (*LABELS, *NO_MATCH):
            raise OvertoneError(f"the model names an emotion {label!r}, which emotion2vec+ has not; give another model")
        out[name] = out.get(name, 0.0) + score
    return out


class EmoAlign:
    """Scores the audio of replies to conversation items: `emoalign_reference` and `emoalign_profile`."""

    name = "emoalign"
    version = VERSION

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self._references: dict[str, Emotion | str] = {}  # several replies share one; a text is why there is none

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        identity = self.predictor.identity()
        signatures = {name: f"{name}|v{VERSION}|predictor:{identity}" for name in NAMES}
        signatures["emoalign_profile"] += f"|profiles:{_profiles()[0]}"
        return [self._one(a, signatures) for a in answered]

    def _one(self, a: Answered, signatures: dict[str, str]) -> list[Score]:
        try:
            heard = self.predictor.predict(a.sound())
        except OvertoneError as error:  # no sound, or no predictor: one reply's reason, never the end of the others
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
    """Whether two labels are the same emotion. Other and unknown are none, so not even they match themselves."""
    return one == other and one in LABELS


def profile(a: Answered) -> str:
    """The emotion expected in the voice of a reply to this turn: that of the cue its clip carries."""
    turn = a.item.turns[a.key.turn] if a.key.turn < len(a.item.turns) else None
    cue = turn.cue if turn is not None and len(a.item.turns) > 1 else a.item.cue
    table = _profiles()[1]
    if cue not in table:
        return "unknown"
    return table[cue]


@functools.cache
def _profiles() -> tuple[str, dict[str, str]]:
    """The table's fingerprint, and cue → emotion; the cue "" is a clip that carries none."""
    import hashlib

    text = PROFILES.read_text("utf-8")
    table: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cue, _, label = line.partition("\t")
        if label not in LABELS:
            raise DataError(f"{PROFILES}, line {number}: {label!r} is none of {', '.join(LABELS)}")
        table["" if cue == "neutral" else cue] = label
    return hashlib.sha256(text.encode()).hexdigest()[:8], table


def predictor_of(metric: str, predictor: str, model: str, hub: str) -> Predictor:
    """The predictor of a name; `metric` is who wants it."""
    if predictor not in PREDICTORS:
        raise UsageError(
            f"{metric}: no predictor {predictor!r}{suggest(predictor, PREDICTORS)}; known: {', '.join(PREDICTORS)}"
        )
    return Embedded() if predictor == "embedded" else Emotion2vec(model, hub)


def load(*, predictor: str = "embedded", model: str = "iic/emotion2vec_plus_large", hub: str = "ms") -> EmoAlign:
    """The metric with the predictor of that name."""
    return EmoAlign(predictor_of("emoalign", predictor, model, hub))
