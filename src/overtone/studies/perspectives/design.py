"""The design of the study: its file, arms, labels, and its jobs, the most important ones first.

Nothing here trains or needs torch. `study.toml` has the numbers and is fixed before the runs.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overtone.errors import DataError
from overtone.rated_sentences import FOLDS, PERSPECTIVES, Array, Bank

TOML = Path(__file__).with_name("study.toml")
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
CONTROL_SPLIT = "open-control"  # base tuned on half of Overtone-Open's scripts, tested on the other half
CONTROL_CONDITIONS = ("words", "told", "none")  # told is packed as a difference to words, so it comes after
SPLITS = ("genre", "document", "official")
OUTCOMES = ("emobank", "open", "dream", "perplexity", "tuned")
SCORINGS = ("sum", "mean", "less")  # of an option: its likelihood, per token, less that without the words
MATCHED = {"reader": 2, "writer": 3}  # ratings drawn for the arm `matched`
_ARM_NUMBER = {arm: i for i, arm in enumerate(PROMPTS)}
_TESTS = {"alpha": (0, 1), "equivalence": (0, 1), "margin_r": (0, 2), "margin_open": (0, 1), "margin_dream": (0, 1)}
_TRAINING = ("steps", "rate", "rows", "longest")


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
    """A study file with the SHA-256 of its bytes. Every result contains this hash."""

    sha256: str
    settings: dict[str, Any]

    @classmethod
    def read(cls, path: Path = TOML) -> Study:
        """Read a study file.

        Raises DataError if it is missing or damaged, or if it is not a design with these arms.
        """
        try:
            data = path.read_bytes()
            settings = tomllib.loads(data.decode())
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: not a study file: {error}") from error
        problems = list(_problems(settings))
        if problems:
            raise DataError(f"{path}: {'; '.join(problems)}. Start from a copy of {TOML.name} in {TOML.parent.name}/")
        return cls(hashlib.sha256(data).hexdigest(), settings)

    @property
    def seeds(self) -> list[int]:
        return list(self.settings["seeds"])

    @property
    def tests(self) -> dict[str, Any]:
        return dict(self.settings["tests"])

    def jobs(self, genres: Sequence[str], seeds: int | None = None) -> list[list[Job]]:
        """Return the jobs in groups, the most decisive group first.

        The base model comes first. For each seed, the jobs with a held-out fold of documents and those with held-out
        genres follow, so that a study that is cut short has complete seeds. The official split and the tuning on DREAM
        come last. `seeds` limits the jobs to the first seeds of the file. Raises DataError if the file has fewer.
        """
        splits, used = self.settings["splits"], self.first_seeds(seeds)

        def group(split: str, part: str, seed: int, tuned: bool = False) -> list[Job]:
            arms = ["base", *splits[split]["arms"]] if tuned else splits[split]["arms"]
            return [Job(split, part, arm, seed, tuned) for arm in arms]

        order = [[Job("official", "", "base", 0)]]
        for seed in used:
            order.append(group("document", str(seed % FOLDS), seed))
            order += [group("genre", genre, seed) for genre in genres]
        order += [group("official", "", seed) for seed in used]
        order += [group("document", str(seed % FOLDS), seed, True) for seed in used]
        return order

    def control_jobs(self, seeds: int | None = None) -> list[list[Job]]:
        """Return the jobs of the positive control on Overtone-Open. For each seed, the base model is tuned on each half
        of the scripts."""
        return [
            [Job(CONTROL_SPLIT, str(half), "base", seed, True)] for seed in self.first_seeds(seeds) for half in (0, 1)
        ]

    def first_seeds(self, count: int | None = None) -> list[int]:
        """Return the first `count` seeds of the file; None means all. Raises DataError if the file has fewer."""
        if count is not None and not 1 <= count <= len(self.seeds):
            raise DataError(
                f"{count} seeds: the study file fixes {len(self.seeds)}. For more, change `seeds` in a copy of the "
                "file and give it as --study, with another --out"
            )
        return self.seeds[:count]

    def outcomes(self, job: Job) -> tuple[str, ...]:
        """Return the names of the outcomes on which a job is evaluated. The base model is evaluated on all rows of
        EmoBank."""
        return ("tuned",) if job.tuned else tuple(self.settings["splits"][job.split]["outcomes"])


def _problems(settings: dict[str, Any]) -> list[str]:
    """Return what is wrong with the settings of a study file, nothing for a valid design."""
    tables = ("arms", "splits", "tests", "training", "dream_tuning")
    missing = [name for name in tables if not isinstance(settings.get(name), dict)]
    if missing:
        return [f"there is no table [{name}]" for name in missing]
    out = []
    seeds = settings.get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(type(s) is int and s >= 0 for s in seeds):
        out.append("`seeds` must be a list of whole numbers from 0")
    elif len(set(seeds)) < len(seeds):
        out.append("`seeds` has a number twice")
    if set(settings["arms"]) != set(PROMPTS):
        out.append(f"[arms] must have {', '.join(PROMPTS)}")
    if set(settings["splits"]) != set(SPLITS):
        out.append(f"the splits must be {', '.join(SPLITS)}")
    for name, split in settings["splits"].items():
        for field, known in (("arms", set(PROMPTS) - {"base"}), ("outcomes", set(OUTCOMES) - {"tuned"})):
            values = split.get(field) if isinstance(split, dict) else None
            if not isinstance(values, list) or not values or len(set(map(str, values))) < len(values):
                out.append(f"[splits.{name}] needs a list `{field}` without a name twice")
            elif unknown := [str(value) for value in values if value not in known]:
                out.append(f"[splits.{name}] has unknown {field}: {', '.join(unknown)}")
    for table in ("training", "dream_tuning"):
        out += [
            f"[{table}] needs a number above 0 for `{name}`"
            for name in _TRAINING
            if not _number(settings[table].get(name)) or settings[table][name] <= 0
        ]
    for name, (low, high) in _TESTS.items():
        value = settings["tests"].get(name)
        if not _number(value) or not low < value < high:
            out.append(f"[tests] needs a number between {low} and {high} for `{name}`")
    return out + _primary_problems(settings.get("primary"))


def _primary_problems(primary: Any) -> list[str]:
    if not isinstance(primary, list) or not primary:
        return ["there is no [[primary]] test"]
    out = []
    for number, test in enumerate(primary, 1):
        if not isinstance(test, dict) or {"outcome", "treatment", "control"} - set(test):
            out.append(f"[[primary]] number {number} needs outcome, treatment and control")
        elif unknown := [str(test[side]) for side in ("treatment", "control") if test[side] not in PROMPTS]:
            out.append(f"[[primary]] number {number} has unknown arms: {', '.join(unknown)}")
    return out


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ── what a job learns ─────────────────────────────────────────────────────────────────────────────────────────────────
def job_rows(bank: Bank, job: Job) -> tuple[Array, Array]:
    """Return the indices of a job's training rows and of its test rows. The base model has no training rows."""
    if job.arm == "base":
        return np.arange(0), np.arange(len(bank))
    return bank.rows(job.split, job.part)


def labels(bank: Bank, arm: str, rows: Sequence[int] | Array, seed: int) -> Array:
    """Return the labels that an arm learns from these rows, under its first and its second prompt: (n, 2, 3)."""
    rng = np.random.default_rng((seed, _ARM_NUMBER[arm]))
    reader, writer = (bank.means[who][rows] for who in PERSPECTIVES)
    if arm == "both":
        return np.stack((reader, writer), 1)
    if arm in PERSPECTIVES:
        return np.repeat(bank.means[arm][rows][:, None], 2, 1)
    if arm == "permuted":
        return np.stack((reader, writer), 1)[rng.permutation(len(rows))]
    if arm == "shuffled":
        pair = np.stack((reader, writer), 1)
        return np.where(rng.random(len(rows))[:, None, None] < 0.5, pair, pair[:, ::-1])
    if arm in ("merged", "matched", "pseudo"):
        return np.array([_relabelled(arm, [bank.ratings[who][i] for who in PERSPECTIVES], rng) for i in rows])
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


def tested_questions(clusters: Sequence[str] | Array, seed: int, half: int) -> Array:
    """Return, for each question, whether the positive control of this half is tested on it.

    The control is tested on the questions of half of the scripts, and learns the others. The two halves of a seed
    together test every question once.
    """
    scripts = sorted({str(one) for one in clusters})
    first = set(np.random.default_rng(seed).permutation(scripts)[: len(scripts) // 2].tolist())
    return np.array([(str(one) in first) == (half == 0) for one in clusters])


def soft_digits(label: float) -> list[tuple[int, float]]:
    """Convert a label from 1 to 5 to the digits' scale from 1 to 9. Return the two digits around it, with their
    weights."""
    value = min(9.0, max(1.0, 2 * label - 1))
    low = min(8, int(value))
    return [(low, low + 1 - value), (low + 1, value - low)]
