"""Draw pairs of replies one after the other: balanced, and after the first votes, where a vote is most informative.

The first round is only balanced. In later rounds, three of four draws choose the two runs between which a vote is most
informative (Davidson's information of the vote × the variance of the difference in rating); the fourth chooses the two
runs that have met least often. Every draw is balanced over cues, scripts and sides. Each round starts at a fixed number
of pairs, so asking for more pairs later gives the same pairs as asking for all at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.stats import davidson
from overtone.stats.votes import Votes

Array = npt.NDArray[np.float64]

PRIOR = 0.5  # pseudo-votes per run, so that all runs start equal, with a finite variance
MEETINGS = 8  # of every two runs in one round
SHORTEST = 60  # minimum of pairs in a round
_LEAST_EVERY = 4  # every fourth draw takes the two runs that have met least often


class Case(Struct, frozen=True):
    """An item under one condition, answered by all runs."""

    key: str
    case: str
    group: str
    cue: str
    condition: str
    status: str = ""


class Pair(Struct, frozen=True):
    """Two runs' replies to one case; `a` is on side A. Lengths are None for a reply without words or audio."""

    id: str
    key: str
    case: str
    group: str
    cue: str
    a: str
    b: str
    drawn: bool = True  # False: it comes from a file of votes
    words: tuple[int | None, int | None] = (None, None)
    seconds: tuple[float | None, float | None] = (None, None)


def chance(seed: int, purpose: object) -> float:
    """Return a pseudo-random number from 0 to 1 that depends only on the seed and on `purpose`."""
    return int.from_bytes(hashlib.sha256(repr((seed, purpose)).encode()).digest()[:7], "big") / 2**56


def round_length(players: int) -> int:
    """Return the number of pairs in a round."""
    return max(SHORTEST, MEETINGS * players * (players - 1) // 2)


def information(cast: Votes, players: Sequence[str]) -> tuple[Array, Array]:
    """Return two arrays (players, players), given the votes so far and the prior.

    The first array is the information that one more vote between two runs gives about the difference of their ratings.
    The second is the covariance of the ratings.
    """
    n = len(players)
    place = {name: at for at, name in enumerate(players)}
    index = np.array([place.get(str(name), -1) for name in cast.players], dtype=np.intp)
    used = (index[cast.a] >= 0) & (index[cast.b] >= 0) if len(cast) else np.zeros(0, dtype=bool)
    rating, tie = np.zeros(n), 0.0
    precision = PRIOR / 2 * np.eye(n)
    if used.any():
        ours = Votes(tuple(players), index[cast.a[used]], index[cast.b[used]], cast.outcome[used])
        tied = bool((ours.outcome == 1).any() and (ours.outcome != 1).any())
        cells = davidson.cells(ours, np.empty((len(ours), 0)), tied=tied)
        seen = davidson.counts(cells)[None]
        fitted, done = davidson.solve(cells, seen, np.zeros((1, cells.parameters)), prior=PRIOR, steps=100)
        if done[0]:
            rating = fitted[0, :n]
            tie = float(np.exp(fitted[0, -1])) if tied else 0.0
            precision = davidson.climb(cells, seen, fitted, PRIOR).curvature[0, :n, :n]
    half = (rating[:, None] - rating[None, :]) / 2
    total = np.exp(half) + tie + np.exp(-half)
    lean = (np.exp(half) - np.exp(-half)) / total / 2
    per_vote = (np.exp(half) + np.exp(-half)) / total / 4 - lean**2
    return per_vote, np.asarray(np.linalg.inv(precision), dtype=np.float64)


def draw(
    players: Sequence[str],
    cases: Sequence[Case],
    before: Sequence[Pair],
    count: int,
    *,
    seed: int,
    cast: Votes | None = None,
) -> list[tuple[Case, str, str]]:
    """Draw `count` pairs in addition to `before`, as (case, run on side A, run on side B); fewer if none are left.

    `cast` has the votes of earlier rounds.
    """
    return _Draw(players, cases, before, seed, cast).draw(count)


class _Draw:
    def __init__(
        self, players: Sequence[str], cases: Sequence[Case], before: Sequence[Pair], seed: int, cast: Votes | None
    ) -> None:
        self.players, self.seed = tuple(players), seed
        self.duels = list(combinations(range(len(players)), 2))
        self.first = np.array([i for i, _ in self.duels], dtype=np.intp)
        self.second = np.array([j for _, j in self.duels], dtype=np.intp)
        self.strata: dict[tuple[str, str], list[Case]] = {}
        for case in sorted(cases, key=lambda c: self._chance("case", c.key)):
            self.strata.setdefault((case.condition, case.cue), []).append(case)
        self.met = np.zeros(len(self.duels), dtype=np.intp)
        self.left = np.full(len(self.duels), len(cases), dtype=np.intp)
        self.used: set[tuple[int, str]] = set()  # (two runs, case key)
        self.stratum_of = {case.key: stratum for stratum, members in self.strata.items() for case in members}
        self.by_stratum: Counter[tuple[int, tuple[str, str]]] = Counter()
        self.strata_used: Counter[tuple[str, str]] = Counter()
        self.scripts: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.leaning: Counter[int] = Counter()  # per two runs: how often the first was A minus how often it was B
        self.sides: Counter[int] = Counter()  # per run: the same
        self.number = 0
        self.per_vote: Array | None = None
        self.variance: Array | None = None
        if cast is not None and len(cast):
            self.per_vote, self.variance = information(cast, self.players)
        self.tie_break = np.array([self._chance("duel", *(self.players[x] for x in duel)) for duel in self.duels])
        place = {name: at for at, name in enumerate(self.players)}
        at = {duel: number for number, duel in enumerate(self.duels)}
        for pair in before:
            if pair.a in place and pair.b in place and pair.key in self.stratum_of:
                i, j = place[pair.a], place[pair.b]
                self._count(at[min(i, j), max(i, j)], pair.key, pair.group, i < j)
            self.number += pair.drawn

    def draw(self, count: int) -> list[tuple[Case, str, str]]:
        drawn: list[tuple[Case, str, str]] = []
        while len(drawn) < count and (self.left > 0).any():
            duel = self._duel()
            case = self._case(duel)
            i, j = self.duels[duel]
            lean = (self.leaning[duel], self.sides[i] - self.sides[j])
            first = lean < (0, 0) if lean != (0, 0) else self._chance("side", case.key, duel) < 0.5
            a, b = (i, j) if first else (j, i)
            self._count(duel, case.key, case.group, first)
            self.number += 1
            drawn.append((case, self.players[a], self.players[b]))
        return drawn

    def _count(self, duel: int, key: str, group: str, first: bool) -> None:
        if (duel, key) in self.used:
            return
        self.used.add((duel, key))
        self.met[duel] += 1
        self.left[duel] -= 1
        stratum = self.stratum_of[key]
        self.by_stratum[duel, stratum] += 1
        self.strata_used[stratum] += 1
        self.scripts[group] += 1
        self.keys[key] += 1
        i, j = self.duels[duel]
        step = 1 if first else -1
        self.leaning[duel] += step
        self.sides[i] += step
        self.sides[j] -= step

    def _duel(self) -> int:
        """Choose the two runs of the next pair."""
        open_ = self.left > 0
        if self.per_vote is None or self.variance is None or self.number % _LEAST_EVERY == 0:
            order = np.lexsort((self.tie_break, self.met, ~open_))
            return int(order[0])
        v, per_vote = self.variance, self.per_vote[self.first, self.second]
        unknown = v[self.first, self.first] + v[self.second, self.second] - 2 * v[self.first, self.second]
        gain = np.where(open_, np.round(per_vote * unknown, 12), -1.0)
        best = int(np.lexsort((self.tie_break, self.met, -gain))[0])
        change = v[:, self.first[best]] - v[:, self.second[best]]
        # from here on, the coming vote counts as known (Sherman and Morrison)
        self.variance = v - per_vote[best] / (1 + per_vote[best] * unknown[best]) * np.outer(change, change)
        return best

    def _case(self, duel: int) -> Case:
        """Choose the case for two runs: first the cue on which they met least often, then the least used script."""
        open_strata = [
            (self.by_stratum[duel, stratum], self.strata_used[stratum], self._chance("cue", duel, *stratum), stratum)
            for stratum, cases in self.strata.items()
            if self.by_stratum[duel, stratum] < len(cases)
        ]
        stratum = min(open_strata)[-1]
        free = [case for case in self.strata[stratum] if (duel, case.key) not in self.used]
        return min(free, key=lambda case: (self.scripts[case.group], self.keys[case.key]))

    def _chance(self, *purpose: object) -> float:
        return chance(self.seed, purpose)
