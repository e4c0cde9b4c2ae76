"""Measure at which step the embedded speech tokens lose words: the truth takes the place of one step at a time.

    python -m bench.unit_losses [--texts N]

The embedded recogniser transcribes replies of two texts that were not used in training, alternating the reply emotions.
"""

from __future__ import annotations

import argparse

import numpy as np

from bench.units import heard, words
from overtone.build import delivery
from overtone.build.recipes import Recipe
from overtone.echat.data import labels
from overtone.echat.speech import units as u
from overtone.metrics.wer import align
from overtone.stats import cluster
from scripts.train_units import UNSEEN, heard_and_meant, texts

PARTS = {
    "spectrum": slice(0, u.BANDS),
    "noise": slice(u.BANDS, u.BANDS + u.NOISES),
    "voicing": slice(-2, -1),
    "pitch": slice(-1, None),
}
UNITS = "units"


def speak(rows: u.Array, recipe: Recipe, pitch: float) -> u.Floats:
    voiced = u.to_voiced(rows, pitch)
    made = delivery.deliver(voiced, u.without_timing(recipe), np.random.default_rng(0))
    return made.astype(np.float32)


def slow(rows: u.Array) -> u.Array:
    """Rows as means of 40 ms, joined by lines; voicing does not change within 40 ms."""
    means = rows[: len(rows) // u.STRIDE * u.STRIDE].reshape(-1, u.STRIDE, rows.shape[1]).mean(1)
    at, centres = np.arange(len(means) * u.STRIDE), np.arange(len(means)) * u.STRIDE + (u.STRIDE - 1) / 2
    out = np.stack([np.interp(at, centres, column) for column in means.T], 1)
    out[:, -2] = np.repeat(means[:, -2], u.STRIDE)
    return out


def spoken_ways(tokens: u.Units, text: str, emotion: str) -> dict[str, u.Floats]:
    """The sound of a text in each way."""
    weights, recipe = tokens._w, u.emotion_recipe(emotion)
    plain = u.plain_speech(text)
    seen, meant = heard_and_meant(plain, recipe, np.random.default_rng(0))
    between = u.encoder(weights, seen)
    size = u.STRIDE * len(between)
    true = np.pad(meant.astype(np.float64), ((0, max(size - len(meant), 0)), (0, 0)), "edge")[:size]
    free, coded = (
        u.decoder(weights, z) * weights["scale"] + weights["mean"]
        for z in (between, weights["codes"][tokens.codes_of(seen)])
    )
    rows: dict[str, u.Array] = {"the decoder's parameters, all true": true}
    rows["all parameters as means of 40 ms"] = slow(true)
    rows["the networks without codes between them"] = np.asarray(free, np.float64)
    rows[UNITS] = np.asarray(coded, np.float64)
    for name, part in PARTS.items():
        mixed = rows[UNITS].copy()
        mixed[:, part] = true[:, part]
        rows[f"units with the true {name}"] = mixed
    said = delivery.deliver(plain, recipe, np.random.default_rng(0)).astype(np.float32)
    pitch = float(weights["pitch"])
    sounds = {name: speak(one, recipe, pitch) for name, one in rows.items()}
    return {"as delivered": said} | sounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=40)
    count = parser.parse_args().texts
    tokens, emotions, drawn = u.Units(), list(labels.SPOKEN), texts(UNSEEN)
    errors: dict[str, list[float]] = {}
    asked: list[float] = []
    for number, text in enumerate(map(" ".join, zip(drawn[:count], drawn[count : 2 * count], strict=True))):
        asked.append(len(words(text)))
        for way, sound in spoken_ways(tokens, text, emotions[number % len(emotions)]).items():
            errors.setdefault(way, []).append(align(words(text), heard(sound, delivery.RATE)).errors)
    print("| processing | word error rate | less than units, points |\n|---|---|---|")
    for way, found in errors.items():
        rate = cluster.ratio(found, asked, range(count))
        less = cluster.ratio(np.subtract(errors[UNITS], found).tolist(), asked, range(count))
        shown = f"{100 * less.value:.1f} ({100 * less.low:.1f} to {100 * less.high:.1f})"
        print(f"| {way} | {rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%}) | {shown} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
