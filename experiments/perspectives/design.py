"""The design of the study: its arms, labels, splits and jobs, in the order in which they are worth their minutes.

Nothing here trains or needs torch. `study.toml` has the numbers; `prepare.py` writes the data that is read here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
TOML = Path(__file__).with_name("study.toml")
DIMENSIONS = ("V", "A", "D")
PERSPECTIVES = ("reader", "writer")
PROMPTS = {  # arm → the prompts of its two rows per sentence
    "both": PERSPECTIVES,
    "pseudo": PERSPECTIVES,
    "shuffled": PERSPECTIVES,
    "permuted": PERSPECTIVES,
    "base": PERSPECTIVES,
    "reader": ("reader", "reader"),
    "writer": ("writer", "writer"),
    "merged": ("merged", "merged"),
    "matched": ("merged", "merged"),
}
SCORINGS = ("sum", "mean", "less")  # of an option: its likelihood, per token, less that without the words
MATCHED = {"reader": 2, "writer": 3}  # ratings drawn for the arm `matched`
_ARM_NUMBER = {arm: i for i, arm in enumerate(PROMPTS)}


@dataclass(frozen=True)
class Job:
    """One training run with its outcomes. `part` is the genre or fold held out; `tuned` adds the tuning on DREAM."""

    split: str
    part: str
    arm: str
    seed: int
    tuned: bool = False

    @property
    def key(self) -> str:
        name = "-".join(filter(None, (self.split, self.part)))
        return f"{name}.{self.arm}.{self.seed}" + (".tuned" if self.tuned else "")

    @property
    def group(self) -> tuple[str, str, int, bool]:
        """Jobs of one group see the same sentences in the same order, so they can be trained in lockstep."""
        return self.split, self.part, self.seed, self.tuned


@dataclass(frozen=True)
class Study:
    """`study.toml`, with the SHA-256 of its bytes."""

    sha256: str
    settings: dict[str, Any]

    @classmethod
    def read(cls, path: Path = TOML) -> Study:
        data = path.read_bytes()
        settings = tomllib.loads(data.decode())
        unknown = {a for split in settings["splits"].values() for a in split["arms"]} - set(settings["arms"])
        if unknown or set(settings["arms"]) != set(PROMPTS):
            raise ValueError(f"{path}: arms must be {sorted(PROMPTS)}; unknown in splits: {sorted(unknown)}")
        return cls(hashlib.sha256(data).hexdigest(), settings)

    def jobs(self, genres: Sequence[str]) -> list[list[Job]]:
        """Return groups of jobs, the most decisive first: per seed the held-out genres and the documents' fold with all
        outcomes, then the official split, then DREAM's tuning. A study that is cut short has whole seeds."""
        splits, seeds = self.settings["splits"], self.settings["seeds"]

        def group(split: str, part: str, seed: int, tuned: bool = False) -> list[Job]:
            arms = ["base", *splits[split]["arms"]] if tuned else splits[split]["arms"]
            return [Job(split, part, arm, seed, tuned) for arm in arms]

        order = [[Job("official", "", "base", 0)]]
        for seed in seeds:
            order.append(group("document", str(seed), seed))
            order += [group("genre", genre, seed) for genre in genres]
        order += [group("official", "", seed) for seed in seeds]
        order += [group("document", str(seed), seed, True) for seed in seeds]
        return order

    def outcomes(self, job: Job) -> tuple[str, ...]:
        """Return the names of the outcomes that a job is evaluated on. The base model has all rows of EmoBank."""
        return ("tuned",) if job.tuned else tuple(self.settings["splits"][job.split]["outcomes"])


@dataclass(frozen=True)
class Bank:
    """EmoBank's sentences that have both perspectives: (n,) lists, (n, 3) means, (k, 3) ratings per sentence."""

    ids: list[str]
    documents: list[str]
    genres: list[str]
    splits: list[str]
    means: dict[str, Array]
    ratings: dict[str, list[Array]]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def clusters(self) -> list[str]:
        """The document of each row. SemEval's headlines have nothing in common, so each is its own."""
        return [i if g == "SemEval" else d for i, d, g in zip(self.ids, self.documents, self.genres, strict=True)]

    def folds(self, count: int = 5) -> Array:
        """Return a fold per row: documents go whole, the largest first, to the fold with the fewest rows of its genre
        (and then the fewest rows). Equal texts can be in two documents; they are too few to matter."""
        sizes: dict[tuple[str, str], int] = defaultdict(int)
        for genre, cluster in zip(self.genres, self.clusters, strict=True):
            sizes[genre, cluster] += 1
        rows: dict[str, list[int]] = {genre: [0] * count for genre in self.genres}
        total = [0] * count
        fold_of = {}
        for (genre, cluster), size in sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0])):
            fold = min(range(count), key=lambda k: (rows[genre][k], total[k], k))
            rows[genre][fold] += size
            total[fold] += size
            fold_of[cluster] = fold
        return np.array([fold_of[cluster] for cluster in self.clusters])

    def rows(self, job: Job) -> tuple[Array, Array]:
        """Return the indices of the rows that a job learns and of those that it is tested on."""
        if job.arm == "base":
            return np.arange(0), np.arange(len(self))
        if job.split == "official":
            held = np.array([split == "test" for split in self.splits])
            learnt = np.array([split == "train" for split in self.splits])
            return np.flatnonzero(learnt), np.flatnonzero(held)
        if job.split == "document":
            held = self.folds() == int(job.part)
        elif job.split == "genre":
            held = np.array([genre == job.part for genre in self.genres])
        else:
            raise ValueError(f"there is no split {job.split!r}")
        return np.flatnonzero(~held), np.flatnonzero(held)

    def labels(self, arm: str, rows: Sequence[int] | Array, seed: int) -> Array:
        """Return what an arm learns of these rows: (n, 2, 3), the labels under the first and the second prompt."""
        rng = np.random.default_rng((seed, _ARM_NUMBER[arm]))
        reader, writer = (self.means[who][rows] for who in PERSPECTIVES)
        if arm == "both":
            return np.stack((reader, writer), 1)
        if arm in PERSPECTIVES:
            return np.repeat(self.means[arm][rows][:, None], 2, 1)
        if arm == "permuted":
            return np.stack((reader, writer), 1)[rng.permutation(len(rows))]
        if arm == "shuffled":
            pair = np.stack((reader, writer), 1)
            return np.where(rng.random(len(rows))[:, None, None] < 0.5, pair, pair[:, ::-1])
        if arm in ("merged", "matched", "pseudo"):
            return np.array([_relabelled(arm, [self.ratings[who][i] for who in PERSPECTIVES], rng) for i in rows])
        raise ValueError(f"the arm {arm!r} learns nothing")


def _relabelled(arm: str, ratings: Sequence[Array], rng: np.random.Generator) -> Array:
    """Return one sentence's two labels, (2, 3), from its single ratings by readers and by writers."""
    if arm == "matched":
        ratings = [rng.permutation(r)[: MATCHED[who]] for who, r in zip(PERSPECTIVES, ratings, strict=True)]
    pooled = np.concatenate(ratings)
    if arm != "pseudo":
        return np.repeat(pooled.mean(0)[None], 2, 0)
    mixed, first = rng.permutation(pooled), len(ratings[0])
    return np.stack((mixed[:first].mean(0), mixed[first:].mean(0)))


def tested_questions(about: Sequence[dict[str, Any]], seed: int, half: int) -> Array:
    """Return which questions the positive control of this half is tested on: those of half of the scripts.

    The control learns the others. Both halves of a seed together test every question once.
    """
    scripts = sorted({str(one["cluster"]) for one in about})
    first = set(np.random.default_rng(seed).permutation(scripts)[: len(scripts) // 2].tolist())
    return np.array([(str(one["cluster"]) in first) == (half == 0) for one in about])


# ── prepared data ─────────────────────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Questions:
    """Multiple choice as tokens: prompts per condition, the options of each question, and what the analysis needs."""

    prompts: dict[str, list[list[int]]]
    options: list[list[list[int]]]
    gold: list[int]
    about: list[dict[str, Any]]  # cluster, level, …

    @cached_property
    def lengths(self) -> Array:
        """The tokens of each option, (questions, most options); 0 where there is none."""
        out = np.zeros((len(self.options), max(map(len, self.options))))
        for i, options in enumerate(self.options):
            out[i, : len(options)] = list(map(len, options))
        return out

    def chosen(self, arrays: dict[str, Array], name: str, condition: str, scoring: str) -> Array:
        """Return the option that each question's log-likelihoods choose, by one of `SCORINGS`."""
        there = self.lengths > 0
        scores = np.where(there, arrays[f"{name}/{condition}"], 0.0)
        if scoring == "mean":
            scores = scores / np.maximum(self.lengths, 1)
        elif scoring == "less":
            scores = scores - np.where(there, arrays[f"{name}/none"], 0.0)
        return np.asarray(np.where(there, scores, -np.inf).argmax(1))


@dataclass(frozen=True)
class Data:
    """Everything that `prepare.py` wrote, with the SHA-256 of the file."""

    sha256: str
    bank: Bank
    heads: dict[str, list[int]]  # prompt name → its first tokens; all have the same length
    tails: list[list[int]]  # per sentence, the rest of the prompt
    digits: list[int]  # the tokens of 0 to 9
    space: int
    replies: list[tuple[list[int], list[int]]]  # the base model's: prompt, reply
    questions: dict[str, Questions]  # open, dream, dream-train
    windows: list[list[int]]  # of plain text, for the perplexity

    @classmethod
    def read(cls, folder: Path) -> Data:
        raw = (folder / "data.json.gz").read_bytes()
        found = json.loads(gzip.decompress(raw))
        bank = found.pop("bank")
        for part, kind in (("means", np.array), ("ratings", lambda rows: [np.array(r, float) for r in rows])):
            bank[part] = {who: kind(values) for who, values in bank[part].items()}
        questions = {name: Questions(**value) for name, value in found.pop("questions").items()}
        replies = [(prompt, reply) for prompt, reply in found.pop("replies")]
        return cls(hashlib.sha256(raw).hexdigest(), Bank(**bank), questions=questions, replies=replies, **found)


def soft_digits(label: float) -> list[tuple[int, float]]:
    """Return the two digits around a label from 1 to 5 on the scale from 1 to 9, with their weights."""
    value = min(9.0, max(1.0, 2 * label - 1))
    low = min(8, int(value))
    return [(low, low + 1 - value), (low + 1, value - low)]
