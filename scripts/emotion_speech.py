"""The speech that the emotion predictor learns from: plain utterances, then many deliveries of each, as features.

Plain speech is spoken by espeak-ng, flite and Festival (where they are installed), and cut from open recordings of
ordinary speech (LibriSpeech, speechocean762; CC BY 4.0). Each utterance is delivered in all seven emotions, with the
recipes of `overtone build` spread widely at random, and put into rooms, noise and channels. `fit_emotion.py`
calls this.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

from overtone import audio
from overtone.build import room
from overtone.build.delivery import NEUTRAL, ORDINARY_DBFS, RATE, RECIPES, Recipe, Voiced, analyse, deliver
from overtone.embedded._emotion_features import RATE as HEARD_AT
from overtone.embedded._emotion_features import features
from overtone.errors import OvertoneError
from scripts.fit_hearing import HELD_OUT_SENTENCES, SENTENCES

SEED = 41
LABELS = {  # ours → the recipe
    "angry": "angry", "disgusted": "disgust", "fearful": "fear", "happy": "happy", "neutral": "", "sad": "sad",
    "surprised": "surprise",
}  # fmt: skip
ESPEAK = (
    "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "f1", "f2", "f3", "f4", "f5", "linda", "steph", "steph2", "steph3",
    "john", "Andrea", "paul", "ian", "belinda", "adam", "anika", "Mike", "sandro", "rob", "Annie", "Alicia", "aunty",
    "david", "edward", "Michael", "marcelo", "pablo", "robert", "max", "caleb", "Alex", "Hugo", "travis", "zac",
)  # fmt: skip
RECORDED = ("librispeech", "speechocean")
FLITE = ("rms", "kal16", "awb", "slt", "kal")
FESTIVAL = ("slt", "kal", "ked")
WHO = ("The teacher", "My aunt", "Our driver", "The new nurse", "That man", "Your sister", "A student", "The baker")
DID = ("forgot", "brought back", "wanted", "asked about", "paid for", "found", "talked about", "looked for")
WHAT = ("the last ticket", "my old bicycle", "two bags of rice", "the garden key", "a map of the city", "your letter")
WHEN = ("this morning", "on the way home", "again", "before the break", "without saying a word", "at the station")
AROUND = {  # what differs between speakers and takes in any emotion: spread of a factor's logarithm, or of an amount
    "f0": 0.09, "range": 0.25, "rate": 0.09, "pauses": 0.2, "dynamics": 0.04, "clarity": 0.05, "formants": 0.04,
    "slope": 0.8, "rise": 0.5, "accent": 0.4, "stress": 0.5, "tilt": 0.6, "edge": 1.0,
}  # fmt: skip
ONE_SIDED = {"halts": 0.06, "drawl": 0.04, "breath": 0.05, "jitter": 0.002, "shimmer": 0.3, "tremor": 0.003}
CALMER = {"range": -0.25, "f0": -0.04, "slope": -0.4}  # readers are livelier than people at rest
FADE = 7.0  # dB at most by which speech loses level from its first word to its last


def sentences(rng: np.random.Generator) -> str:
    """A sentence of no feeling; every fourth time two."""
    fixed = (*SENTENCES, *HELD_OUT_SENTENCES)

    def one() -> str:
        if rng.random() < 0.5:
            return str(rng.choice(fixed))
        return f"{rng.choice(WHO)} {rng.choice(DID)} {rng.choice(WHAT)} {rng.choice(WHEN)}."

    return f"{one()} {one()}" if rng.random() < 0.25 else one()


def spoken(counts: dict[str, int]) -> Iterator[tuple[str, str, np.ndarray]]:
    """Engine, speaker and plain samples at the features' rate; an engine that is not installed says so and is left."""
    from overtone import registry
    from overtone.build.voices import How
    from overtone.build.voices._records import Speaker
    from overtone.embedded.espeak_voice import speak
    from overtone.spec import parse_spec

    rng = np.random.default_rng(SEED)
    for _ in range(counts.get("espeak", 0)):
        voice, size = str(rng.choice(ESPEAK)), rng.uniform(0.92, 1.12)
        accent = str(rng.choice(("en-us", "en-us", "en-gb", "en-gb-scotland")))
        samples, rate = speak(
            sentences(rng), voice=f"{accent}+{voice}", rate_wpm=int(rng.uniform(135, 190)),
            pitch=int(rng.uniform(30, 70)), range=int(rng.uniform(15, 80)), gap=int(rng.integers(1, 5)),
        )  # fmt: skip
        yield "espeak", voice, audio.resample(samples, round(rate * size), HEARD_AT)
    for name, voices in (("flite", FLITE), ("festival", FESTIVAL)):
        try:
            engine = registry.find("voices", parse_spec(name).kind).load(parse_spec(name))
        except OvertoneError as error:
            print(f"{name} is left out: {error}")
            continue
        for _ in range(counts.get(name, 0)):
            voice, size = str(rng.choice(voices)), rng.uniform(0.9, 1.15)
            speaker = Speaker(name, f"{voice}@{size:.2f}", "male", 1.0)
            how = How("", "", "", "", "", "")
            samples, rate = engine.speak(sentences(rng), speaker, how, pace=int(rng.uniform(135, 190)))
            yield name, voice, audio.resample(samples, rate, HEARD_AT)


def recorded(data: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """Open recordings of ordinary speech, the long ones in pieces of two to six seconds cut where nobody speaks."""
    with (data / "librispeech" / "transcripts.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            x = audio.resample(*audio.read(data / "librispeech" / row["file"]), HEARD_AT)
            for piece in _pieces(x):
                yield "librispeech", row["file"].partition("-")[0], piece
    with (data / "speechocean" / "labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            x = audio.resample(*audio.read(data / "speechocean" / row["file"]), HEARD_AT)
            yield "speechocean", row["speaker"], x


def _pieces(x: np.ndarray) -> Iterator[np.ndarray]:
    step = HEARD_AT // 100
    level = np.sqrt(np.square(x[: len(x) // step * step].reshape(-1, step)).mean(1))
    smooth = np.convolve(level, np.ones(9) / 9, "same")
    start = 0
    while len(smooth) - start > 200:
        if len(smooth) - start < 650:
            yield x[start * step :]
            return
        cut = start + 220 + int(np.argmin(smooth[start + 220 : start + 600]))
        yield x[start * step : cut * step]
        start = cut


def keep(folder: Path, data: Path | None, counts: dict[str, int]) -> list[Path]:
    """Write the plain utterances as FLAC, `ENGINE_SPEAKER_NUMBER.flac`, and list them."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [spoken(counts), *([recorded(data)] if data else [])]
    for source in sources:
        for number, (engine, speaker, x) in enumerate(source):
            scaled = x / (np.abs(x).max() + 1e-9) * 0.7
            soundfile.write(folder / f"{engine}_{speaker}_{number:04d}.flac", scaled, HEARD_AT, subtype="PCM_16")
    return sorted(folder.glob("*.flac"))


def spread(label: str, rng: np.random.Generator) -> Recipe:
    """A recipe somewhere around the emotion's: stronger or weaker as a whole, and each part by itself."""
    base = RECIPES[LABELS[label]] if LABELS[label] else NEUTRAL
    strength = rng.uniform(0.6, 1.8)
    changed: dict[str, float] = {}
    for name in (*AROUND, *ONE_SIDED):
        value, plain = getattr(base, name), getattr(NEUTRAL, name)
        own = strength * max(rng.normal(1, 0.4), 0)
        if plain == 1:
            changed[name] = float(value**own * np.exp(rng.normal(CALMER.get(name, 0), AROUND[name])))
        elif name in ONE_SIDED:
            changed[name] = float(value * own + abs(rng.normal(0, ONE_SIDED[name])) * (rng.random() < 0.5))
        else:
            changed[name] = float(value * own + rng.normal(CALMER.get(name, 0), AROUND[name]))
    changed["breath"] = min(changed["breath"], 0.6)
    changed["rate"] = float(np.clip(changed["rate"], 0.6, 1.5))
    changed["f0"] = float(np.clip(changed["f0"], 0.7, 2.0))
    changed["range"] = float(np.clip(changed["range"], 0.35, 2.6))
    return dataclasses.replace(NEUTRAL, **changed)


def faded(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(x * 10 ** (-rng.uniform(0, FADE) * np.linspace(0, 1, len(x)) / 20))


def channelled(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The sound as it may reach us: a room, a microphone's colour, a narrow line, noise, too much gain."""
    if rng.random() < 0.45:
        x = room.respond(x, RATE, rng, str(rng.choice(("small", "small", "car", "hall"))))
    spectrum, hertz = np.fft.rfft(x), np.fft.rfftfreq(len(x), 1 / RATE)
    places = np.log2(np.maximum(hertz, 50) / 1000)
    db = rng.normal(0, 0.8) * np.clip(places, -3, 2.5)
    for _ in range(2):
        db += rng.normal(0, 2.0) * np.exp(-0.5 * ((places - rng.uniform(-3, 3)) / rng.uniform(0.4, 1.2)) ** 2)
    if rng.random() < 0.15:
        db = np.where(hertz > rng.uniform(3400, 5500), -60, db)
    if rng.random() < 0.3:
        db = np.where(hertz < rng.uniform(80, 200), db - 18, db)
    x = np.fft.irfft(spectrum * 10 ** (db / 20), len(x))
    if rng.random() < 0.7:
        noise = np.fft.rfft(rng.standard_normal(len(x))) / np.maximum(hertz, 40) ** rng.uniform(0, 0.8)
        noise = np.fft.irfft(noise, len(x))
        x = x + noise * np.sqrt(np.mean(x**2) / np.mean(noise**2)) * 10 ** (-rng.uniform(18, 50) / 20)
    if rng.random() < 0.05:
        top = np.percentile(np.abs(x), 99.5)
        x = np.clip(x, -top, top)
    return np.asarray(x)


@functools.cache
def _heard(path: Path) -> np.ndarray:
    x, rate = soundfile.read(path)
    return audio.resample(x.astype(np.float32), rate, RATE).astype(np.float64)


def rows_of(job: tuple[Path, int]) -> tuple[list[str], list[np.ndarray]]:
    """One utterance in every emotion, so many times: labels and features. What was recorded is also heard as it is."""
    path, times = job
    rng = np.random.default_rng([SEED, int.from_bytes(hashlib.sha256(path.name.encode()).digest()[:4], "big")])
    x = _heard(path)
    plain: Voiced = analyse(x / (np.sqrt(np.mean(x**2)) + 1e-9) * 0.05)
    labels, found = [], []

    def add(label: str, made: np.ndarray) -> None:
        row = features((made / (np.abs(made).max() + 1e-9) * 0.6).astype(np.float32), RATE)
        if row is not None:
            labels.append(label)
            found.append(row)

    for _ in range(times):
        for label in LABELS:
            add(label, channelled(faded(deliver(plain, spread(label, rng), rng, 1.0, ORDINARY_DBFS), rng), rng))
        if path.name.startswith(RECORDED):
            add("neutral", channelled(x, rng))
    return labels, found
