"""Whether two electorates rank the same runs alike: Kendall's τ of their ratings, and how often they pick one reply."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.arena.electorates import Electorate
from overtone.results.measures import Estimate, from_interval
from overtone.stats import bootstrap, cluster, davidson
from overtone.stats.correlation import kendall
from overtone.stats.rank import Ranking
from overtone.stats.votes import TIE

Array = npt.NDArray[np.float64]

DRAWS = 1000
WEAK = 0.05  # prior of a draw: who never loses in it comes first instead of nowhere, and ranks are all that count
_CELLS = 400_000  # of outcomes held at once


class Agreement(Struct, frozen=True):
    """How alike two electorates rank the same runs: Kendall's τ of their ratings; and on the pairs both voted on, how
    often their majorities name the same reply, of those where both name one."""

    key: str
    first: str
    second: str
    runs: int
    tau: Estimate
    same: Estimate


def agreement(
    first: Electorate, second: Electorate, one: Ranking | None, other: Ranking | None, prior: float, seed: int
) -> Agreement:
    shared = [p for p in (one.players if one else ()) if other is not None and p in other.players]
    tau = Estimate(None, None, None, 0, len(shared), note="one of the two has no ratings")
    if one is not None and other is not None:
        tau = _tau(first, second, one, other, shared, prior, seed)
    return Agreement(f"agreement/{second.key}", first.name, second.name, len(shared), tau, _same(first, second))


def _tau(
    first: Electorate, second: Electorate, one: Ranking, other: Ranking, shared: list[Hashable], prior: float, seed: int
) -> Estimate:
    """τ of the ratings; its interval draws scripts anew, for both electorates alike, and ranks again."""
    value = kendall([one.of(p).rating.value for p in shared], [other.of(p).rating.value for p in shared])
    if math.isnan(value):
        return Estimate(None, None, None, len(shared), len(shared), note="fewer than two runs, or all rated alike")
    names = list(dict.fromkeys([*first.scripts, *second.scripts]))
    if len(names) < 2:
        return Estimate(value, None, None, len(shared), len(shared), scripts=len(names), note="one script")
    times = np.concatenate(list(bootstrap.resamples(len(names), seed=seed, draws=DRAWS)))
    place = {name: at for at, name in enumerate(names)}
    drawn = [
        _ratings(e, np.array([place[s] for s in e.scripts]), times, shared, max(prior, WEAK)) for e in (first, second)
    ]
    taus = np.array(
        [
            kendall(a, b) if np.isfinite(a).all() and np.isfinite(b).all() else math.nan
            for a, b in zip(*drawn, strict=True)
        ]
    )
    lost = int(np.isnan(taus).sum())
    found = bootstrap.interval(value, taus, np.empty(0), len(shared), len(names), level=0.95)
    note = f"{lost} of {DRAWS} draws could not be ranked" if lost else ""
    if lost > DRAWS * 0.025:  # what is missing could all lie beyond one end
        return Estimate(value, None, None, len(shared), len(shared), scripts=len(names), note=note)
    return Estimate(value, found.low, found.high, len(shared), len(shared), scripts=len(names), note=note)


def _ratings(one: Electorate, ids: npt.NDArray[np.intp], times: Array, players: list[Hashable], prior: float) -> Array:
    """The ratings of every draw, (draws, players); NaN where a draw has none."""
    cast = one.cast
    tied = bool((cast.outcome == TIE).any())
    cells = davidson.cells(cast, np.empty((len(cast), 0)), tied=tied)
    at = [cast.players.index(player) for player in players]
    found = np.full((len(times), len(at)), np.nan)
    block = max(1, _CELLS // (cells.size * 3))
    for start in range(0, len(times), block):
        seen = np.stack([davidson.counts(cells, row[ids]) for row in times[start : start + block]])
        zero = np.zeros((len(seen), cells.parameters))
        fitted, done = davidson.solve(cells, seen, zero, prior=prior, steps=60, short=1e-4)
        found[start : start + len(seen)][done] = fitted[done][:, at]
    return found


def _same(first: Electorate, second: Electorate) -> Estimate:
    """Of the pairs where both majorities name a reply: how often it is the same one."""
    leads = [_leads(e) for e in (first, second)]
    both = [name for name in leads[0] if name in leads[1]]
    decided = [name for name in both if leads[0][name] and leads[1][name]]
    agreed = [float(leads[0][name] == leads[1][name]) for name in decided]
    found = cluster.proportion(agreed, [first.pairs[name].group for name in decided])
    return from_interval(found, found.low, found.high, len(both))


def _leads(one: Electorate) -> dict[str, str]:
    """Pair → the run that more votes name than the other; "" where neither leads."""
    found: dict[str, float] = {}
    for vote in one.votes:
        pair = one.pairs[vote.pair]
        step = {"A": 1, "B": -1, "tie": 0}[vote.winner] * (1 if vote.a == pair.a else -1)
        found[vote.pair] = found.get(vote.pair, 0) + step
    return {
        name: "" if not lead else (one.pairs[name].a if lead > 0 else one.pairs[name].b) for name, lead in found.items()
    }
