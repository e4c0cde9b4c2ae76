"""Fit the small ear of `overtone.embedded.hearing`: make clips, fit, test on voices and sentences left out.

    python scripts/fit_hearing.py [--speakers 48] [--held-out 18]

The sentences below and the voices are none of the default cast's; the held-out part shares neither with the training
part. Writes src/overtone/embedded/hearing.json and the table of accuracies in hearing.py's docstring. Afterwards
`python -m bench.hearing_people --write` adds which cues it cannot hear in people.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
import numpy as np

from overtone import audio
from overtone.build.delivery import NEUTRAL, ORDINARY_DBFS, RATE, RECIPES, analyse, deliver
from overtone.build.scenes import SCENES, scene
from overtone.build.voices import held_out
from overtone.cues import BY_SLUG, TASK_OF_CATEGORY, UNDERSTANDING
from overtone.embedded import hearing
from overtone.embedded.espeak_voice import speak

SEED = 20
SHRINK = 0.15  # towards equal spread: how much of each class's own shape is not believed
TRAIN_VOICES = (
    ("en-us+m2", "male"), ("en-us+f1", "female"), ("en-us+m4", "male"), ("en-us+linda", "female"), ("en-us+m5", "male"),
    ("en-us+steph", "female"), ("en-us+john", "male"), ("en-us+Andrea", "female"), ("en-us+paul", "male"),
    ("en-us+steph2", "female"), ("en-us+ian", "male"), ("en-gb+f1", "female"),
)  # fmt: skip
HELD_OUT_VOICES = (
    ("en-us+m6", "male"), ("en-us+belinda", "female"), ("en-us+m8", "male"), ("en-us+f4", "female"),
    ("en-us+adam", "male"), ("en-us+anika", "female"),
)  # fmt: skip
SENTENCES = (
    "The library closes an hour early on Wednesdays.",
    "I put the blue folder on top of the filing cabinet.",
    "They are repainting the fence behind the school.",
    "My brother moved his desk closer to the door.",
    "The ferry leaves from the second pier at noon.",
    "We had lentil soup and some bread for lunch.",
    "There is a spare key under the flower pot.",
    "The meeting was moved to the room upstairs.",
    "Our neighbour keeps his ladder in the shed.",
    "I need to return these two parcels tomorrow.",
    "She ordered a new lamp for the reading corner.",
    "The museum has a small exhibition about maps.",
    "Someone left an umbrella on the back seat.",
    "The bakery changed its opening times in March.",
    "I wrote the number on the back of the card.",
    "They will deliver the washing machine on Friday.",
    "The path along the canal is open again.",
    "He keeps the receipts in a wooden box.",
    "We are going to plant tomatoes this year.",
    "The printer on our floor is out of paper.",
    "My cousin works in a hotel near the lake.",
    "The lift stops at every floor after six.",
    "I borrowed a drill from the man next door.",
    "The film starts later than I thought.",
    "There are three chairs left in the hall.",
    "She took the early bus to the airport.",
    "The recipe says to wait for twenty minutes.",
    "Our street is being measured for new pipes.",
    "I found the charger in the bottom drawer.",
    "The class has been full since last week.",
    "We changed the curtains in the front room.",
    "He is reading a book about old bridges.",
    "The post office moved across the square.",
    "I will bring the forms when I come over.",
    "The garage called about the winter tyres.",
    "They sell good apples at the corner stall.",
)
HELD_OUT_SENTENCES = (
    "The committee meets in the town hall at nine.",
    "I left my jacket in the changing room.",
    "Our train was standing outside the station.",
    "She is learning to repair bicycles on weekends.",
    "The heating will be checked next Monday morning.",
    "We counted eleven boats in the harbour.",
    "He asked whether the seat was taken.",
    "The garden gate needs a new hinge.",
    "I have an appointment with the dentist at four.",
    "They put the old sofa up for sale.",
)


Made = tuple[str, str, list[float]]  # cue, sex, features


def clips_of(job: tuple[str, str, str, int]) -> list[Made]:
    """Every cue in one voice and sentence. Levels and ratios vary, so that they are not learnt; the plain voice is
    there also as it comes from the engine, so that the vocoder's trace is not."""
    voice, sex, words, number = job
    rng = np.random.default_rng([SEED, number])
    samples, rate = speak(words, voice=voice, rate_wpm=160)
    plain = analyse(audio.resample(samples, rate, RATE).astype(np.float64))
    scale = 1.0 if sex == "male" else 1.16
    out: list[Made] = []
    for slug, recipe in RECIPES.items():
        if slug in ("male", "female") and slug != sex:
            continue
        made = deliver(plain, recipe, rng, scale, ORDINARY_DBFS + rng.uniform(-2, 2))
        out.append((slug, sex, features(made)))
    for slug in SCENES:
        made = deliver(plain, NEUTRAL, rng, scale, ORDINARY_DBFS)
        behind = scene(slug, made.size, RATE, rng)
        mixed = audio.mix(made, behind, RATE, rng.uniform(7, 14), speech_dbfs=rng.uniform(-24, -18))
        out.append((slug, sex, features(np.asarray(mixed))))
    for slug in (sex, "adult"):
        raw = audio.level(audio.resample(samples, rate, RATE), rng.uniform(-28, -20))
        out.append((slug, sex, features(np.asarray(raw))))
    return out


def features(samples: np.ndarray) -> list[float]:
    peak = float(np.abs(samples).max())
    x = (samples * min(1.0, 0.98 / peak)).astype(np.float32)
    return hearing.features(x, RATE).tolist()


def jobs(voices: tuple[tuple[str, str], ...], sentences: tuple[str, ...], count: int, first: int) -> list[tuple]:
    """A voice and its words each; every third speaker says two sentences, so that length is not learnt."""
    out = []
    for i in range(count):
        words = sentences[i % len(sentences)]
        if i % 3 == 2:
            words = f"{words} {sentences[(i + 5) % len(sentences)]}"
        out.append((*voices[i % len(voices)], words, first + i))
    return out


def fit(cues: np.ndarray, sexes: np.ndarray, x: np.ndarray) -> hearing.Hearing:
    """One discriminant for the sex, over every delivery but a child's or a whisper's; one for all cues."""
    centre, scale = np.nanmean(x, 0), np.nanstd(x, 0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    z = np.clip(np.nan_to_num((x - centre) / scale), -4, 4)
    grown = ~np.isin(cues, ("child", "whisper"))
    heads = (discriminant(sexes[grown], z[grown]), discriminant(cues, z))
    return hearing.Hearing(
        version=f"lda-{hashlib.sha256(msgspec.json.encode(heads)).hexdigest()[:8]}",
        features=hearing.FEATURES,
        centre=rounded(centre),
        scale=rounded(scale),
        heads=heads,
        table=(),
    )


def discriminant(labels: np.ndarray, z: np.ndarray) -> hearing.Head:
    """Means per class and one pooled covariance, shrunk towards its diagonal; equal priors."""
    classes = sorted(set(labels.tolist()))
    means = np.stack([z[labels == c].mean(0) for c in classes])
    within = z - means[[classes.index(c) for c in labels]]
    pooled = within.T @ within / (len(z) - len(classes))
    pooled = (1 - SHRINK) * pooled + SHRINK * np.diag(np.diag(pooled)) + 1e-3 * np.eye(len(pooled))
    weights = np.linalg.solve(pooled, means.T).T
    return hearing.Head(tuple(classes), tuple(map(rounded, weights)), rounded(-0.5 * (weights * means).sum(1)))


def rounded(values: np.ndarray) -> tuple[float, ...]:
    return tuple(np.round(values, 3).tolist())


def tested(ear: hearing.Hearing, labels: np.ndarray, x: np.ndarray) -> tuple[hearing.Accuracy, ...]:
    """Per task: the right cue among four (or as many as there are) drawn like a question's options."""
    rng = np.random.default_rng(SEED)
    rows = []
    for task in UNDERSTANDING:
        right, chance = [], []
        for label, row in zip(labels.tolist(), x, strict=True):
            own = BY_SLUG[label]
            if task == "coarse":
                others = [c for c in ear.classes if BY_SLUG[c].category != own.category and BY_SLUG[c].counted]
                if not own.counted or own.category in ("gender", "age"):
                    continue
                others = [c for c in others if BY_SLUG[c].category not in ("gender", "age")]
            elif TASK_OF_CATEGORY[own.category] != task:
                continue
            else:
                others = [c for c in ear.classes if TASK_OF_CATEGORY[BY_SLUG[c].category] == task and c != label]
            options = [label, *rng.permutation(others)[:3].tolist()]
            posterior = ear.posterior(row, options)
            right.append(max(posterior, key=posterior.__getitem__) == label)
            chance.append(1 / len(options))
        accuracy, guessing = (round(float(np.mean(values)), 3) for values in (right, chance))
        rows.append(hearing.Accuracy(task, len(right), accuracy, guessing))
    return tuple(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speakers", type=int, default=48, help="voices with a sentence each to train on")
    parser.add_argument("--held-out", type=int, default=18)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=hearing.DATA)
    args = parser.parse_args()
    timbre = {voice.partition("+")[2] for voice, _ in (*TRAIN_VOICES, *HELD_OUT_VOICES)}
    if used := timbre & {voice.partition("+")[2] for voice in held_out()}:
        sys.exit(f"these voices speak in the default cast: {sorted(used)}")
    work = jobs(TRAIN_VOICES, SENTENCES, args.speakers, 0)
    held = jobs(HELD_OUT_VOICES, HELD_OUT_SENTENCES, args.held_out, 10_000)
    with ProcessPoolExecutor(args.jobs) as pool:
        made = list(pool.map(clips_of, [*work, *held]))

    def columns(groups: list[list[Made]]) -> tuple[np.ndarray, ...]:
        return tuple(map(np.array, zip(*(clip for group in groups for clip in group), strict=True)))

    ear = fit(*columns(made[: len(work)]))
    cues, _, x = columns(made[len(work) :])
    ear = msgspec.structs.replace(ear, table=tested(ear, cues, x))
    args.out.write_bytes(msgspec.json.encode(ear) + b"\n")
    rows = "".join(f"| {row.task} | {row.clips} | {row.accuracy:.3f} | {row.chance:.3f} |\n" for row in ear.table)
    print(f"{ear.version}: {sum(map(len, made[: len(work)]))} clips to train on\n{rows}", end="")
    if args.out == hearing.DATA:
        source = Path(hearing.__file__)
        text = re.sub(r"(?<=\|---\|---\|---\|---\|\n)(\| .*\n)*", lambda _: rows, source.read_text("utf-8"), count=1)
        source.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
