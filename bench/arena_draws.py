"""What looking at the votes gains when pairs are drawn: six runs in two groups, the same number of votes, 60 arenas.

`python -m bench.arena_draws`; prints how far the difference of two runs is off within a group (root mean square, on the
log-odds scale), and how often 95 % intervals of differences hold the truth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from overtone.arena.pairing import Case, Pair, draw, round_length
from overtone.stats.rank import Ranking, bradley_terry
from overtone.stats.votes import votes

TRUE = {"u": 1.6, "v": 1.3, "w": 1.0, "x": -0.8, "y": -1.3, "z": -1.8}
TIE = 0.8  # ν
CASES = [Case(f"i{n}|c", f"case{n}", f"s{n}", f"cue{n % 13}", "c") for n in range(200)]


class Found(NamedTuple):
    off: float  # within a group
    held: float  # of all differences


def arena(seed: int, *, look: bool, count: int = 480) -> Ranking:
    """One arena: pairs drawn in rounds, votes from the model itself."""
    rng = np.random.default_rng(seed)
    names = list(TRUE)
    drawn: list[Pair] = []
    said: list[str] = []
    while len(drawn) < count:
        cast = votes([p.a for p in drawn], [p.b for p in drawn], said) if look else None
        wanted = min(round_length(len(names)), count - len(drawn))
        for case, a, b in draw(names, CASES, drawn, wanted, seed=seed, cast=cast):
            drawn.append(Pair(str(len(drawn)), case.key, case.case, case.group, case.cue, a, b))
            half = (TRUE[a] - TRUE[b]) / 2
            parts = np.array([math.exp(half), TIE, math.exp(-half)])
            said.append(("A", "tie", "B")[int(rng.choice(3, p=parts / parts.sum()))])
    cast = votes([p.a for p in drawn], [p.b for p in drawn], said)
    return bradley_terry(cast, clusters=[p.group for p in drawn], prior=0.01)


def measure(*, look: bool, arenas: int = 60) -> Found:
    squares, held = [], []
    for seed in range(arenas):
        ranking = arena(seed, look=look)
        for i, a in enumerate(TRUE):
            for b in list(TRUE)[i + 1 :]:
                found, truth = ranking.difference(a, b), TRUE[a] - TRUE[b]
                held.append(found.low <= truth <= found.high)
                if (a in "uvw") == (b in "uvw"):
                    squares.append((found.value - truth) ** 2)
    return Found(math.sqrt(float(np.mean(squares))), float(np.mean(held)))


if __name__ == "__main__":
    for look, name in ((False, "balance alone"), (True, "votes looked at")):
        found = measure(look=look)
        print(f"{name:16} off by {found.off:.3f} within a group; 95 % intervals hold {100 * found.held:.1f} %")
