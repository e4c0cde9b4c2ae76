"""The scenes' part of the realness measurement: real ones (ESC-50) and ours, alone and behind speech as clips are.

`families(data)` lists the real sounds of each family, `read` makes one of them a row, `built(number)` makes ours.
Behind speech, real scenes stand 10 dB below real speech (LibriSpeech, speechocean762) and ours below ours. A recording
is cut and looped by `sounds.Library`'s rules, so that the silence ESC-50 pads with says nothing. Recordings are
clustered by their source: takes A and B of one are not two. ESC-50 has no chatter and no children: real readers of
LibriSpeech and speechocean762, several at once, stand for them.
"""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np

from experiments.realness.rows import Row
from overtone import audio
from overtone.build.delivery import NEUTRAL, RATE, analyse, deliver
from overtone.build.real_sounds import stretch
from overtone.build.room import respond
from overtone.build.scenes import scene
from overtone.embedded.espeak_voice import speak
from scripts.fit_hearing import HELD_OUT_SENTENCES, SENTENCES, TRAIN_VOICES

SCENES = {
    "rain": "rain", "sea_waves": "waves", "thunderstorm": "thunder", "wind": "wind", "dog": "dog",
    "clapping": "applause", "clock_alarm": "alarm", "car_horn": "honking", "engine": "car", "train": "subway",
}  # fmt: skip
CLASSES = (*SCENES.values(), "chatter", "children")
CROWDS = 12  # of six grown-up readers or three or four children, all read at once; nobody reads in two of them
ALONE, BEHIND = "scene", "scene behind speech"
UNSEEN = "scene behind speech (unseen)"  # only recordings that the scenes were not shaped after
STATUS = BEHIND  # the family that decides whether a scene is validated
SNR_DB = 10.0
TAKES = 4  # a real scene is heard behind so many real speakers
_SECONDS = 5
_HERTZ, _SIZE, _HOP = 16_000, 1024, 256
_BANDS, _CEPSTRA = 24, 7  # the number that tells real from real best; ours were not looked at
Job = tuple[tuple[Path, ...], str, str, Path | None]  # scene, class, cluster, the speech in front of it


# ── measures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mel() -> np.ndarray:
    edges = 700 * (10 ** (np.linspace(np.log10(1 + 40 / 700), np.log10(1 + 7900 / 700), _BANDS + 2)) - 1)
    hertz = np.fft.rfftfreq(_SIZE, 1 / _HERTZ)
    weights = np.stack([np.interp(hertz, edges[k : k + 3], (0, 1, 0)) for k in range(_BANDS)], 1)
    return weights / np.maximum(weights.sum(0), 1e-9)


_MEL = _mel()
_COSINES = np.cos(np.pi / _BANDS * (np.arange(_BANDS) + 0.5)[:, None] * np.arange(_CEPSTRA)) / _BANDS


def heard(samples: np.ndarray, rate: int) -> list[float]:
    """What a scene sounds like: the spectrum in loud, usual and quiet moments, its flutter, the envelope's rhythm, and
    how tonal it is. The quiet moments are where what is behind a speaker shows."""
    x = audio.resample(np.asarray(samples, np.float32), rate, _HERTZ)
    x = x / (float(np.sqrt(np.mean(x * x))) + 1e-9)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, (0, _SIZE)), _SIZE)[::_HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(_SIZE).astype(np.float32), axis=1))).astype(np.float64)
    total = power.sum(1) + 1e-6
    bands = 10 * np.log10(power @ _MEL + 1e-4)
    quiet = bands[total <= np.percentile(total, 25)]
    parts = [np.percentile(bands, q, axis=0) for q in (10, 50, 90)]
    parts += [quiet.mean(0), quiet.std(0), np.abs(np.diff(bands, axis=0)).mean(0)]
    parts = [part @ _COSINES for part in parts]
    level = 10 * np.log10(total)
    parts.append(np.percentile(level, (5, 25, 75, 95)) - np.median(level))
    rhythm = np.abs(np.fft.rfft((level - level.mean()) * np.hanning(level.size))) ** 2
    turns = np.fft.rfftfreq(level.size, _HOP / _HERTZ)
    edges = (0.3, 1, 2, 4, 8, 16, 31)
    parts.append(np.array([rhythm[(turns >= a) & (turns < b)].sum() for a, b in pairwise(edges)]))
    parts[-1] = 10 * np.log10(parts[-1] / (rhythm.sum() + 1e-9) + 1e-4)
    log = np.log(power + 1e-4)
    flat = log.mean(1) - np.log(power.mean(1) + 1e-4)
    smooth = np.stack([np.roll(log, k, 1) for k in range(-8, 9, 2)]).mean(0)
    peaks = np.sort((log - smooth)[:, 8:-8], axis=1)[:, -5:].mean(1)
    still = total <= np.percentile(total, 25)
    parts.append(
        np.array([*np.percentile(flat, (10, 50, 90)), *np.percentile(peaks, (10, 50, 90)), peaks[still].mean()])
    )
    return np.concatenate(parts).tolist()


# ── real ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def families(data: Path) -> dict[str, list[Job]]:
    """The real sounds of each family of scenes; `read` takes each."""
    with (data / "esc50" / "labels.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["category"] in SCENES]
    with (data / "speechocean" / "labels.csv").open(newline="") as file:
        ages = {row["file"]: int(row["age"]) for row in csv.DictReader(file)}
    grown = sorted((data / "librispeech").glob("*.flac"))
    grown += [data / "speechocean" / name for name in sorted(ages) if ages[name] >= 18]
    young = [data / "speechocean" / name for name in sorted(ages) if ages[name] <= 11]
    rng = np.random.default_rng(7)
    grown, young = ([pool[i] for i in rng.permutation(len(pool))] for pool in (grown, young))
    scenes = [((data / "esc50" / row["file"],), SCENES[row["category"]]) for row in rows]
    scenes += [(tuple(grown[k::CROWDS][:6]), "chatter") for k in range(CROWDS)]
    scenes += [(tuple(young[k::CROWDS][:4]), "children") for k in range(CROWDS)]
    alone: list[Job] = []
    behind: list[Job] = []
    for i, (paths, slug) in enumerate(scenes):
        who = f"{slug} {paths[0].stem.split('-')[1]}" if slug in SCENES.values() else f"{slug} {paths[0].stem}"
        alone.append((paths, slug, who, None))
        front = [path for path in grown if path not in paths]
        behind += [(paths, slug, who, front[(TAKES * i + k) % len(front)]) for k in range(TAKES)]
    return {ALONE: alone, BEHIND: behind, UNSEEN: [job for job in behind if job[0][0].stem[:2] in ("3-", "4-")]}


def read(job: Job) -> Row:
    paths, slug, who, front = job
    rng = np.random.default_rng(sum(f"{paths[0].stem}{front.stem if front else ''}".encode()))
    n = _SECONDS * _HERTZ
    voice = None if front is None else audio.read(front, rate=_HERTZ)[0][:n]
    sounds = [
        stretch(audio.read(path, rate=_HERTZ)[0], n if voice is None else voice.size, _HERTZ, rng) for path in paths
    ]
    behind = np.sum([sound / np.sqrt(np.mean(sound**2)) for sound in sounds], 0)
    if len(paths) > 1:  # people who read, made a crowd: they stand in one room
        behind = respond(behind.astype(np.float64), _HERTZ, rng, "small" if rng.random() < 0.5 else "hall")
    return slug, who, heard(behind if voice is None else audio.mix(voice, behind, _HERTZ, SNR_DB), _HERTZ)


# ── ours ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def built(number: int) -> dict[str, list[Row]]:
    """Every class of every family once, by the same names; each number is a voice, a sentence and a seed."""
    rng = np.random.default_rng([32, number])
    voice, sex = TRAIN_VOICES[number % len(TRAIN_VOICES)]
    said = (*SENTENCES, *HELD_OUT_SENTENCES)
    words = f"{said[number % len(said)]} {said[(7 * number + 3) % len(said)]}"  # cut to five seconds: about a script
    samples, rate = speak(words, voice=voice, rate_wpm=160)
    plain = analyse(audio.resample(samples, rate, RATE).astype(np.float64))
    spoken = deliver(plain, NEUTRAL, rng, 1.0 if sex == "male" else 1.16)[: _SECONDS * RATE]
    alone, behind = [], []
    for slug in CLASSES:
        alone.append((slug, str(number), heard(scene(slug, _SECONDS * RATE, RATE, rng), RATE)))
        mixed = audio.mix(spoken, scene(slug, spoken.size, RATE, rng), RATE, SNR_DB)
        behind.append((slug, str(number), heard(mixed, RATE)))
    unseen = [row for row in behind if row[0] in SCENES.values()]
    return {ALONE: alone, BEHIND: behind, UNSEEN: unseen}
