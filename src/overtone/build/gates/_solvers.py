"""Solvers that only read the text. They learn from the set's own questions and answer each question out of fold."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from overtone.build.gates._reader_view import Embed, Matrix, Reading, Table, describe, readings
from overtone.build.questions import Question
from overtone.cues import UNDERSTANDING

FOLDS = 10
STRENGTHS = (3.0, 30.0, 300.0, 3000.0)  # of the ridge
READS: dict[str, tuple[str, ...]] = {  # solver → the blocks of features it reads
    "surface": ("surface",),
    "options only": ("surface", "options"),
    "script + options": ("surface", "options", "script", "question"),
}
COUNTS = "option sets"
TRAINED = (*READS, COUNTS)


def answers(questions: Sequence[Question], seed: int, embed: Embed | None) -> dict[str, list[int | None]]:
    """Return each trained solver's answers; no solver has seen the script of a question that it answers. Questions on
    understanding and on reasoning are learnt separately, because their options have nothing in common."""
    out: dict[str, list[int | None]] = {name: [None] * len(questions) for name in TRAINED}
    banks: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for i, q in enumerate(questions):
        banks[q.part, q.category in UNDERSTANDING].append(i)
    for places in banks.values():
        texts = readings([questions[i] for i in places])
        features = describe(texts, embed)
        wanted = targets(texts, [questions[i] for i in places], features)
        fold = folds([r.script for r in texts], seed)
        scores = {
            name: out_of_fold(np.hstack([features.blocks[b] for b in blocks]), wanted, features.start, fold)
            for name, blocks in READS.items()
        }
        scores[COUNTS] = by_counts(texts, wanted, features.start, fold)
        for name, values in scores.items():
            for r, low, high in zip(texts, features.start, features.start[1:], strict=False):
                for i in r.asked:
                    out[name][places[i]] = int(np.argmax(values[low:high]))
    return out


def folds(scripts: Sequence[str], seed: int) -> NDArray[np.intp]:
    """Assign each reading to a fold. All readings of a script share a fold, and the folds are similar in size."""
    ids = sorted(set(scripts), key=lambda s: hashlib.sha256(f"{seed}/{s}".encode()).digest())
    of = {script: i % FOLDS for i, script in enumerate(ids)}
    return np.array([of[s] for s in scripts], dtype=np.intp)


def targets(texts: Sequence[Reading], questions: Sequence[Question], features: Table) -> NDArray[np.float64]:
    """Return the rankers' targets: the rate at which an option is right, minus the mean rate over its reading."""
    out = np.zeros(int(features.start[-1]))
    for r, low in zip(texts, features.start, strict=False):
        for i in r.asked:
            out[low + questions[i].gold] += 1 / len(r.asked)
        out[low : low + len(r.options)] -= 1 / len(r.options)
    return out


def out_of_fold(
    x: Matrix, y: NDArray[np.float64], start: NDArray[np.intp], fold: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Score every option with a ridge ranker that was fitted without the option's fold.

    For each half of the folds, the ridge strength is the one that gives the most right answers within the other half.
    """
    owner = np.repeat(fold, np.diff(start))
    rows_of = [np.flatnonzero(owner == f) for f in range(FOLDS)]
    moments = [(x[rows].T @ x[rows], x[rows].T @ y[rows]) for rows in rows_of]

    def fitted(to: Sequence[int], strength: float) -> NDArray[np.float64]:
        square, cross = (np.sum([moments[f][i] for f in to], axis=0) for i in (0, 1))
        return _fit(square, cross, strength)

    def gained(half: Sequence[int], strength: float) -> float:
        """Fit to three folds of `half`, and sum the targets of the options chosen in the other folds of `half`."""
        judged = np.flatnonzero(np.isin(fold, half[3:]))
        rows = np.concatenate([rows_of[f] for f in half[3:]])
        trial = np.full(len(y), -np.inf)
        trial[rows] = x[rows] @ fitted(half[:3], strength)
        return float(sum(y[start[i] + int(np.argmax(trial[start[i] : start[i + 1]]))] for i in judged))

    scores = np.zeros(len(y))
    halves = [[f for f in range(FOLDS) if f % 2 == side] for side in (0, 1)]
    for mine, other in (halves, halves[::-1]):
        best = STRENGTHS[int(np.argmax([gained(other, strength) for strength in STRENGTHS]))]
        for f in mine:
            scores[rows_of[f]] = x[rows_of[f]] @ fitted([g for g in range(FOLDS) if g != f], best)
    return scores


def weights(x: Matrix, y: NDArray[np.float64], strength: float = 300.0) -> NDArray[np.float64]:
    """Return each column's weight in a ridge fitted to all rows, which shows the features that a solver uses."""
    return _fit(x.T @ x, x.T @ y, strength)


def _fit(square: Matrix, cross: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    return np.asarray(np.linalg.solve(square + strength * np.eye(len(square)), cross))


def by_counts(
    texts: Sequence[Reading], y: NDArray[np.float64], start: NDArray[np.intp], fold: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Score an option by how often the same text was right in the other folds, among the same options.

    This detects the rules by which option sets are composed. An option that never occurred before scores 0. If a set is
    perfectly balanced, an option that is right more often elsewhere is right less often here, so it can be better to
    oppose the counts than to follow them. For each half of the folds, the other half decides which of the two is done.
    """
    Key = tuple[str, str, str]
    worth: dict[Key, NDArray[np.float64]] = defaultdict(lambda: np.zeros(FOLDS))
    met: dict[Key, NDArray[np.float64]] = defaultdict(lambda: np.zeros(FOLDS))
    pairs: list[list[list[Key]]] = []
    for r, low, f in zip(texts, start, fold, strict=False):
        mine = [[(r.category, o, p) for p in ("", *(x for x in r.options if x != o))] for o in r.options]
        pairs.append(mine)
        for i, keys in enumerate(mine):
            for key in keys:
                worth[key][f] += y[low + i]
                met[key][f] += 1

    def scored(reading: int, learn: Sequence[int]) -> list[float]:
        of = list(learn)
        return [sum(float(worth[k][of].sum() / (met[k][of].sum() + 4)) for k in keys) for keys in pairs[reading]]

    scores = np.zeros(len(y))
    for side in (0, 1):
        other = [f for f in range(FOLDS) if f % 2 != side]
        gained: dict[str, float] = defaultdict(float)  # category → gain from following the counts
        for at in np.flatnonzero(np.isin(fold, other)).tolist():
            values = scored(at, [f for f in other if f != fold[at]])
            own = y[start[at] : start[at + 1]]
            gained[texts[at].category] += float(own[int(np.argmax(values))] - own[int(np.argmin(values))])
        for at in np.flatnonzero(fold % 2 == side).tolist():
            sign = 1.0 if gained[texts[at].category] >= 0 else -1.0
            values = scored(at, [f for f in range(FOLDS) if f != fold[at]])
            scores[start[at] : start[at + 1]] = sign * np.array(values)
    return scores
