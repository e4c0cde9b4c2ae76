"""Measure what the embedded speech tokens do to speech: word error rates, and how well the delivery is kept.

    python -m bench.units [--texts N] [--quick] [--second FOLDER] [--write]

The embedded recogniser transcribes replies of two texts that were not used in training, alternating the reply emotions:
as delivered, and after each step towards units, in which one more thing is not the truth any more. `--quick` leaves out
all steps but the first and the units of a text. `--second` adds a second recogniser
(experiments/echat/moonshine_base.py). `--write` puts the tables into docs/explanation/speech-tokens.md.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from overtone import audio
from overtone.build import delivery
from overtone.echat.data import labels
from overtone.echat.speech import units
from overtone.embedded import recogniser
from overtone.metrics.wer import align
from overtone.stats import cluster
from scripts.train_units import UNSEEN, WORK, heard_and_meant, texts

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "speech-tokens.md"
WAYS = (
    "as delivered",
    "the decoder's parameters, all true",
    "true phonemes and lengths, through the decoder",
    "… with the true spectrum",
    "… with the true pitch",
    "… with the true voicing and noise",
    "units of a text: lengths rounded to codes",
    "units of the audio: phonemes recognised too",
)
UNITS, HEARD = WAYS[6:]


def words(text: str) -> list[str]:
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def padded(sound: units.Floats, rate: int) -> units.Floats:
    quiet = np.zeros(rate // 4, np.float32)  # recognisers, as people, need a moment to tune in
    return np.concatenate([quiet, sound, quiet])


def spoken_ways(tokens: units.Units, text: str, emotion: str) -> dict[str, units.Floats]:
    """The sound of a text in each way."""
    recipe = units.emotion_recipe(emotion)
    level = units.without_timing(recipe)
    plain = units.plain_speech(text)
    _, meant, names, frames = heard_and_meant(text, recipe, np.random.default_rng(0), plain)
    nearest = units.nearest_names(tokens.phonemes)
    made = tokens.rows(np.array([nearest(name) for name in names]), frames)
    true = meant.astype(np.float64)
    spectrum, noise, pitch = (made.copy() for _ in range(3))
    spectrum[:, : units.BANDS] = true[:, : units.BANDS]
    noise[:, units.BANDS : -1] = true[:, units.BANDS : -1]
    pitch[:, -1] = true[:, -1]
    said = units.say(text, emotion)[0]
    sounds = [said, *(tokens.speak_rows(rows, level) for rows in (true, made, spectrum, pitch, noise))]
    sounds += [tokens.decode(tokens.read(text, emotion), emotion)[0]]
    sounds += [tokens.decode(tokens.encode(said, delivery.RATE), emotion)[0]]
    return dict(zip(WAYS, sounds, strict=True))


def measured(count: int, second: Path | None, weights: Path, shown_ways: Sequence[str]) -> str:
    tokens = units.Units(weights)
    listeners = {"the embedded recogniser": recogniser.transcribe}
    if second:
        from experiments.echat.moonshine_base import MoonshineBase

        listeners["Moonshine base"] = MoonshineBase(second).transcribe
    errors: dict[tuple[str, str], list[int]] = defaultdict(list)
    asked: list[int] = []
    spoken_in: list[str] = []
    moved: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    taken = dict.fromkeys(("read", "encode", "decode"), 0.0)
    seconds, used = 0.0, 0
    emotions = list(labels.SPOKEN)
    drawn = texts(UNSEEN)
    for number, text in enumerate(map(" ".join, zip(drawn[:count], drawn[count : 2 * count], strict=True))):
        emotion = emotions[number % len(emotions)]
        ways = spoken_ways(tokens, text, emotion)
        asked.append(len(words(text)))
        spoken_in.append(emotion)
        for way, sound in ((way, ways[way]) for way in shown_ways):
            for name, transcribe in listeners.items():
                heard = words(transcribe(padded(sound, delivery.RATE), delivery.RATE))
                errors[name, way].append(align(words(text), heard).errors)
        began = time.process_time()
        found = tokens.read(text, emotion)
        taken["read"] += time.process_time() - began
        began = time.process_time()
        again, rate = tokens.decode(found, emotion)
        taken["decode"] += time.process_time() - began
        began = time.process_time()
        tokens.encode(ways[WAYS[0]], rate)
        taken["encode"] += time.process_time() - began
        seconds, used = seconds + len(again) / rate, used + len(found)
        inner = ways[WAYS[0]][int(delivery.EDGE * rate) : -int(delivery.EDGE * rate)]
        true, ours = audio.measure(inner, rate), audio.measure(again, rate)
        if true.f0_hz and ours.f0_hz:
            row = (ours.f0_hz / true.f0_hz, ours.rms_dbfs - true.rms_dbfs, ours.seconds / true.seconds)
            moved[emotion].append(row)
    lines: list[str] = []
    for name in listeners:
        lines += [f"| word error rate, {name} | rate (95 %) | more than as delivered, points |", "|---|---|---|"]
        for way in shown_ways:
            rate_of = cluster.ratio(errors[name, way], asked, range(count))
            more = np.subtract(errors[name, way], errors[name, WAYS[0]]).tolist()
            off = cluster.ratio(more, asked, range(count))
            points = f"{100 * off.value:+.1f} ({100 * off.low:+.1f} to {100 * off.high:+.1f})"
            shown = "" if way == WAYS[0] else points
            lines.append(f"| {way} | {_share(rate_of)} | {shown} |")
        lines.append("")
    lines += ["| reply emotion | words | word error rate as delivered | units | pitch | level | length |"]
    lines += ["|---|---|---|---|---|---|---|"]
    first = next(iter(listeners))
    for emotion in dict.fromkeys(spoken_in):
        own = [n for n, e in enumerate(spoken_in) if e == emotion]
        total = sum(asked[n] for n in own)
        pitch, level, length = np.mean(moved[emotion], axis=0)
        shares = [f"{sum(errors[first, way][n] for n in own) / total:.0%}" for way in (WAYS[0], UNITS)]
        sounds = f"× {pitch:.2f} | {level:+.1f} dB | × {length:.2f}"
        lines.append(f"| {emotion} | {total} | {' | '.join(shares)} | {sounds} |")
    speeds = ", ".join(f"{name} {seconds / spent:.0f}×" for name, spent in taken.items())
    size = f"{count} replies, {sum(asked)} words, {seconds:.0f} s of speech, {used / seconds:.1f} units per second."
    lines += ["", f"{size} Speed relative to real time on one core: {speeds}."]
    return "\n".join([*lines, "", predictable(tokens)])


def _share(value: cluster.Interval) -> str:
    return f"{value.value:.1%} ({value.low:.1%} to {value.high:.1%})"


def predictable(tokens: units.Units) -> str:
    """How many bits a unit carries by itself, and knowing the one before, in the speech that units were trained on."""
    bound = f"{tokens.codes} codes"
    if not (WORK / "speech.npz").exists():
        return bound + "."
    held = np.load(WORK / "speech.npz")
    nearest = units.nearest_names(tokens.phonemes)
    phonemes = np.array([nearest(name) for name in held["names"].tolist()])
    rows = [tokens.codes_of(phonemes[a:b], held["lengths"][a:b]) for a, b in pairwise(held["ends"])]
    cut = 4 * len(rows) // 5
    one, two = np.ones(tokens.codes), np.zeros((tokens.codes, tokens.codes))
    for row in rows[:cut]:
        np.add.at(one, row, 1)
        np.add.at(two, (row[:-1], row[1:]), 1)
    alone = one / one.sum()
    after = (two + 20 * alone) / (two.sum(1, keepdims=True) + 20)  # a few pretended sightings of everything
    tested = [row for row in rows[cut:] if len(row) > 1]
    first = -np.concatenate([np.log2(alone[row[1:]]) for row in tested]).mean()
    second = -np.concatenate([np.log2(after[row[:-1], row[1:]]) for row in tested]).mean()
    rate = sum(map(len, rows)) / held["lengths"].sum() * units.FRAMES
    return (
        f"{bound} of {len(tokens.phonemes)} phonemes. In held-out speech, a unit carries {first:.1f} bits by its "
        f"frequency alone and {second:.1f} given the previous one ({rate * second:.0f} bits per second); "
        f"{np.mean(one > 1):.0%} of the codes are used."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=110)
    parser.add_argument("--quick", action="store_true", help="only as delivered, and the units of a text")
    parser.add_argument("--second", type=Path, help="the folder of a second recogniser")
    parser.add_argument("--weights", type=Path, default=units.WEIGHTS, help="other weights than the packaged ones")
    parser.add_argument("--write", action="store_true")
    told = parser.parse_args()
    table = measured(told.texts, told.second, told.weights, (WAYS[0], UNITS) if told.quick else WAYS)
    print(table)
    if told.write:
        before, _, rest = PAGE.read_text().partition("<!-- measured -->\n")
        PAGE.write_text(f"{before}<!-- measured -->\n{table}\n<!-- end -->{rest.partition('<!-- end -->')[2]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
