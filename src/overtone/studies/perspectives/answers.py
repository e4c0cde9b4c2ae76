"""The answer key of a study: for each question the right option, its cluster, and the labels of the sentences.

It contains no text, so results can be analysed on any machine.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from overtone.errors import DataError
from overtone.paths import write_whole
from overtone.rated_sentences import PERSPECTIVES, Array, Bank

from .design import Job

KEY_FILE = "key.npz"


@dataclass(frozen=True)
class Answers:
    """The questions of one set. Each has a right option, the number of tokens of every option, a cluster and a
    level."""

    gold: Array  # (questions,)
    lengths: Array  # (questions, most options), 0 where a question has fewer
    clusters: Array  # (questions,) names
    levels: Array  # (questions,), 0 where a set has none
    baselines: dict[str, Array] = field(default_factory=dict)  # name → (questions,), 1 where that baseline is right

    @classmethod
    def of(
        cls,
        lengths: Sequence[Sequence[int]],
        gold: Sequence[int],
        clusters: Sequence[str],
        levels: Sequence[int],
        baselines: Mapping[str, Sequence[float] | Array] | None = None,
    ) -> Answers:
        """Build the answers. `lengths` has the number of tokens of each option, for every question."""
        table = np.zeros((len(lengths), max(map(len, lengths))))
        for i, row in enumerate(lengths):
            table[i, : len(row)] = row
        right = {name: np.asarray(values, float) for name, values in (baselines or {}).items()}
        return cls(np.array(gold), table, np.array(clusters), np.array(levels), right)

    def __len__(self) -> int:
        return len(self.gold)

    def chosen(self, arrays: dict[str, Array], name: str, condition: str, scoring: str) -> Array:
        """Return, for each question, the option with the highest score. `scoring` is one of `SCORINGS`."""
        there = self.lengths > 0
        scores = np.where(there, arrays[f"{name}/{condition}"], 0.0)
        if scoring == "mean":
            scores = scores / np.maximum(self.lengths, 1)
        elif scoring == "less":
            scores = scores - np.where(there, arrays[f"{name}/none"], 0.0)
        return np.asarray(np.where(there, scores, -np.inf).argmax(1))

    @cached_property
    def chance(self) -> Array:
        """The probability of guessing each question right."""
        return np.asarray(1 / (self.lengths > 0).sum(1))


@dataclass(frozen=True)
class Key:
    """The values that the analysis compares predictions with, and the SHA-256 of the data behind the results."""

    sha256: str
    ids: list[str]
    genres: list[str]
    splits: list[str]
    clusters: Array  # (sentences,) the document of each
    folds: Array  # (sentences,)
    means: Array  # (sentences, 2, 3): readers' and writers' labels
    answers: dict[str, Answers]  # open, dream

    @classmethod
    def of(cls, sha256: str, bank: Bank, answers: dict[str, Answers]) -> Key:
        means = np.stack([np.asarray(bank.means[who], float) for who in PERSPECTIVES], 1)
        clusters, folds = np.array(bank.clusters), bank.folds()
        return cls(sha256, list(bank.ids), list(bank.genres), list(bank.splits), clusters, folds, means, answers)

    def tested(self, job: Job) -> Array:
        """Return the indices of the sentences that a job's split holds out."""
        if job.split == "genre":
            return np.flatnonzero(np.array(self.genres) == job.part)
        if job.split == "document":
            return np.flatnonzero(self.folds == int(job.part))
        return np.flatnonzero(np.array(self.splits) == "test")

    def write(self, path: Path) -> None:
        """Write the key atomically, as one file."""
        arrays: dict[str, Array] = {"clusters": self.clusters, "folds": self.folds, "means": self.means}
        about: dict[str, Any] = {
            "sha256": self.sha256, "ids": self.ids, "genres": self.genres, "splits": self.splits, "sets": {},
        }  # fmt: skip
        for name, answers in self.answers.items():
            about["sets"][name] = list(answers.baselines)
            for part in ("gold", "lengths", "clusters", "levels"):
                arrays[f"{name}/{part}"] = getattr(answers, part)
            arrays |= {f"{name}/baseline/{of}": right for of, right in answers.baselines.items()}
        file = io.BytesIO()
        np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)  # type: ignore[arg-type]
        write_whole(path, file.getvalue())

    @classmethod
    def read(cls, path: Path) -> Key:
        """Read a key. Raises DataError for a file that is missing or damaged."""
        try:
            with np.load(path) as file:
                about = json.loads(str(file["about"]))
                answers = {
                    name: Answers(
                        **{part: file[f"{name}/{part}"] for part in ("gold", "lengths", "clusters", "levels")},
                        baselines={of: file[f"{name}/baseline/{of}"] for of in baselines},
                    )
                    for name, baselines in about.pop("sets").items()
                }
                return cls(**about, **{part: file[part] for part in ("clusters", "folds", "means")}, answers=answers)
        except FileNotFoundError:
            raise DataError(
                f"{path}: missing. It holds the answers that results are compared with, and `overtone study "
                "perspectives` writes it. For results without it, give --data and --dream"
            ) from None
        except Exception as error:  # a damaged archive fails in many ways
            raise DataError(f"{path}: not a study's answer key, or damaged: {error}. Run the study again") from error
