"""Fit the heads of an ear, and test each on speakers and on whole corpora that it was not fitted to."""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.ear import logistic
from overtone.ear.clips import Clip
from overtone.ear.folds import folds_of
from overtone.embedded.fitted_ear import HEADS, HeadFacts, HeadReport, Linear, Recall
from overtone.pool import spread
from overtone.stats import bootstrap, cluster

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Flags = NDArray[np.bool_]
Progress = Callable[[int, int], None]

STRENGTHS = (3.0, 0.3, 0.03)  # of the penalty; the inner folds choose
_INNER = 3
_UNSURE = 0.1  # the share of clips of speakers left out that is called unknown
_DRAWS = 2000


class Head(Struct, frozen=True):
    """The rows of one head: their numbers among the features, and their labels."""

    name: str
    classes: tuple[str, ...]
    at: Codes  # rows of the features
    target: Codes
    speakers: tuple[str, ...]
    corpora: tuple[str, ...]

    @property
    def possible(self) -> Flags:
        """Which classes each row could have. A corpus without an emotion says nothing about that emotion, because its
        speakers were not asked for it; other classes exclude each other everywhere."""
        out = np.ones((self.target.size, len(self.classes)), bool)
        if self.name == "emotion":
            home = np.array(self.corpora)
            for corpus in set(self.corpora):
                known = set(self.target[home == corpus].tolist())
                out[home == corpus] = [k in known for k in range(len(self.classes))]
        return out


class _Task(Struct, frozen=True):
    """One fit of a head: to rows of `fit`, tested on rows of `test` (numbers of the head's rows)."""

    features: str  # a .npy file
    head: Head
    fit: Codes
    test: Codes
    seed: int
    part: str  # "fold", "final" or a corpus


class _Done(Struct, frozen=True):
    task: _Task
    linear: Linear
    strength: float
    likely: Array  # (test rows, classes)


def heads_of(clips: Sequence[Clip]) -> list[Head]:
    """Return the heads that the clips' labels allow, in the order of HEADS."""
    out = []
    for name in HEADS:
        at = [n for n, clip in enumerate(clips) if name in clip.labels]
        if not at:
            continue
        classes = tuple(sorted({clips[n].labels[name] for n in at}))
        out.append(
            Head(
                name,
                classes,
                np.array(at, np.intp),
                np.array([classes.index(clips[n].labels[name]) for n in at], np.intp),
                tuple(clips[n].speaker for n in at),
                tuple(clips[n].corpus for n in at),
            )
        )
    return out


def fit_heads(
    heads: Sequence[Head], rows: NDArray[np.float32], folds: int, seed: int, jobs: int, progress: Progress
) -> list[tuple[HeadFacts, Linear]]:
    """Fit each head to all its rows, and report it on folds of speakers and on corpora left out."""
    with tempfile.TemporaryDirectory(prefix="overtone-ear-") as folder:
        file = Path(folder) / "features.npy"
        np.save(file, rows)
        tasks = [task for head in heads for task in _tasks(head, str(file), folds, seed)]
        # The largest first, so that no process ends much later than the others.
        tasks.sort(key=lambda task: -task.fit.size * len(task.head.classes))
        done: list[_Done] = []
        progress(0, len(tasks))
        for one in spread(_fitted, tasks, jobs):
            done.append(one)
            progress(len(done), len(tasks))
    return [_assembled(head, [one for one in done if one.task.head.name == head.name], seed) for head in heads]


def _tasks(head: Head, file: str, folds: int, seed: int) -> list[_Task]:
    every = np.arange(head.target.size)
    names = [head.classes[k] for k in head.target]
    fold = folds_of(head.speakers, names, head.corpora, folds, seed)
    out = [_Task(file, head, every, every[:0], seed, "final")]
    out += [
        _Task(file, head, np.flatnonzero(fold != k), np.flatnonzero(fold == k), seed, "fold") for k in np.unique(fold)
    ]
    home = np.array(head.corpora)
    for corpus in sorted(set(head.corpora)):
        left = head.target[home != corpus]
        if np.unique(left).size == len(head.classes) and np.unique(head.target[home == corpus]).size > 1:
            out.append(_Task(file, head, np.flatnonzero(home != corpus), np.flatnonzero(home == corpus), seed, corpus))
    return out


def _fitted(task: _Task) -> _Done:
    """Choose the strength of the penalty on inner folds of the speakers, then fit to all rows of `fit`."""
    head = task.head
    x = np.load(task.features, mmap_mode="r")[head.at].astype(np.float64)
    fit = task.fit
    names = [head.classes[k] for k in head.target[fit]]
    inner = folds_of([head.speakers[n] for n in fit], names, [head.corpora[n] for n in fit], _INNER, task.seed)
    heard = np.zeros((len(STRENGTHS), fit.size), np.intp)
    for k in np.unique(inner):
        for n, (_, linear) in enumerate(_path(head, x, fit[inner != k], STRENGTHS)):
            heard[n, inner == k] = linear.scores(x[fit[inner == k]]).argmax(1)
    right = np.array([mean_recall(head.target[fit], row) for row in heard])
    best = int(right.argmax())
    strength, linear = _path(head, x, fit, STRENGTHS[: best + 1])[-1]
    return _Done(task, linear, strength, _likely(linear.scores(x[task.test])))


def _path(head: Head, x: Array, at: Codes, strengths: Sequence[float]) -> list[tuple[float, Linear]]:
    """Return a fit to the rows `at` for each strength, each starting from the one before."""
    known = np.isfinite(x[at])
    count = np.maximum(known.sum(0), 1)
    centre = np.where(known, x[at], 0.0).sum(0) / count
    scale = np.sqrt(np.square(np.where(known, x[at] - centre, 0.0)).sum(0) / count)
    scale = np.where(scale > 1e-6, scale, 1.0)
    empty = Linear(centre, scale, np.zeros((0, 0)), np.zeros(0))
    z = empty.standardised(x[at]).astype(np.float32)  # half the memory to move, twice as fast
    weights = _row_weights(head.target[at], [head.speakers[n] for n in at], len(head.classes))
    fitted: Array | None = None
    out = []
    for strength in strengths:
        fitted = logistic.fit(z, head.target[at], head.possible[at], weights, strength, fitted)
        out.append((strength, Linear(centre, scale, fitted[:, :-1], fitted[:, -1])))
    return out


def _row_weights(target: Codes, speakers: Sequence[str], classes: int) -> Array:
    """Return weights that give each class the same total, and each speaker the root of its number of clips."""
    _, codes, counts = np.unique(speakers, return_inverse=True, return_counts=True)
    weights = 1 / np.sqrt(counts[codes].astype(np.float64))
    totals = np.bincount(target, weights=weights, minlength=classes)
    return np.asarray(weights / totals[target])


def _likely(scores: Array) -> Array:
    likely = np.exp(scores - scores.max(1, keepdims=True)) if scores.size else scores
    return np.asarray(likely / likely.sum(1, keepdims=True)) if scores.size else scores


def mean_recall(target: Codes, heard: Codes) -> float:
    """Return the mean of the recalls of the classes that occur; NaN without rows."""
    counts = np.bincount(target)
    hits = np.bincount(target, weights=(target == heard).astype(np.float64), minlength=counts.size)
    return float((hits[counts > 0] / counts[counts > 0]).mean()) if target.size else math.nan


def _assembled(head: Head, done: Sequence[_Done], seed: int) -> tuple[HeadFacts, Linear]:
    final = next(one for one in done if one.task.part == "final")
    count = len(head.classes)
    likely = np.zeros((head.target.size, count))
    for one in done:
        if one.task.part == "fold":
            likely[one.task.test] = one.likely
    heard = likely.argmax(1)
    speakers, home = np.array(head.speakers), np.array(head.corpora)

    def recall(name: str, at: Codes, guessed: Codes) -> Recall:
        target = head.target[at]
        found = bootstrap.clustered(
            lambda rows: mean_recall(target[rows], guessed[rows]), speakers[at].tolist(), seed=seed, draws=_DRAWS
        )
        return _recall(name, found)

    classes = []
    for k, name in enumerate(head.classes):
        mine = head.target == k
        found = cluster.proportion((heard[mine] == k).astype(np.float64).tolist(), speakers[mine].tolist())
        classes.append(_recall(name, found))
    report = HeadReport(
        whole=recall("all", np.arange(head.target.size), heard),
        chance=1 / count,
        classes=tuple(classes),
        heard_as=tuple(tuple(np.bincount(heard[head.target == k], minlength=count).tolist()) for k in range(count)),
        by_corpus=tuple(
            recall(name, at, heard[at])
            for name in sorted(set(head.corpora))
            if np.unique(head.target[at := np.flatnonzero(home == name)]).size > 1
        ),
        without_corpus=tuple(
            recall(one.task.part, one.task.test, one.likely.argmax(1))
            for one in sorted(done, key=lambda one: one.task.part)
            if one.task.part not in ("final", "fold")
        ),
    )
    threshold = float(np.quantile(likely.max(1), _UNSURE))
    return HeadFacts(head.name, head.classes, round(threshold, 4), report), final.linear


def _recall(name: str, found: cluster.Interval) -> Recall:
    low, high = (None if math.isnan(edge) else round(edge, 4) for edge in (found.low, found.high))
    return Recall(name, found.rows, found.clusters, round(found.value, 4), low, high)


def combined_hash(hashes: Sequence[str]) -> str:
    """Return one SHA-256 for several, which does not depend on their order."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()
