"""The outcomes of the study: how each is computed from a job's stored predictions, and which jobs have it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from overtone.rated_sentences import DIMENSIONS, PERSPECTIVES, Array

from .answers import Key
from .design import CONTROL_SPLIT, PROMPTS, Job
from .estimates import At, Cell, mean_cell, pearson

Arrays = dict[str, Array]
Results = Mapping[Job, Arrays]
_SPLIT_TITLES = {"genre": "left-out genre", "document": "left-out documents", "official": "official test rows"}
_DIMENSION_TITLES = {"V": "valence", "A": "arousal", "D": "dominance"}
_CONDITION_TITLES = {"told": "words and cue told", "words": "true words", "heard": "recognised words"}
_SCORING_TITLES = {"sum": "likelihood", "mean": "likelihood per token", "less": "likelihood minus that without words"}


@dataclass(frozen=True)
class Outcome:
    """A named statistic, computed from the predictions of some jobs. `questions` is "" for an outcome on ratings."""

    name: str
    title: str
    split: str
    grouped: bool  # the part held out is a group with items of its own
    cell: Callable[[Arrays, Job], Cell]
    arms: Callable[[str], bool] = lambda arm: True
    margin: float = 0.0
    tuned: bool = False
    higher_is_better: bool = True
    questions: str = ""
    condition: str = ""
    scoring: str = ""
    level: int = 0
    ratings: str = "emobank"  # the predictions that an outcome without questions is read from

    @property
    def array(self) -> str:
        """The name of the predictions from which the outcome is computed."""
        return f"{self.questions}/{self.condition}" if self.questions else self.ratings


class Reader:
    """Converts a job's stored predictions to cells."""

    def __init__(self, key: Key) -> None:
        self.key = key

    def emobank(self, dimension: str, what: str) -> Callable[[Arrays, Job], Cell]:
        """Return a reader of ratings. `what` is r (the mean over perspectives), reader, writer, combined or gap."""
        d = DIMENSIONS.index(dimension)

        def cell(arrays: Arrays, job: Job) -> Cell:
            rows = self.key.tested(job)
            truth = self.key.means[rows, :, d]
            rated = arrays["emobank"][:, :, d]
            rated = rated if len(rated) == len(rows) else rated[rows]  # the base model rated all rows
            if what == "gap":
                pairs = [(rated[:, 0] - rated[:, 1], truth[:, 0] - truth[:, 1])]
            elif what == "combined":
                pairs = [(rated.mean(1), truth.mean(1))]
            else:
                chosen = [i for i, who in enumerate(PERSPECTIVES) if what in ("r", who)]
                pairs = [(rated[:, i], truth[:, i]) for i in chosen]
            found = [pearson(*pair) for pair in pairs]
            influence = np.mean([influence for _, influence in found], axis=0)
            return Cell(float(np.mean([r for r, _ in found])), influence, self.key.clusters[rows])

        return cell

    def choice(self, name: str, condition: str, scoring: str, level: int = 0) -> Callable[[Arrays, Job], Cell]:
        """Return a reader of choices. `scoring` is one of `design.SCORINGS`; level 0 means all questions."""
        keep = self.asked(name, level)
        answers = self.key.answers["dream" if name == "tuned" else name]

        def cell(arrays: Arrays, job: Job) -> Cell:
            return mean_cell(self.right(arrays, name, condition, scoring)[keep], answers.clusters[keep])

        return cell

    def right(self, arrays: Arrays, name: str, condition: str, scoring: str) -> Array:
        """Return, for all questions, 1 if the chosen option is right, else 0."""
        answers = self.key.answers["dream" if name == "tuned" else name]
        return np.asarray(answers.chosen(arrays, name, condition, scoring) == answers.gold, float)

    def asked(self, name: str, level: int) -> Array:
        """Return the indices of the questions of a level."""
        answers = self.key.answers["dream" if name == "tuned" else name]
        return np.flatnonzero((answers.levels == level) | (level == 0))


def perplexity(arrays: Arrays, job: Job) -> Cell:
    values = arrays["perplexity"].astype(float)
    return mean_cell(values, np.arange(len(values)).astype(str))


def two_prompts(arm: str) -> bool:
    return len(set(PROMPTS[arm])) == 2


def catalogue(key: Key, tests: dict[str, Any]) -> list[Outcome]:
    """Return all outcomes for which the key has answers. The primary outcomes of each kind come first."""
    reader = Reader(key)
    out = list(_ratings(reader, tests["margin_r"]))
    if "open" in key.answers:
        levels = set(key.answers["open"].levels.tolist())
        out += [outcome for outcome in _open(reader, tests["margin_open"]) if outcome.level in levels]
    if "dream" in key.answers:
        out += _dream(reader, tests["margin_dream"])
    for split in ("document", "official"):
        title = f"nats per token of DREAM's dev dialogues, {_SPLIT_TITLES[split]}"
        out.append(Outcome(
            f"nats per token{_of(split)}", title, split, False, perplexity, ratings="perplexity",
            higher_is_better=False,
        ))  # fmt: skip
    return out


def _of(split: str) -> str:
    return "" if split == "document" else " official"


def _ratings(reader: Reader, margin: float) -> Iterator[Outcome]:
    for split in ("genre", "document", "official"):
        for d in DIMENSIONS:
            title, grouped = f"r of {_DIMENSION_TITLES[d]}, {_SPLIT_TITLES[split]}", split != "official"
            yield Outcome(f"{split} {d}", title, split, grouped, reader.emobank(d, "r"), margin=margin)
            for what in ("reader", "writer", "combined"):
                named = f"{title}, {what if what == 'combined' else what + 's’'} labels"
                yield Outcome(f"{split} {d} {what}", named, split, grouped, reader.emobank(d, what), margin=margin)
            if d != "A":  # the gap of arousal has no reliability
                gap = f"r of the gap of {_DIMENSION_TITLES[d]}, {_SPLIT_TITLES[split]}"
                yield Outcome(f"{split} {d} gap", gap, split, grouped, reader.emobank(d, "gap"), two_prompts)


def _open(reader: Reader, margin: float) -> Iterator[Outcome]:
    def outcome(name: str, split: str, condition: str, scoring: str, level: int) -> Outcome:
        title = f"Overtone-Open, level {level}, {_CONDITION_TITLES[condition]}, by {_SCORING_TITLES[scoring]}"
        title += "" if split == "document" else ", official split"
        cell = reader.choice("open", condition, scoring, level)
        return Outcome(
            name + _of(split), title, split, False, cell, margin=margin,
            questions="open", condition=condition, scoring=scoring, level=level,
        )  # fmt: skip

    for split in ("document", "official"):
        for condition in ("told", "words", "heard"):
            yield outcome(f"open {condition}", split, condition, "less", 2)
            for scoring in ("sum", "mean"):
                yield outcome(f"open {condition} {scoring}", split, condition, scoring, 2)
            yield outcome(f"open level 1 {condition}", split, condition, "less", 1)


def _dream(reader: Reader, margin: float) -> Iterator[Outcome]:
    tuned = reader.choice("tuned", "words", "sum")
    yield Outcome(
        "dream tuned", "DREAM's test after the same tuning on its train", "document", False, tuned, margin=margin,
        tuned=True, questions="tuned", condition="words", scoring="sum",
    )  # fmt: skip
    for split in ("document", "official"):
        for scoring in ("sum", "mean", "less"):
            title = f"DREAM's test by {_SCORING_TITLES[scoring]}" + ("" if split == "document" else ", official split")
            cell = reader.choice("dream", "words", scoring)
            yield Outcome(
                f"dream {scoring}{_of(split)}", title, split, False, cell, margin=margin,
                questions="dream", condition="words", scoring=scoring,
            )  # fmt: skip


# ── cells ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def cells(results: Results, outcome: Outcome) -> dict[str, dict[At, Cell]]:
    """Return arm → (group, seed) → cell. The base model's cells cover the items of the outcome."""
    out: dict[str, dict[At, Cell]] = defaultdict(dict)
    for job, arrays in results.items():
        if job.split == CONTROL_SPLIT or not outcome.arms(job.arm) or job.tuned != outcome.tuned:
            continue
        if outcome.array not in arrays:
            continue  # the study had no such data
        if job.arm == "base" and not job.tuned:
            for at, one in _base(results, outcome, arrays):
                out["base"][at] = one
        elif job.split == outcome.split:
            out[job.arm][job.part if outcome.grouped else "", job.seed] = outcome.cell(arrays, job)
    return dict(out)


def _base(results: Results, outcome: Outcome, arrays: Arrays) -> Iterator[tuple[At, Cell]]:
    """Give the base model, which ran once, a cell for every cell of the other arms."""
    seen: dict[tuple[str, str], Cell] = {}
    for job in results:
        if job.split == outcome.split and job.arm != "base" and not job.tuned:
            at = job.split, job.part if outcome.grouped else ""
            if at not in seen:
                seen[at] = outcome.cell(arrays, job)
            yield (at[1], job.seed), seen[at]


def base_arrays(results: Results) -> Arrays | None:
    """Return the predictions of the base model; None if it has not run yet."""
    return next((a for job, a in results.items() if job.arm == "base" and job.split == "official"), None)
