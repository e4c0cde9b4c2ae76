"""From corpora to an ear: read, choose clips, compute features, fit, test, and write the file and its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from overtone import corpora
from overtone.ear.clips import Clip, chosen, without_small_classes
from overtone.ear.feature_store import Features, features_of
from overtone.ear.fitting import combined_hash, fit_heads, heads_of
from overtone.embedded import ear_features, fitted_ear
from overtone.embedded.fitted_ear import FORMAT, Facts, HeardCorpus
from overtone.errors import DataError, UsageError
from overtone.heard import HeardInTraining, Origin, encode, heard_clip, union
from overtone.paths import shown, write_whole
from overtone.version import __version__

Progress = Callable[[str, int, int], None]  # the kind of work, how much is done, the total


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of `overtone fit hearing`."""

    corpora: tuple[str, ...]  # kind:DIR, or DIR
    out: Path
    features: Path | None = None  # the file of the features; beside `out` by default
    folds: int = 6
    seed: int = 0
    jobs: int = 1


class Made(Struct, frozen=True):
    """The result of a fit: what the file says of itself, its version, the report's file, and what was left out."""

    facts: Facts
    version: str
    report: Path
    features: Path
    notes: tuple[str, ...]
    left_out: dict[str, dict[str, str]]  # head → class → why


def make(settings: Settings, progress: Progress) -> Made:
    """Fit an ear and write it. Raises UsageError or DataError before anything is written."""
    if settings.out.suffix != ".npz":
        raise UsageError(f"--out {shown(str(settings.out))}: give a file with the suffix .npz")
    store = settings.features or settings.out.with_suffix(".features.sqlite")
    identity = ear_features.identity()  # first, because it says which package is missing
    readings = [corpora.read(*corpora.parse(text)) for text in settings.corpora]
    notes = [warning for reading in readings for warning in reading.warnings]
    clips, left_out = without_small_classes(chosen(readings))
    found = features_of(
        [clip.recording for clip in clips], store, settings.jobs, lambda done, total: progress("listening", done, total)
    )
    loud = [(clip, one) for clip, one in zip(clips, found, strict=True) if one is not None]
    if silent := len(clips) - len(loud):
        notes.append(f"{silent} silent clips are left out")
    clips, more = without_small_classes([clip for clip, _ in loud])
    left_out = {head: left_out.get(head, {}) | more.get(head, {}) for head in {**left_out, **more}}
    by_name = {(clip.corpus, clip.recording.name): one for clip, one in loud}
    features = [by_name[clip.corpus, clip.recording.name] for clip in clips]
    rows = np.stack([one.row for one in features if one.row is not None])
    fitted = fit_heads(
        heads_of(clips), rows, settings.folds, settings.seed, settings.jobs, lambda *at: progress("fitting", *at)
    )
    heads = tuple(facts for facts, _ in fitted)
    reasons = {fitted_ear.cue_of(head, name): why for head, named in left_out.items() for name, why in named.items()}
    facts = Facts(
        FORMAT,
        __version__,
        identity,
        settings.seed,
        settings.folds,
        heads,
        tuple(_corpora(clips, features)),
        fitted_ear.unheard(heads, reasons),
    )
    linear = {facts.name: numbers for facts, numbers in fitted}
    fitted_ear.write(settings.out, facts, linear, encode(_statement(clips, features)))
    version = fitted_ear.read(settings.out).version
    report = settings.out.with_suffix(".json")
    left = {"version": version, "left_out": left_out, "notes": notes}
    write_whole(report, msgspec.json.format(msgspec.json.encode(msgspec.to_builtins(facts) | left), indent=1) + b"\n")
    return Made(facts, version, report, store, tuple(notes), left_out)


def _corpora(clips: Sequence[Clip], features: Sequence[Features]) -> list[HeardCorpus]:
    files: dict[str, list[str]] = defaultdict(list)
    speakers: dict[str, set[str]] = defaultdict(set)
    licences: dict[str, set[str]] = defaultdict(set)
    titles: dict[str, str] = {}
    for clip, one in zip(clips, features, strict=True):
        name = clip.corpus
        titles[name] = corpora.adapter(clip.recording.corpus).title
        files[name].append(one.file)
        speakers[name].add(clip.recording.speaker)
        licences[name].add(clip.recording.licence or "unknown")
    return [
        HeardCorpus(
            name,
            titles[name],
            tuple(sorted(licences[name])),
            all(map(corpora.is_open, licences[name])),
            len(files[name]),
            tuple(sorted(speakers[name] - {""})),
            combined_hash(files[name]),
        )
        for name in sorted(files)
    ]


def _statement(clips: Sequence[Clip], features: Sequence[Features]) -> HeardInTraining:
    return union(
        heard_clip(
            [Origin(clip.recording.corpus, clip.recording.speaker, clip.recording.name)],
            clip.recording.licence,
            one.sound,
        )
        for clip, one in zip(clips, features, strict=True)
    )


def check(settings: Settings) -> None:
    """Raise UsageError for settings that cannot work."""
    if not settings.corpora:
        raise UsageError("--corpus is missing; name recordings of people with --corpus KIND:DIR")
    if settings.folds < 2:
        raise UsageError(f"--folds {settings.folds}: give 2 or more")
    if settings.jobs < 1:
        raise UsageError(f"--jobs {settings.jobs}: give 1 or more")
    if not 0 <= settings.seed < 2**32:
        raise UsageError(f"--seed {settings.seed}: give a whole number from 0 to {2**32 - 1}")
    if settings.out.is_dir():
        raise DataError(f"{shown(str(settings.out))} is a folder; give a file with --out")
