"""Which replies meet: pairs drawn one after the other for balance and, once there are votes, for information.

The first round is balanced alone. Later rounds know how the votes went so far: three draws of four go to the two runs
whose next vote tells most (Davidson's information of a vote between them, times what is still unknown of their
difference), the fourth to the two that have met least. Every draw is balanced over cues, scripts and sides. Rounds
begin at fixed numbers, so asking for more pairs later gives the pairs that asking for all of them at once had given.
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

PRIOR = 0.5  # imagined wins and losses of everybody: before there are votes all are equal, and not for certain
MEETINGS = 8  # of every two runs in one round
SHORTEST = 60  # pairs of a round
_LEAST_EVERY = 4  # so often the two runs that have met least


class Case(Struct, frozen=True):
    """Something all runs answered: an item under a condition."""

    key: str
    case: str
    group: str
    cue: str
    condition: str
    status: str = ""


class Pair(Struct, frozen=True):
    """Two runs' replies to one case; `a` stands on side A. Lengths are known where a reply has words or a sound."""

    id: str
    key: str
    case: str
    group: str
    cue: str
    a: str
    b: str
    drawn: bool = True  # else it came with somebody's vote
    words: tuple[int | None, int | None] = (None, None)
    seconds: tuple[float | None, float | None] = (None, None)


def round_length(players: int) -> int:
    """How many pairs are drawn before the votes are looked at again."""
    return max(SHORTEST, MEETINGS * players * (players - 1) // 2)


def information(cast: Votes, players: Sequence[str]) -> tuple[Array, Array]:
    """What one more vote between any two runs tells of their difference (players × players), and the variance of every
    rating given the votes so far, with the prior."""
    n = len(players)
    place = {name: at for at, name in enumerate(players)}
    known = np.array([place.get(str(name), -1) for name in cast.players], dtype=np.intp)
    used = (known[cast.a] >= 0) & (known[cast.b] >= 0) if len(cast) else np.zeros(0, dtype=bool)
    rating, tie = np.zeros(n), 0.0
    held = PRIOR / 2 * np.eye(n)
    if used.any():
        ours = Votes(tuple(players), known[cast.a[used]], known[cast.b[used]], cast.outcome[used])
        tied = bool((ours.outcome == 1).any() and (ours.outcome != 1).any())
        cells = davidson.cells(ours, np.empty((len(ours), 0)), tied=tied)
        seen = davidson.counts(cells)[None]
        found, done = davidson.solve(cells, seen, np.zeros((1, cells.parameters)), prior=PRIOR, steps=100)
        if done[0]:
            rating = found[0, :n]
            tie = float(np.exp(found[0, -1])) if tied else 0.0
            held = davidson.climb(cells, seen, found, PRIOR).curvature[0, :n, :n]
    half = (rating[:, None] - rating[None, :]) / 2
    total = np.exp(half) + tie + np.exp(-half)
    lean = (np.exp(half) - np.exp(-half)) / total / 2
    tells = (np.exp(half) + np.exp(-half)) / total / 4 - lean**2
    return tells, np.asarray(np.linalg.inv(held), dtype=np.float64)


def draw(
    players: Sequence[str],
    cases: Sequence[Case],
    before: Sequence[Pair],
    count: int,
    *,
    seed: int,
    cast: Votes | None = None,
) -> list[tuple[Case, str, str]]:
    """Up to `count` further meetings after those of `before`: the case, side A, side B. Fewer where all have met.

    `cast` holds the votes that may be looked at: for the pairs of one round, those of the rounds before it.
    """
    return _Draw(players, cases, before, seed, cast).take(count)


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
        self.used: set[tuple[int, str]] = set()  # of cases, by two runs
        self.stratum_of = {case.key: stratum for stratum, held in self.strata.items() for case in held}
        self.by_stratum: Counter[tuple[int, tuple[str, str]]] = Counter()
        self.strata_used: Counter[tuple[str, str]] = Counter()
        self.scripts: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.leaning: Counter[int] = Counter()  # of two runs: how often the first stood on side A more than on B
        self.sides: Counter[int] = Counter()  # of a run
        self.number = 0
        self.tells: Array | None = None
        self.variance: Array | None = None
        if cast is not None and len(cast):
            self.tells, self.variance = information(cast, self.players)
        self.tie_break = np.array([self._chance("duel", *(self.players[x] for x in duel)) for duel in self.duels])
        place = {name: at for at, name in enumerate(self.players)}
        at = {duel: number for number, duel in enumerate(self.duels)}
        for pair in before:
            if pair.a in place and pair.b in place and pair.key in self.stratum_of:
                i, j = place[pair.a], place[pair.b]
                self._note(at[min(i, j), max(i, j)], pair.key, pair.group, i < j)
            self.number += pair.drawn

    def take(self, count: int) -> list[tuple[Case, str, str]]:
        found: list[tuple[Case, str, str]] = []
        while len(found) < count and (self.left > 0).any():
            duel = self._duel()
            case = self._case(duel)
            i, j = self.duels[duel]
            lean = (self.leaning[duel], self.sides[i] - self.sides[j])
            first = lean < (0, 0) if lean != (0, 0) else self._chance("side", case.key, duel) < 0.5
            a, b = (i, j) if first else (j, i)
            self._note(duel, case.key, case.group, first)
            self.number += 1
            found.append((case, self.players[a], self.players[b]))
        return found

    def _note(self, duel: int, key: str, group: str, first: bool) -> None:
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
        """The two runs to meet next."""
        open_ = self.left > 0
        if self.tells is None or self.variance is None or self.number % _LEAST_EVERY == 0:
            order = np.lexsort((self.tie_break, self.met, ~open_))
            return int(order[0])
        v, tells = self.variance, self.tells[self.first, self.second]
        unknown = v[self.first, self.first] + v[self.second, self.second] - 2 * v[self.first, self.second]
        gain = np.where(open_, np.round(tells * unknown, 12), -1.0)
        best = int(np.lexsort((self.tie_break, self.met, -gain))[0])
        way = v[:, self.first[best]] - v[:, self.second[best]]
        # the vote to come counts as known from here on (Sherman and Morrison)
        self.variance = v - tells[best] / (1 + tells[best] * unknown[best]) * np.outer(way, way)
        return best

    def _case(self, duel: int) -> Case:
        """The case they meet on: of the cue they met on least, of the script used least."""
        held = [
            (self.by_stratum[duel, stratum], self.strata_used[stratum], self._chance("cue", duel, *stratum), stratum)
            for stratum, cases in self.strata.items()
            if self.by_stratum[duel, stratum] < len(cases)
        ]
        stratum = min(held)[-1]
        free = [case for case in self.strata[stratum] if (duel, case.key) not in self.used]
        return min(free, key=lambda case: (self.scripts[case.group], self.keys[case.key]))

    def _chance(self, *what: object) -> float:
        """A number from 0 to 1 that depends on the seed and on nothing else but what it is for."""
        digest = hashlib.sha256(repr((self.seed, what)).encode()).digest()
        return int.from_bytes(digest[:7], "big") / 2**56
