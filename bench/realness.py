"""How real are the built cues? A classifier trained on real recordings is asked about ours, and the other way round.

Families, each over the classes that both sides have: emotions and the speaker's sex (RAVDESS), age (speechocean762),
vocal events (Deeply Nonverbal Vocalization, ours without words), scenes (ESC-50, ours without speech). The classifier
is the ear's linear discriminant over the ear's measures, each side standardised by itself. Real against real, with
speakers or recordings left out, shows what the measures can do at all.

    python -m bench.realness [--data ../shared/data] [--clips 24]
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from overtone import audio
from overtone.build.delivery import NEUTRAL, ORDINARY_DBFS, RATE, RECIPES, analyse, deliver
from overtone.build.events import event
from overtone.build.scenes import scene
from overtone.embedded import hearing
from overtone.embedded.voice import speak
from overtone.stats import cluster
from scripts.fit_hearing import HELD_OUT_SENTENCES, SENTENCES, TRAIN_VOICES, discriminant

Row = tuple[str, str, list[float]]  # class, cluster (speaker, recording, voice), features
EMOTIONS = ("happy", "sad", "surprise", "angry", "fear", "disgust")
EVENTS = {
    "coughing": "cough", "laughing": "laugh", "moaning": "moan", "sighing": "sigh", "yawning": "yawn", "crying": "sob",
}  # fmt: skip
SCENES = {
    "rain": "rain", "sea_waves": "waves", "thunderstorm": "thunder", "wind": "wind", "dog": "dog",
    "clapping": "applause", "clock_alarm": "alarm", "car_horn": "honking", "engine": "car", "train": "subway",
}  # fmt: skip


def measured(samples: np.ndarray, rate: int) -> list[float]:
    peak = float(np.abs(samples).max()) or 1.0
    return hearing.features((samples / peak * 0.5).astype(np.float32), rate).tolist()


# ── real ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(folder: Path, label: Callable[[dict[str, str]], str], who: str) -> list[tuple[Path, str, str]]:
    with (folder / "labels.csv").open(newline="") as file:
        rows = [(folder / row["file"], label(row), row[who]) for row in csv.DictReader(file)]
    return [row for row in rows if row[1]]


def _age(years: int) -> str:
    return "child" if years <= 11 else "adult" if years >= 18 else ""


def real_files(data: Path) -> dict[str, list[tuple[Path, str, str]]]:
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
        "scene": listed(data / "esc50", lambda r: SCENES.get(r["category"], ""), "file"),
    }


def read(job: tuple[Path, str, str]) -> Row:
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
        "scene": [(slug, str(number), measured(scene(slug, 5 * RATE, RATE, rng), RATE)) for slug in SCENES.values()],
    }


# ── comparing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def standard(rows: list[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    labels, who, x = np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
    scale = np.nanstd(x, 0)
    z = (x - np.nanmean(x, 0)) / np.where(scale > 1e-9, scale, 1.0)
    return labels, who, np.clip(np.nan_to_num(z), -4, 4)


def told(train: tuple[np.ndarray, ...], test: np.ndarray) -> np.ndarray:
    head = discriminant(train[0], train[2])
    scores = test @ np.array(head.weights).T + np.array(head.bias)
    return np.array(head.classes)[scores.argmax(1)]


def left_out(rows: tuple[np.ndarray, ...], folds: int = 6) -> np.ndarray:
    labels, who, z = rows
    out = np.empty_like(labels)
    groups = {name: i % folds for i, name in enumerate(sorted(set(who.tolist())))}
    fold = np.array([groups[name] for name in who.tolist()])
    for k in range(folds):
        keep = fold != k
        out[~keep] = told((labels[keep], who[keep], z[keep]), z[~keep])
    return out


def lines(family: str, real: list[Row], ours: list[Row]) -> Iterator[str]:
    a, b = standard(real), standard(ours)
    guesses = {"real → real": (a, left_out(a)), "real → ours": (b, told(a, b[2])), "ours → real": (a, told(b, a[2]))}
    classes = sorted(set(a[0].tolist()) & set(b[0].tolist()))
    for slug in (*classes, "all"):
        cells = []
        for (labels, who, _), guess in guesses.values():
            mine = np.ones(len(labels), bool) if slug == "all" else labels == slug
            right = (guess[mine] == labels[mine]).astype(float)
            interval = cluster.proportion(right, who[mine].tolist())
            clear = "" if interval.low <= 1 / len(classes) else " *"
            cells.append(f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}] n {len(right)}{clear}")
        yield f"| {family} | {slug} | {1 / len(classes):.2f} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--clips", type=int, default=24, help="voices with a sentence each for every class of ours")
    args = parser.parse_args()
    files = real_files(args.data)
    with ProcessPoolExecutor(2) as pool:
        ours = list(pool.map(built, range(args.clips)))
        real = {family: list(pool.map(read, jobs, chunksize=8)) for family, jobs in files.items()}
    print("| family | class | chance | real → real | real → ours | ours → real |\n|---|---|---|---|---|---|")
    for family, rows in real.items():
        for line in lines(family, rows, [row for made in ours for row in made[family]]):
            print(line)
    print("\nrecall with its 95 % interval by speaker or recording; * where the interval is clear of chance")


if __name__ == "__main__":
    main()
