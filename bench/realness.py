"""How real are the built cues? A classifier trained on real recordings is asked about ours, and the other way round.

Families, each over the classes that both sides have: emotions and the speaker's sex (RAVDESS), age (speechocean762),
vocal events (Deeply Nonverbal Vocalization, ours without words), scenes (ESC-50, ours without speech). The classifier
is the ear's linear discriminant over the ear's measures, each side standardised by itself. Real against real, with
speakers or recordings left out, shows what the measures can do at all.

    python -m bench.realness [--data ../shared/data] [--clips 24]
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from bench import realness_scenes as scenes
from bench.realness_rows import HEAD, File, Row, compared, listed, measured
from overtone import audio
from overtone.build.delivery import NEUTRAL, ORDINARY_DBFS, RATE, RECIPES, analyse, deliver
from overtone.build.events import event
from overtone.embedded.voice import speak
from scripts.fit_hearing import HELD_OUT_SENTENCES, SENTENCES, TRAIN_VOICES

EMOTIONS = ("happy", "sad", "surprise", "angry", "fear", "disgust")
EVENTS = {
    "coughing": "cough", "laughing": "laugh", "moaning": "moan", "sighing": "sigh", "yawning": "yawn", "crying": "sob",
}  # fmt: skip


# ── real ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _age(years: int) -> str:
    return "child" if years <= 11 else "adult" if years >= 18 else ""


def real_files(data: Path) -> dict[str, list[File]]:
    events = [
        (path, EVENTS[kind], path.name[:4])
        for kind in EVENTS
        for path in sorted((data / "nonverbal" / kind).glob("*.wav"))
    ]
    return {
        "emotion": listed(data / "ravdess", lambda r: r["emotion"] if r["emotion"] in EMOTIONS else "", "actor"),
        "gender": listed(data / "ravdess", lambda r: r["gender"] if r["emotion"] == "neutral" else "", "actor"),
        "age": listed(data / "speechocean", lambda r: _age(int(r["age"])), "speaker"),
        "event": events,
    }


def read(job: File) -> Row:
    samples, rate = audio.read(job[0])
    return job[1], job[2], measured(samples, rate)


# ── ours ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def built(number: int) -> dict[str, list[Row]]:
    """Every class of every family once, in one voice and sentence."""
    voice, sex = TRAIN_VOICES[number % len(TRAIN_VOICES)]
    rng = np.random.default_rng([31, number])
    words = (*SENTENCES, *HELD_OUT_SENTENCES)[number]
    samples, rate = speak(words, voice=voice, rate_wpm=160)
    plain = analyse(audio.resample(samples, rate, RATE).astype(np.float64))
    scale = 1.0 if sex == "male" else 1.16

    def said(recipe: object) -> list[float]:
        return measured(deliver(plain, recipe, rng, scale, ORDINARY_DBFS), RATE)  # type: ignore[arg-type]

    f0 = 110.0 if sex == "male" else 200.0
    return {
        "emotion": [(slug, voice, said(RECIPES[slug])) for slug in EMOTIONS],
        "gender": [(sex, voice, said(NEUTRAL))],
        "age": [("child", voice, said(RECIPES["child"])), ("adult", voice, said(NEUTRAL))],
        "event": [(name, str(number), measured(event(name, RATE, rng, f0, scale), RATE)) for name in EVENTS.values()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--clips", type=int, default=24, help="voices with a sentence each for every class of ours")
    args = parser.parse_args()
    files, places = real_files(args.data), scenes.families(args.data)
    numbers = range(args.clips)
    with ProcessPoolExecutor(2) as pool:
        ours = [a | b for a, b in zip(pool.map(built, numbers), pool.map(scenes.built, numbers), strict=True)]
        real = {family: list(pool.map(read, jobs, chunksize=8)) for family, jobs in files.items()}
        real |= {family: list(pool.map(scenes.read, jobs, chunksize=8)) for family, jobs in places.items()}
    print(HEAD)
    for family, rows in real.items():
        for found in compared(family, rows, [row for made in ours for row in made[family]]):
            print(found.line())
    print("\nrecall with its 95 % interval by speaker or recording; * where the interval is clear of chance")


if __name__ == "__main__":
    main()
