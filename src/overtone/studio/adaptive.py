"""Adaptive pairs: the next pairs of systems are those about which one more vote tells most.

The rule is the arena's (`arena.pairing`): Davidson's information of a vote × the variance of the difference in rating.
Every fourth pair is the one with the fewest votes, so that no pair is given up early. Without votes, nothing is
preferred: then the assignment is balanced.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from overtone.arena.pairing import information
from overtone.stats.votes import Votes, votes
from overtone.studio import designs
from overtone.studio.designs import Answered
from overtone.studio.labels.collect import frozen_units
from overtone.studio.store import Store
from overtone.studio.study import Study

FRESH_SECONDS = 10.0  # for so long, people who arrive get the pairs that were computed last
LEAST_EVERY = 4  # every fourth pair is the one with the fewest votes


def duels(study: Study, store: Store) -> Callable[[int], list[str]]:
    """Return the function for `store.sessions.duels`: a number of places → their systems ("RUN|RUN"), best first."""

    lock = threading.Lock()
    known: tuple[float, int, list[str]] = (-FRESH_SECONDS, 0, [])

    def chosen(count: int) -> list[str]:
        nonlocal known
        with lock:
            at, size, pairs = known
            if count > size or time.monotonic() - at >= FRESH_SECONDS:
                systems = sorted({unit.system for unit in store.units().values() if unit.system.count("|") == 1})
                pairs = most_informative(systems, cast(study, store), count)
                known = (time.monotonic(), count, pairs)
            return pairs[:count]

    return chosen


def cast(study: Study, store: Store) -> Votes:
    """Return the votes of the study so far."""
    design = designs.find(study.design)
    units = frozen_units(store)
    rows = [
        row.cells
        for one in store.answers.all()
        if one.values
        for row in design.labels(Answered(one.person, units[one.unit], one.values, one.swap, one.slot), study)
        if row.kind == "votes" and row.run == row.cells["a"]  # a vote has a row for each of its two runs
    ]
    return votes([row["a"] for row in rows], [row["b"] for row in rows], [row["winner"] for row in rows])


def most_informative(systems: Sequence[str], cast: Votes, count: int) -> list[str]:
    """Return `count` pairs of systems ("RUN|RUN"), each chosen as if the votes on those before it were known."""
    if not len(cast) or len(systems) < 2:
        return []
    pairs = [tuple(system.split("|")) for system in systems]
    players = sorted({player for pair in pairs for player in pair})
    first, second = (np.array([players.index(pair[side]) for pair in pairs], dtype=np.intp) for side in (0, 1))
    per_vote, variance = information(cast, players)
    told = per_vote[first, second]
    met = _met(systems, cast)
    chosen: list[str] = []
    while len(chosen) < count:
        unknown = variance[first, first] + variance[second, second] - 2 * variance[first, second]
        gain = np.round(told * unknown, 12)
        least = len(chosen) % LEAST_EVERY == LEAST_EVERY - 1
        best = min(range(len(systems)), key=lambda at: (met[systems[at]] if least else -gain[at], met[systems[at]], at))
        change = variance[:, first[best]] - variance[:, second[best]]
        # from here on, the coming vote counts as known (Sherman and Morrison)
        variance = variance - told[best] / (1 + told[best] * unknown[best]) * np.outer(change, change)
        chosen.append(systems[best])
        met[systems[best]] += 1
    return chosen


def _met(systems: Sequence[str], cast: Votes) -> Counter[str]:
    """Return the number of votes per pair."""
    counts: Counter[frozenset[str]] = Counter(
        frozenset((str(cast.players[a]), str(cast.players[b]))) for a, b in zip(cast.a, cast.b, strict=True)
    )
    return Counter({system: counts[frozenset(system.split("|"))] for system in systems})
