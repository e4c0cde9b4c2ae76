"""Fit the emotion predictor of `overtone.embedded.emotion`: speak, deliver, fit, and test on an engine left out.

    python -m scripts.fit_emotion plain --data DIR    plain utterances (DIR holds librispeech/ and speechocean/)
    python -m scripts.fit_emotion rows                every utterance in every emotion, as features: the long part
    python -m scripts.fit_emotion fit                 the model; prints how it does on what was held out

Work lies in out/emotion and is taken up again where it stopped. Held out, never trained on: all of Festival, and a
fifth of the speakers of every other source.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from overtone.embedded import emotion
from overtone.embedded._emotion_features import FEATURES
from scripts import emotion_network
from scripts import emotion_speech as speech

WORK = Path("out/emotion")
VERSION = "1"
MEMBERS = 5
UNSURE = 0.1  # the share of held-out deliveries that may be called unknown: it sets the threshold
COUNTS = {"espeak": 240, "flite": 110, "festival": 60}


def rows(folder: Path, out: Path, times: int, jobs: int, seconds: float) -> int:
    """Features of every utterance, kept every minute; what is there already is not made again."""
    done: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    if out.exists():
        held = np.load(out)
        done = {name: (held["labels"][held["names"] == name], held["x"][held["names"] == name])
                for name in np.unique(held["names"])}  # fmt: skip
    todo = [p for p in sorted(folder.glob("*.flac")) if p.name not in done]
    order = np.random.default_rng(0).permutation(len(todo))
    began = last = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(
                speech.rows_of, (todo[k], times * (2 if todo[k].name.startswith(speech.RECORDED) else 1))
            ): todo[k].name
            for k in order
        }
        for future in as_completed(waiting):
            labels, found = future.result()
            if labels:
                done[waiting[future]] = np.array(labels), np.array(found, np.float16)
            now = time.monotonic()
            if now - last > 60 or now - began > seconds:
                save(out, done)
                last = now
                print(f"{len(done)} of {len(done) + len(todo)} utterances after {now - began:.0f} s", flush=True)
            if now - began > seconds:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    save(out, done)
    print(f"{len(done)} utterances, {sum(len(labels) for labels, _ in done.values())} rows")
    return 0


def save(out: Path, done: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    names = np.concatenate([np.repeat(name, len(labels)) for name, (labels, _) in done.items()])
    labels, x = (np.concatenate(parts) for parts in zip(*done.values(), strict=True))
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, names=names, labels=labels, x=x, features=np.array(FEATURES))


def fit(file: Path, out: Path) -> int:
    """Train on all but what is held out, set the threshold there, write the model and print what was found."""
    held_rows = np.load(file)
    if tuple(held_rows["features"]) != FEATURES:
        sys.exit(f"{file} holds other features; make the rows again")
    names, x = held_rows["names"], held_rows["x"].astype(np.float64)
    labels = np.array([emotion.LABELS.index(label) for label in held_rows["labels"]])
    engines = np.array([name.partition("_")[0] for name in names])
    apart = np.array([held(name) for name in names])
    raw = as_recorded(names, held_rows["labels"])
    mine = ~apart
    centre, scale = np.nanmean(x[mine], 0), np.nanstd(x[mine], 0) + 1e-9
    z = np.clip(np.nan_to_num((x - centre) / scale), -4, 4)
    members = [emotion_network.train(z[mine], labels[mine], len(emotion.LABELS), seed) for seed in range(MEMBERS)]
    layers = [tuple(np.stack(parts) for parts in zip(*level, strict=True)) for level in zip(*members, strict=True)]
    network = emotion.Network(VERSION, centre, scale, tuple(layers), 0.0, "")  # type: ignore[arg-type]
    likely = network.probabilities(x[apart])
    threshold = round(float(np.quantile(likely.max(1), UNSURE)), 3)
    parts = {f"{name}{k}": layer[n] for k, layer in enumerate(layers) for n, name in enumerate(("weights", "bias"))}
    kept = {name: value.astype(np.float32) for name, value in {**parts, "centre": centre, "scale": scale}.items()}
    np.savez_compressed(
        out, version=np.array(VERSION), features=np.array(FEATURES), labels=np.array(emotion.LABELS),
        threshold=np.array(threshold), **kept,
    )  # fmt: skip
    print(f"{mine.sum()} rows of {len(set(names[mine]))} utterances; unknown below {threshold}")
    print("| held out | rows | UAR | " + " | ".join(emotion.LABELS) + " |\n" + "|---" * (3 + len(emotion.LABELS)) + "|")
    told = likely.argmax(1)
    for engine in sorted(set(engines[apart].tolist())):
        rows_of = (engines[apart] == engine) & ~raw[apart]
        recalls = [np.mean(told[rows_of & (labels[apart] == k)] == k) for k in range(len(emotion.LABELS))]
        cells = " | ".join(f"{value:.2f}" for value in (np.mean(recalls), *recalls))
        print(f"| {engine} | {rows_of.sum()} | {cells} |")
    plain = raw[apart]
    print(f"as recorded: neutral {np.mean(told[plain] == emotion.LABELS.index('neutral')):.2f} of {plain.sum()}")
    return 0


def held(name: str) -> bool:
    """Whether an utterance is kept from training: all of Festival's, and a fifth of the other speakers."""
    engine, speaker, _ = name.split("_")
    digest = hashlib.sha256(f"{engine}_{speaker}".encode()).hexdigest()
    return engine == "festival" or int(digest, 16) % 5 == 0


def as_recorded(names: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows of recordings that were not delivered anew: the neutral one at the end of every round."""
    out = np.zeros(len(names), bool)
    out[1:] = (labels[1:] == "neutral") & (labels[:-1] == "surprised") & (names[1:] == names[:-1])
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("plain", "rows", "fit"))
    parser.add_argument("--data", type=Path, help="folder with librispeech/ and speechocean/")
    parser.add_argument("--plain", type=Path, default=WORK / "plain")
    parser.add_argument("--rows", type=Path, default=WORK / "rows.npz")
    parser.add_argument("--out", type=Path, default=emotion.DATA)
    parser.add_argument("--times", type=int, default=4, help="deliveries of each utterance in each emotion")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop making rows after so long; run again to go on")
    args = parser.parse_args()
    if args.stage == "plain":
        print(f"{len(speech.keep(args.plain, args.data, COUNTS))} utterances in {args.plain}")
        return 0
    if args.stage == "rows":
        return rows(args.plain, args.rows, args.times, args.jobs, args.seconds)
    return fit(args.rows, args.out)


if __name__ == "__main__":
    sys.exit(main())
