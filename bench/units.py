"""Measure what the embedded speech tokens do to speech: word error rates, and how well the delivery is kept.

    python -m bench.units [--texts N] [--write]

The embedded recogniser transcribes replies of two texts that were not used in training, alternating the reply
emotions: as delivered, resynthesised by WORLD from the decoder's parameters, and resynthesised from units. `--write`
puts the tables into docs/explanation/speech-tokens.md.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np

from overtone import audio
from overtone.build import delivery
from overtone.echat.data import labels
from overtone.echat.speech import open_tokens, units
from overtone.embedded import recogniser
from overtone.metrics.wer import align
from scripts.train_units import UNSEEN, WORK, texts

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "speech-tokens.md"
WAYS = ("as delivered", "after the decoder's parameters", "after units")


def words(text: str) -> list[str]:
    return re.sub(r"[^a-z' ]", " ", text.lower()).split()


def heard(sound: units.Floats, rate: int) -> list[str]:
    quiet = np.zeros(rate // 4, np.float32)  # recognisers, as people, need a moment to tune in
    return words(recogniser.transcribe(np.concatenate([quiet, sound, quiet]), rate))


def remade(text: str, emotion: str) -> units.Floats:
    """The delivery from what the decoder would say if it were perfect: 69 numbers every 10 ms, timing and all."""
    rows = units.parameters(units.plain_speech(text))[::2]
    sound = delivery.deliver(units.to_voiced(rows, 180.0), units.emotion_recipe(emotion), np.random.default_rng(0))
    return sound.astype(np.float32)


def measured(count: int) -> str:
    tokens = open_tokens("units")
    errors: dict[tuple[str, str], int] = defaultdict(int)
    total: dict[str, int] = defaultdict(int)
    moved: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    taken = dict.fromkeys(("encode", "decode"), 0.0)
    seconds = 0.0
    emotions = list(labels.SPOKEN)
    drawn = texts(UNSEEN)
    for number, text in enumerate(map(" ".join, zip(drawn[:count], drawn[count : 2 * count], strict=True))):
        emotion = emotions[number % len(emotions)]
        said, rate = units.say(text, emotion)
        began = time.process_time()
        found = tokens.encode(said, rate)
        taken["encode"] += time.process_time() - began
        began = time.process_time()
        again, _ = tokens.decode(found, emotion)
        taken["decode"] += time.process_time() - began
        seconds += len(again) / rate
        total[emotion] += len(words(text))
        for way, sound in zip(WAYS, (said, remade(text, emotion), again), strict=True):
            errors[way, emotion] += align(words(text), heard(sound, rate)).errors
        inner = said[int(delivery.EDGE * rate) : -int(delivery.EDGE * rate)]
        true, ours = audio.measure(inner, rate), audio.measure(again, rate)
        if true.f0_hz and ours.f0_hz:
            row = (ours.f0_hz / true.f0_hz, ours.rms_dbfs - true.rms_dbfs, ours.seconds / true.seconds)
            moved[emotion].append(row)
    asked = sum(total.values())
    lines = ["| processing | word error rate |", "|---|---|"]
    lines += [f"| {way} | {sum(errors[way, e] for e in total) / asked:.1%} |" for way in WAYS]
    lines += ["", "| reply emotion | words | word error rate as delivered | after units | pitch | level | length |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for emotion in total:
        pitch, level, length = np.mean(moved[emotion], axis=0)
        shares = [f"{errors[way, emotion] / total[emotion]:.0%}" for way in (WAYS[0], WAYS[2])]
        sounds = f"× {pitch:.2f} | {level:+.1f} dB | × {length:.2f}"
        lines.append(f"| {emotion} | {total[emotion]} | {' | '.join(shares)} | {sounds} |")
    speeds = ", ".join(f"{name} {seconds / spent:.0f}×" for name, spent in taken.items())
    lines += ["", f"{asked} words, {seconds:.0f} s of speech. Speed relative to real time on one core: {speeds}."]
    return "\n".join([*lines, "", predictable()])


def predictable() -> str:
    """How many bits a token carries by itself, and knowing the one before, in the speech that units were trained on."""
    tokens = units.Units()
    bound = (
        f"{tokens.codes} codes at {tokens.rate:g} Hz: at most {np.log2(tokens.codes) * tokens.rate:.0f} bits per second"
    )
    if not (WORK / "speech.npz").exists():
        return bound + "."
    held = np.load(WORK / "speech.npz")
    heard, ends = held["heard"], held["ends"]
    rows = [tokens.codes_of(heard[a:b].astype(np.float32)) for a, b in pairwise(ends)]
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
    same = np.concatenate([row[1:] == row[:-1] for row in tested]).mean()
    return (
        f"{bound}. In held-out speech, a token carries {first:.1f} bits by its frequency alone and "
        f"{second:.1f} given the previous one; {same:.0%} repeat the previous one, {np.mean(one > 1):.0%} of the codes "
        "are used."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=55)
    parser.add_argument("--write", action="store_true")
    told = parser.parse_args()
    table = measured(told.texts)
    print(table)
    if told.write:
        before, _, rest = PAGE.read_text().partition("<!-- measured -->\n")
        PAGE.write_text(f"{before}<!-- measured -->\n{table}\n<!-- end -->{rest.partition('<!-- end -->')[2]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
