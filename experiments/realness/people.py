"""A second look at fear and sighs with more speakers: four corpora of acted emotion, and halves drawn by a seed.

`voice` judges emotions by nine actors of one corpus, and the halves of its speakers follow the alphabet. Here the
speakers of RAVDESS, SAVEE, EMO-DB and TESS, and those of the nonverbal sounds, are halved by SEED, which was fixed
before any number was seen. Recipes may be changed while looking at the first half (`--half set`). The second half is
for one test of the result. A cue needs LEAST speakers in each half; `short` names those that have fewer.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from experiments.realness import voice
from experiments.realness.rows import Row
from experiments.realness.voice import EMOTIONS, EVENTS, Job
from overtone import corpora

SEED = 28
LEAST = 8  # speakers or sources of a cue in each half
CORPORA = ("ravdess", "savee", "emodb", "tess")
MOST = 30  # clips of a speaker and emotion, because TESS has 200
EMOTION, EVENT = "emotion (four corpora)", "event in speech (second look)"
DECIDES = {EMOTION: set(EMOTIONS), EVENT: {"sigh"}}  # the other sounds are decided by `voice`
read_half = "test"  # the half that `families` lists; `set` for whoever changes recipes


def half(names: Iterable[str], which: str) -> set[str]:
    """One half of some speakers, drawn by SEED."""
    ordered = sorted(set(names))
    drawn = np.random.default_rng(SEED).permutation(len(ordered))
    first = {ordered[n] for n in drawn[: (len(ordered) + 1) // 2]}
    return first if which == "set" else set(ordered) - first


def families(data: Path) -> dict[str, list[Job]]:
    """The real sounds of both families, of the speakers of `read_half`."""
    return {EMOTION: emotions(data, read_half), EVENT: events(data, read_half)}


def emotions(data: Path, which: str) -> list[Job]:
    """The acted clips of one half, each beside the neutral clips of its speaker."""
    jobs = []
    for kind in CORPORA:
        rows = [r for r in corpora.read(kind, data / "people" / kind).recordings if r.emotion in (*EMOTIONS, "neutral")]
        counts: Counter[tuple[str, str]] = Counter()
        calm: dict[str, tuple[Path, ...]] = defaultdict(tuple)
        chosen = half((r.speaker for r in rows), which)
        kept = []
        for r in rows:
            counts[r.speaker, r.emotion] += 1
            if r.speaker not in chosen or counts[r.speaker, r.emotion] > MOST:
                continue
            if r.emotion == "neutral":
                calm[r.speaker] = (*calm[r.speaker], Path(r.path))
            else:
                kept.append(r)
        jobs += [Job("emotion", r.emotion, f"{kind} {r.speaker}", Path(r.path), calm[r.speaker]) for r in kept]
    return jobs


def events(data: Path, which: str) -> list[Job]:
    """The nonverbal sounds of one half, put into other people's plain speech."""
    with (data / "ravdess" / "labels.csv").open(newline="") as file:
        speech = [data / "ravdess" / r["file"] for r in csv.DictReader(file) if r["emotion"] == "neutral"]
    files = {kind: sorted((data / "nonverbal" / kind).glob("*.wav")) for kind in EVENTS}
    heard = half((p.name[:4] for paths in files.values() for p in paths), which)
    return voice.inside_speech(
        {kind: [p for p in paths if p.name[:4] in heard] for kind, paths in files.items()}, speech
    )


def short(data: Path) -> dict[str, tuple[int, int]]:
    """The re-examined cues with fewer than LEAST speakers or sources in a half, and how many each half has."""
    with (data / "esc50" / "labels.csv").open(newline="") as file:
        wind = {r["file"].split("-")[1] for r in csv.DictReader(file) if r["category"] == "wind"}
    files = {kind: {p.name[:4] for p in (data / "nonverbal" / kind).glob("*.wav")} for kind in EVENTS}
    heard = half(set().union(*files.values()), "set")
    out = {EVENTS[kind][1]: (len(files[kind] & heard), len(files[kind] - heard)) for kind in ("sighing", "yawning")}
    out["wind"] = len(wind) - len(wind) // 2, len(wind) // 2
    return {cue: counts for cue, counts in out.items() if min(counts) < LEAST}


read = voice.read


def built(number: int) -> dict[str, list[Row]]:
    """Ours, as `voice` builds them: every class once, in one voice and sentence."""
    rows = voice.built(number, families=("emotion", "event in speech"))
    return {EMOTION: rows["emotion"], EVENT: rows["event in speech"]}
