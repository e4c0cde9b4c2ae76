"""Which recordings of the corpora an ear is fitted to, with what they say to each of its heads."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from overtone import corpora
from overtone.corpora import Reading, Recording
from overtone.embedded.fitted_ear import HEADS, SPEECH
from overtone.errors import DataError, UsageError
from overtone.paths import shown

VOCAL = (
    "laughter", "cough", "crying", "sigh", "yawn", "scream", "moan", "panting", "sneeze", "sniff", "throat clearing",
    "breathing", "gasp",
)  # fmt: skip
MOST = {"emotion": 60, "event": 60, "sex": 8, "age": 8}  # clips of one speaker and class
_MOST_SPEECH = 5
_GROWN = ("adult", "elderly")


class Clip(Struct, frozen=True):
    """A recording, the name of its corpus, and its classes by head. A head that it says nothing to is missing."""

    recording: Recording
    corpus: str
    labels: dict[str, str]

    @property
    def speaker(self) -> str:
        """The speaker, unique over all corpora."""
        return f"{self.corpus} {self.recording.speaker or self.recording.name}"


def labels(recording: Recording) -> dict[str, str]:
    """Return the class of each head that a recording has one for.

    Emotions outside the seven, teenagers' ages, children's sexes and sounds that nobody makes are not used. A
    recording with words or an emotion but no nonverbal sound is the class `speech` of the events.
    """
    out = {}
    if (emotion := corpora.basic(recording.emotion)) and not recording.event:
        out["emotion"] = emotion
    if recording.event in VOCAL:
        out["event"] = recording.event
    elif not recording.event and (recording.words or recording.emotion):
        out["event"] = SPEECH
    if recording.event and "event" not in out:
        return {}
    if recording.age_group == "child" or recording.age_group in _GROWN:
        out["age"] = recording.age_group
    if recording.sex and recording.age_group not in ("child", "teenager"):
        out["sex"] = recording.sex
    return out


def chosen(readings: Iterable[Reading]) -> list[Clip]:
    """Return the clips to fit to: at most MOST of each speaker and class, chosen by the hash of their names, so that a
    corpus with many clips of few speakers does not outweigh the others. Raises DataError if there are none."""
    clips = {}
    for corpus, reading in _named(list(readings)).items():
        for recording in reading.recordings:
            if known := labels(recording):
                clips[corpus, recording.name] = Clip(recording, corpus, known)
    if not clips:
        raise DataError(
            "no recording of the corpora has an emotion, a nonverbal sound, a sex or an age; give others with --corpus"
        )
    kept: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    order = sorted(clips, key=lambda key: hashlib.sha256("\0".join(key).encode()).digest())
    for head in HEADS:  # the order of the heads does not matter: each has its own counts
        for key in order:
            clip = clips[key]
            if (name := clip.labels.get(head)) is None:
                continue
            most = _MOST_SPEECH if name == SPEECH else MOST[head]
            group = (head, clip.speaker, name)
            if counts[group] < most:
                counts[group] += 1
                kept[key][head] = name
    return [Clip(clips[key].recording, clips[key].corpus, kept[key]) for key in sorted(kept)]


def _named(readings: list[Reading]) -> dict[str, Reading]:
    """Return readings by name: the adapter's, or with the folder's if several have the same adapter. Raises UsageError
    for a folder that is given twice, or two with the same name."""
    kinds = [reading.kind for reading in readings]
    out: dict[str, Reading] = {}
    for reading in readings:
        name = reading.kind if kinds.count(reading.kind) == 1 else f"{reading.kind} {reading.folder.resolve().name}"
        if name in out:
            both = f"{shown(str(out[name].folder))} and {shown(str(reading.folder))}"
            raise UsageError(
                f"--corpus: {both} are the same folder or have the same name; give each once, or rename one"
            )
        out[name] = reading
    return out


def without_small_classes(clips: list[Clip]) -> tuple[list[Clip], dict[str, dict[str, str]]]:
    """Return the clips without classes of fewer than two speakers, which cannot be tested on a speaker left out, and
    without heads of fewer than two classes; and by head, why each class is left out.

    Raises DataError, with the reasons, if no head is left.
    """
    speakers: dict[str, dict[str, set[str]]] = {head: defaultdict(set) for head in HEADS}
    for clip in clips:
        for head, name in clip.labels.items():
            speakers[head][name].add(clip.speaker)
    reasons: dict[str, dict[str, str]] = defaultdict(dict)
    for head, by_class in speakers.items():
        for name, who in sorted(by_class.items()):
            if len(who) < 2:
                reasons[head][name] = f"only one speaker ({next(iter(who))}), so none can be left out for the test"
        left = sorted(set(by_class) - set(reasons[head]))
        if len(left) == 1:
            reasons[head][left[0]] = f"the only class of {head} with two speakers; give recordings of another"
    kept = []
    for clip in clips:
        known = {head: name for head, name in clip.labels.items() if name not in reasons[head]}
        if known:
            kept.append(Clip(clip.recording, clip.corpus, known))
    reasons = {head: named for head, named in reasons.items() if named}
    if not kept:
        lines = [f"{head} {name}: {why}" for head, named in reasons.items() for name, why in named.items()]
        raise DataError(f"nothing can be fitted and tested: {'; '.join(lines)}; add a corpus with more speakers")
    return kept, dict(reasons)
