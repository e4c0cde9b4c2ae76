"""The voice's part of the realness measurement: emotion, sex, age, pace and vocal events, real ones and ours.

Half of the actors and recordings helped to set the recipes; where that is so, only the other half is used here.
`families(data)` lists the real sounds of each family, `read` makes one of them a row, `built(number)` makes ours.
"""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.realness.features import NAMES, prosody
from experiments.realness.rows import Row, measured
from overtone import audio
from overtone.build.delivery import RATE, _with_events, analyse, deliver
from overtone.build.recipes import NEUTRAL, Recipe, recipe_of
from overtone.build.vocal_events import event
from overtone.embedded.espeak_voice import speak
from scripts.fit_hearing import HELD_OUT_SENTENCES, HELD_OUT_VOICES, SENTENCES, TRAIN_VOICES

EMOTIONS = ("happy", "sad", "surprise", "angry", "fear", "disgust")
EVENTS = {  # folder of recordings → our event, and the cue whose clips carry it
    "coughing": ("cough", "cough"), "laughing": ("laugh", "laughter"), "moaning": ("moan", "moan"),
    "sighing": ("sigh", "sigh"), "yawning": ("yawn", "yawn"), "crying": ("sob", "sobbing"),
    "panting": ("pant", "breath"),
}  # fmt: skip
RELATIVE = frozenset({"emotion", "event in speech"})  # families whose rows are differences from a neutral clip
VOICES = (
    *TRAIN_VOICES, *HELD_OUT_VOICES, ("en-us+m3", "male"), ("en-us+f2", "female"), ("en-us+m5", "male"),
    ("en-us+f3", "female"), ("en-us+m1", "male"), ("en-us+f5", "female"),
)  # fmt: skip
CARRIERS = 4  # pieces of real speech that a recorded event is put into
LONGEST = 2.5  # seconds of a recorded event that are used
SHORT = {"gasp": 0.8, "sniff": 0.4}  # where a recipe puts only so much of it
_TEMPO = ("rate", "modulation", "voiced run", "shimmer", "pitch speed", "pause share", "pauses")
_LEVEL = NAMES.index("level")  # clips must stay under full scale, so levels cannot move as far as in life


@dataclass(frozen=True)
class Job:
    """One row to make from real sounds: a recording, or what it is measured against or inserted into."""

    family: str
    label: str
    who: str
    path: Path
    beside: tuple[Path, ...] = ()  # the same speaker's neutral clips; or the speech an event is put into
    cue: str = ""


def judges(names: list[str]) -> set[str]:
    """The half of some speakers whose recordings were kept from whoever set the recipes."""
    return set(sorted(set(names))[1::2])


def _table(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


# ── real ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def families(data: Path) -> dict[str, list[Job]]:
    """The real sounds of each family of the voice."""
    acted = _table(data / "ravdess" / "labels.csv")
    even = [r for r in acted if int(r["actor"]) % 2 == 0]
    calm = {r["actor"]: () for r in acted}
    for r in acted:
        if r["emotion"] == "neutral":
            calm[r["actor"]] = (*calm[r["actor"]], data / "ravdess" / r["file"])
    ocean = _table(data / "speechocean" / "labels.csv")
    grown = [r for r in ocean if int(r["age"]) >= 18]
    sexes = [
        Job("gender", r["gender"], r["actor"], data / "ravdess" / r["file"]) for r in acted if r["emotion"] == "neutral"
    ]
    sexes += [
        Job("gender", {"m": "male", "f": "female"}[r["gender"]], r["speaker"], data / "speechocean" / r["file"])
        for r in grown
    ]  # fmt: skip
    sakura = data / "sakura_sample" / "Gender"
    for name, told in json.loads((sakura / "metadata.json").read_text()).items():
        sexes.append(Job("gender", told["attribute_label"], name, sakura / "audio" / Path(name).name))
    return {
        "emotion": [
            Job("emotion", r["emotion"], r["actor"], data / "ravdess" / r["file"], calm[r["actor"]])
            for r in even
            if r["emotion"] in EMOTIONS
        ],
        "gender": sexes,
        "age": [
            Job("age", "child" if int(r["age"]) <= 11 else "adult", r["speaker"], data / "speechocean" / r["file"])
            for r in ocean
            if int(r["age"]) <= 11 or int(r["age"]) >= 18
        ],
        "pace": _pace(data),
        **_events(data, [p for files in calm.values() for p in files]),
    }


def _pace(data: Path) -> list[Job]:
    """Of each corpus with transcripts, the third with the most letters a second and that with the fewest."""
    corpora = (
        [(data / "librispeech" / r["file"], r["file"].partition("-")[0], r["text"])
         for r in _table(data / "librispeech" / "transcripts.tsv", "\t")],
        [(data / "speechocean" / r["file"], r["speaker"], r["text"])
         for r in _table(data / "speechocean" / "labels.csv") if int(r["age"]) >= 18],
        [(data / "ravdess" / r["file"], r["actor"], r["text"])
         for r in _table(data / "ravdess" / "labels.csv") if r["emotion"] in ("neutral", "calm")],
    )  # fmt: skip
    jobs = []
    for corpus in corpora:
        ranked = sorted((len(text.replace(" ", "")) / _seconds(path), path, who) for path, who, text in corpus)
        third = len(ranked) // 3
        for label, part in (("slow", ranked[:third]), ("fast", ranked[-third:])):
            jobs += [Job("pace", label, who, path) for _, path, who in part]
    return jobs


def _seconds(path: Path) -> float:
    """How long somebody talks: without the silence at the ends and without pauses."""
    samples, rate = audio.read(path)
    found = audio.measure(samples, rate)
    return found.seconds * found.active


def _events(data: Path, speech: list[Path]) -> dict[str, list[Job]]:
    """Events by themselves, and each in some pieces of plain speech of other people."""
    files = {kind: sorted((data / "nonverbal" / kind).glob("*.wav")) for kind in EVENTS}
    heard = judges([p.name[:4] for paths in files.values() for p in paths])
    mine = {kind: [p for p in paths if p.name[:4] in heard] for kind, paths in files.items()}
    bare = [Job("event", EVENTS[kind][0], p.name[:4], p) for kind, paths in mine.items() for p in paths]
    return {"event": bare, "event in speech": inside_speech(mine, speech)}


def inside_speech(files: dict[str, list[Path]], speech: list[Path]) -> list[Job]:
    """Each recorded event in CARRIERS pieces of speech."""
    inside: list[Job] = []
    for kind, (_, cue) in EVENTS.items():
        for k, path in enumerate(files[kind]):
            for j in range(CARRIERS):
                carrier = speech[(7 * k + 13 * j + len(inside)) % len(speech)]
                inside.append(Job("event in speech", cue, path.name[:4], path, (carrier,), cue))
    return inside


def read(job: Job) -> Row:
    samples, rate = audio.read(job.path)
    x = audio.resample(samples, rate, RATE).astype(np.float64)
    if job.family == "emotion":
        return job.label, job.who, _less(prosody(x, RATE), _neutral(job.beside))
    if job.family == "event":
        return job.label, job.who, _alone(trimmed(x))
    if job.family == "event in speech":
        plain = _spoken(job.beside[0])
        heard = trimmed(x)

        def real(name: str, *_: object) -> np.ndarray:
            part = heard[: int(SHORT.get(name, LONGEST) * RATE)]
            return part / np.sqrt(np.mean(part**2))  # type: ignore[no-any-return]

        rng = np.random.default_rng(len(job.path.name) + plain.size)
        with_event = _with_events(plain, _only_events(job.cue), rng, 150.0, 1.0, real)
        return job.label, job.who, _less(prosody(with_event, RATE), prosody(plain, RATE))
    return job.label, job.who, _tempo(x) if job.family == "pace" else _whole(x)


def trimmed(x: np.ndarray) -> np.ndarray:
    """A recorded event from where it begins, at most LONGEST: a recorder's silence is no part of a cough."""
    x = x / (float(np.abs(x).max()) or 1.0) * 0.5
    step = RATE // 100
    levels = 10 * np.log10(np.square(x[: x.size // step * step].reshape(-1, step)).mean(1) + 1e-12)
    at = np.flatnonzero(levels > levels.max() - 32)
    first = max(int(at[0]) * step - RATE // 20, 0)
    last = min(int(at[-1]) * step + RATE // 20, first + int(LONGEST * RATE))
    x = x[first:last].copy()
    x[-RATE // 20 :] *= np.linspace(1, 0, x[-RATE // 20 :].size)
    return x


def _alone(x: np.ndarray) -> list[float]:
    """Measures of an event by itself, over the faint noise that every recording has."""
    x = x / (float(np.abs(x).max()) or 1.0) * 0.5
    return prosody(x + np.random.default_rng(0).standard_normal(x.size) * 0.0015, RATE)


def _whole(x: np.ndarray) -> list[float]:
    """Measures of a speaker, at one level."""
    x = x / (float(np.abs(x).max()) or 1.0) * 0.5
    return [*prosody(x, RATE)[_LEVEL + 1 :], *measured(x, RATE)]


def _tempo(x: np.ndarray) -> list[float]:
    """Only what pace can show in: how often the level peaks, how fast it, the spectrum and the pitch move, pauses."""
    values = prosody(x, RATE)
    return [values[NAMES.index(name)] for name in _TEMPO]


def _less(values: list[float], neutral: list[float]) -> list[float]:
    return [v - n for k, (v, n) in enumerate(zip(values, neutral, strict=True)) if k != _LEVEL]


@functools.cache
def _neutral(paths: tuple[Path, ...]) -> list[float]:
    """The mean measures of a speaker's neutral clips."""
    return np.nanmean([prosody(*audio.read(p)) for p in paths], 0).tolist()  # type: ignore[no-any-return]


@functools.cache
def _spoken(path: Path) -> np.ndarray:
    """Real speech at the builder's rate and level, without silence at its ends."""
    samples, rate = audio.read(path)
    x = audio.resample(samples, rate, RATE).astype(np.float64)
    loud = np.flatnonzero(np.abs(x) > 0.03 * np.abs(x).max())
    x = x[max(loud[0] - RATE // 20, 0) : loud[-1] + RATE // 20]
    return x / np.sqrt(np.mean(x**2)) * 0.05  # type: ignore[no-any-return]


def _only_events(cue: str) -> Recipe:
    return Recipe(events=recipe_of(cue).events)


# ── ours ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def built(number: int, families: tuple[str, ...] = ()) -> dict[str, list[Row]]:
    """Every class of some families (by default all) once, in one voice and sentence."""
    voice, sex = VOICES[number % len(VOICES)]
    sentences = (*SENTENCES, *HELD_OUT_SENTENCES)
    samples, rate = speak(sentences[number % len(sentences)], voice=voice, rate_wpm=160)
    plain = analyse(audio.resample(samples, rate, RATE).astype(np.float64))
    scale = 1.0 if sex == "male" else 1.16
    rng = np.random.default_rng([31, number])

    def said(cue: str) -> np.ndarray:
        return deliver(plain, recipe_of(cue), rng, scale)

    neutral = deliver(plain, NEUTRAL, rng, scale)
    calm = prosody(neutral, RATE)
    pitch = plain.pitch
    rows: dict[str, Callable[[], list[Row]]] = {
        "emotion": lambda: [(slug, voice, _less(prosody(said(slug), RATE), calm)) for slug in EMOTIONS],
        "gender": lambda: [(sex, voice, _whole(neutral))],
        "age": lambda: [("child", voice, _whole(said("child"))), ("adult", voice, _whole(neutral))],
        "pace": lambda: [(slug, voice, _tempo(said(slug))) for slug in ("fast", "slow")],
        "event": lambda: [
            (name, voice, _alone(event(name, RATE, rng, pitch, scale))) for name, _ in EVENTS.values()
        ],
        "event in speech": lambda: [(cue, voice, _less(prosody(said(cue), RATE), calm)) for _, cue in EVENTS.values()],
    }  # fmt: skip
    return {family: make() for family, make in rows.items() if not families or family in families}
