"""An ear fitted to people's recordings by `overtone fit hearing`: one linear classifier each of emotion, sex, age and
nonverbal sounds, in one file that states what it heard, its recall on speakers left out, and what it cannot hear.

For every cue that its recordings did not have, it uses the classifier that comes with the package.
"""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.audio import Measures
from overtone.cues import BY_SLUG, CUES
from overtone.embedded import ear_features, emotion, hearing
from overtone.embedded.ear_features import FEATURES
from overtone.embedded.emotion import Emotion
from overtone.embedded.hearing import Hearing
from overtone.errors import DataError
from overtone.heard import HeardInTraining
from overtone.heard import decode as decode_heard
from overtone.paths import read_plain, sha256, shown, write_whole

Array = NDArray[np.float64]

FORMAT: Literal["overtone ear 1"] = "overtone ear 1"
HEADS = ("sex", "age", "emotion", "event")
SPEECH = "speech"  # the class of the events that is not a cue
ABSENT = "not in the recordings"
CUE_OF = {"crying": "sobbing", "panting": "breath"}  # an event's word → the cue's slug; others have the same
LABEL_OF = {"fear": "fearful", "disgust": "disgusted", "surprise": "surprised"}  # emotion → EmoAlign's label
_LIMIT = 64 << 20  # bytes, packed and unpacked
_CLIP = 4.0  # standard deviations: a number far outside the recordings is clipped to its border
_BROKEN = (  # what damaged archives, arrays and texts raise; the last two come from zipfile
    OSError, EOFError, KeyError, ValueError, TypeError, zlib.error, zipfile.BadZipFile, msgspec.MsgspecError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
_PARTS = ("centre", "scale", "weights", "bias")
_REFIT = "fit it again with 'overtone fit hearing'"


class Recall(Struct, frozen=True):
    """Recall on speakers or corpora left out, with its 95 % interval over speakers (null with fewer than two)."""

    name: str
    clips: int
    speakers: int
    recall: float
    low: float | None = None
    high: float | None = None


class HeadReport(Struct, frozen=True):
    """How well one head does on speakers left out. `whole` is the mean of the recalls of its classes."""

    whole: Recall
    chance: float
    classes: tuple[Recall, ...]
    heard_as: tuple[tuple[int, ...], ...]  # clips per class (rows) and predicted class (columns)
    by_corpus: tuple[Recall, ...] = ()
    without_corpus: tuple[Recall, ...] = ()  # fitted without any recording of the corpus


class HeadFacts(Struct, frozen=True):
    """One head: its classes, and the probability below which an emotion is called unknown."""

    name: str
    classes: tuple[str, ...]
    threshold: float
    report: HeadReport


class HeardCorpus(Struct, frozen=True):
    """One corpus that the ear was fitted to. `sha256` covers the bytes of its clips, in the order of their hashes."""

    name: str
    title: str
    licences: tuple[str, ...]
    open: bool
    clips: int
    speakers: tuple[str, ...]
    sha256: str


class Facts(Struct, frozen=True):
    """The statement of an ear's file about itself, in JSON."""

    format: Literal["overtone ear 1"]
    overtone: str  # the version that fitted it
    features: str
    seed: int
    folds: int
    heads: tuple[HeadFacts, ...]
    corpora: tuple[HeardCorpus, ...]
    cannot_hear: dict[str, str]  # cue → why

    @property
    def open(self) -> bool:
        """Whether all its recordings may train weights that are given away."""
        return all(corpus.open for corpus in self.corpora)


@dataclass(frozen=True)
class Linear:
    """A head's numbers. A class's score is its row of weights times the standardised features, plus its bias."""

    centre: Array
    scale: Array
    weights: Array  # (classes, features)
    bias: Array

    def standardised(self, rows: Array) -> Array:
        """Return features as the head sees them: a missing one becomes the mean, an extreme one is clipped."""
        return np.asarray(np.clip(np.nan_to_num((rows - self.centre) / self.scale), -_CLIP, _CLIP))

    def scores(self, rows: Array) -> Array:
        """Return the classes' scores (rows, classes)."""
        return np.asarray(self.standardised(rows) @ self.weights.T + self.bias)


@dataclass(frozen=True)
class FittedEar:
    """A loaded ear. It takes the place of the classifier that comes with the package, which answers for the rest."""

    facts: Facts
    linear: dict[str, Linear]
    statement: HeardInTraining
    shipped: Hearing

    @property
    def version(self) -> str:
        """The identity of its numbers."""
        return f"ear-{_digest(self.facts, self.linear)[:8]}"

    @property
    def classes(self) -> tuple[str, ...]:
        """The slugs of the cues that it covers, with those of the classifier that comes with the package."""
        return self.shipped.classes

    def heard(self) -> HeardInTraining:
        """Return what it was fitted to."""
        return self.statement

    def describe(self) -> dict[str, object]:
        """Return what a model that uses it says of it: its identity, its corpora, and what it cannot hear."""
        return {
            "ear": self.version,
            "ear_cannot_hear": sorted(self.facts.cannot_hear),
            "ear_recall": {head.name: head.report.whole.recall for head in self.facts.heads},
            "ear_heard": self.statement.statement()["corpora"],
            "ear_open": self.facts.open,
            "ear_of_other_cues": self.shipped.version,
        }

    def evidence(self, samples: audio.Samples, rate: int, measures: Measures | None = None) -> tuple[float, ...]:
        """Return all that it needs to know of a sound: the scores of its heads' classes, then the measures that the
        classifier of the package takes."""
        row = ear_features.features(samples, rate)
        own = [np.zeros(len(head.classes)) for head in self.facts.heads]
        if row is not None:
            own = [self.linear[head.name].scores(row[None].astype(np.float64))[0] for head in self.facts.heads]
        return tuple(np.concatenate([*own, hearing.features(samples, rate, measures)]).tolist())

    def posterior(self, evidence: Array, among: Sequence[str]) -> dict[str, float]:
        """Return the probability of each cue in `among`, given that one of them is present.

        A head decides if it has all of them. Nonverbal sounds within speech are left to the classifier of the package,
        because the recordings have such sounds alone.
        """
        for head, scores in self._scores(evidence):
            cues = [cue_of(head.name, name) for name in head.classes]
            in_speech = head.name == "event" and SPEECH in head.classes and head.classes[scores.argmax()] == SPEECH
            if set(among) <= set(cues) and not in_speech:
                likely = _softmax(scores[[cues.index(slug) for slug in among]])
                return dict(zip(among, likely.tolist(), strict=True))
        return self.shipped.posterior(evidence[-len(hearing.FEATURES) :], among)

    def guesses(self, evidence: Array) -> list[tuple[str, float]]:
        """Return the most probable cue of each head and its probability, then that of all cues that no head has. The
        speaker's sex comes first."""
        measures = evidence[-len(hearing.FEATURES) :]
        own: list[tuple[str, float]] = []
        covered = {"male", "female"}
        for head, scores in self._scores(evidence):
            likely = _softmax(scores)
            best = int(likely.argmax())
            own.append((cue_of(head.name, head.classes[best]), float(likely[best])))
            if head.classes[best] != SPEECH:
                covered |= {cue_of(head.name, name) for name in head.classes}
        if self.facts.heads[0].name != "sex":
            sex = self.shipped.posterior(measures, ("male", "female"))
            own.insert(0, max(sex.items(), key=lambda item: item[1]))
        others = self.shipped.posterior(measures, sorted((set(self.shipped.classes) - covered) | {"adult"}))
        own.append(max(others.items(), key=lambda item: item[1]))
        return [(slug, p) for slug, p in own if slug]

    def emotion(self, samples: audio.Samples, rate: int) -> Emotion:
        """Return the emotion of a voice, like `embedded.emotion.predict`. Raises DataError if it has no emotions."""
        head = next((head for head in self.facts.heads if head.name == "emotion"), None)
        if head is None:
            raise DataError("the ear has no emotions; fit it to a corpus with emotions")
        row = ear_features.features(samples, rate)
        if row is None:
            return Emotion(emotion.UNKNOWN, {})
        likely = _softmax(self.linear["emotion"].scores(row[None].astype(np.float64))[0])
        named = dict.fromkeys(emotion.LABELS, 0.0)
        named |= {LABEL_OF.get(name, name): float(p) for name, p in zip(head.classes, likely, strict=True)}
        best = max(named, key=named.__getitem__)
        return Emotion(best if named[best] >= head.threshold else emotion.UNKNOWN, named)

    def _scores(self, evidence: Array) -> Iterator[tuple[HeadFacts, Array]]:
        at = 0
        for head in self.facts.heads:
            yield head, evidence[at : at + len(head.classes)]
            at += len(head.classes)


def cue_of(head: str, name: str) -> str:
    """Return the slug of the cue that a class means, or "" for none."""
    slug = CUE_OF.get(name, name) if head == "event" else name
    return slug if slug in BY_SLUG else ""


def unheard(heads: Sequence[HeadFacts], reasons: dict[str, str]) -> dict[str, str]:
    """Return every cue that heads cannot hear, and why: it was not in the recordings, or the recall's interval does not
    exclude chance. `reasons` has classes that were left out."""
    out = {cue.slug: ABSENT for cue in CUES}
    for head in heads:
        for one in head.report.classes:
            slug = cue_of(head.name, one.name)
            if slug in out and one.low is not None and one.low > head.report.chance:
                del out[slug]
            elif slug in out:
                edges = "" if one.low is None else f" [{one.low:.2f}, {one.high:.2f}]"
                out[slug] = f"recall {one.recall:.2f}{edges} on speakers left out, chance {head.report.chance:.2f}"
    return out | {slug: why for slug, why in reasons.items() if slug in out}


def write(path: Path, facts: Facts, linear: dict[str, Linear], statement: bytes) -> None:
    """Write an ear as an .npz file. Equal ears give equal bytes."""
    arrays = {"facts": np.frombuffer(msgspec.json.encode(facts), np.uint8), "heard": np.frombuffer(statement, np.uint8)}
    for name, head in linear.items():
        arrays |= {f"{name}_{part}": getattr(head, part).astype(np.float32) for part in _PARTS}
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    write_whole(path, packed.getvalue())


def read(path: Path) -> FittedEar:
    """Read an ear. Raises DataError if the file is damaged, is something else, or was fitted to other features."""
    where = shown(str(path))
    data = read_plain(path, _LIMIT)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _LIMIT:
                raise ValueError("larger than any real one")
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        facts = msgspec.json.decode(arrays["facts"].tobytes(), type=Facts)
        linear = {
            head.name: Linear(*(arrays[f"{head.name}_{part}"].astype(np.float64) for part in _PARTS))
            for head in facts.heads
        }
        statement = arrays["heard"].tobytes()
    except _BROKEN as error:
        raise DataError(f"{where}: not a whole ear ({error}); fit one with 'overtone fit hearing'") from None
    if why := _invalid(facts, linear):
        raise DataError(f"{where}: {why}; {_REFIT}")
    if facts.features != (now := ear_features.identity()):
        raise DataError(f"{where}: fitted to the features {shown(facts.features)}, but these are {now}; {_REFIT}")
    return FittedEar(facts, linear, decode_heard(statement, where), hearing.load())


def read_any(path: Path) -> FittedEar | Hearing:
    """Read an ear, or a classifier in JSON as scripts/fit_hearing.py writes it. Raises DataError."""
    return read(path) if read_plain(path, _LIMIT)[:2] == b"PK" else hearing.read_file(path)


def identity(path: Path) -> str:
    """Return an ear's version and the start of its file's SHA-256."""
    return f"{read_any(path).version}@{sha256(path)[:12]}"


def _invalid(facts: Facts, linear: dict[str, Linear]) -> str:
    """Return why the parts of an ear do not fit together, or ""."""
    names = [head.name for head in facts.heads]
    if not names or names != [name for name in HEADS if name in names]:
        return f"its heads must be some of {', '.join(HEADS)}, in this order"
    for head in facts.heads:
        numbers, classes = linear[head.name], len(head.classes)
        if classes < 2 or len(set(head.classes)) < classes:
            return f"{head.name} has fewer than two classes, or one of them twice"
        shapes = (numbers.centre.shape, numbers.scale.shape, numbers.weights.shape, numbers.bias.shape)
        if shapes != ((len(FEATURES),), (len(FEATURES),), (classes, len(FEATURES)), (classes,)):
            return f"the numbers of {head.name} have the shapes {shapes}"
        if not all(np.isfinite(getattr(numbers, part)).all() for part in _PARTS) or numbers.scale.min() <= 0:
            return f"a number of {head.name} is not finite, or a scale is not positive"
        if not math.isfinite(head.threshold):
            return f"the threshold of {head.name} is not finite"
    return ""


def _digest(facts: Facts, linear: dict[str, Linear]) -> str:
    digest = hashlib.sha256(facts.features.encode())
    for head in facts.heads:
        digest.update(repr((head.name, head.classes, head.threshold)).encode())
        for part in _PARTS:
            digest.update(np.ascontiguousarray(getattr(linear[head.name], part), "<f4").tobytes())
    return digest.hexdigest()


def _softmax(scores: Array) -> Array:
    likely = np.exp(scores - scores.max())
    return np.asarray(likely / likely.sum())
