"""Agreement of two electorates: Kendall's τ of their ratings, and how often both prefer the same reply."""

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
WEAK = 0.05  # prior of a resample, so that a run which never loses in it can be ranked
_CELLS = 400_000  # maximum of outcomes in memory


class Agreement(Struct, frozen=True):
    """Agreement of two electorates. `tau` is Kendall's τ of their ratings of the same runs. `same` is the share of
    pairs with the same preferred reply, among the pairs on which both electorates have a majority."""

    key: str
    first: str
    second: str
    runs: int
    tau: Estimate
    same: Estimate


def agreement(
    first: Electorate, second: Electorate, one: Ranking | None, other: Ranking | None, prior: float, seed: int
) -> Agreement:
    """Compare two electorates, given their rankings `one` and `other`. If either is None, τ has no value."""
    shared = [p for p in (one.players if one else ()) if other is not None and p in other.players]
    tau = Estimate(None, None, None, 0, len(shared), note="one of the two has no ratings")
    if one is not None and other is not None:
        tau = _tau(first, second, one, other, shared, prior, seed)
    return Agreement(f"agreement/{second.key}", first.name, second.name, len(shared), tau, _same(first, second))


def _tau(
    first: Electorate, second: Electorate, one: Ranking, other: Ranking, shared: list[Hashable], prior: float, seed: int
) -> Estimate:
    """Return τ of the ratings. For its interval, scripts are resampled and each resample ranks both electorates."""
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
    interval = bootstrap.interval(value, taus, np.empty(0), len(shared), len(names), level=0.95)
    note = f"{lost} of {DRAWS} draws could not be ranked" if lost else ""
    if lost > DRAWS * 0.025:  # all missing draws could be beyond one end
        return Estimate(value, None, None, len(shared), len(shared), scripts=len(names), note=note)
    return Estimate(value, interval.low, interval.high, len(shared), len(shared), scripts=len(names), note=note)


def _ratings(one: Electorate, ids: npt.NDArray[np.intp], times: Array, players: list[Hashable], prior: float) -> Array:
    """Return the ratings in every resample as an array (draws, players). A resample that cannot be ranked is a row of
    NaN."""
    cast = one.cast
    tied = bool((cast.outcome == TIE).any())
    cells = davidson.cells(cast, np.empty((len(cast), 0)), tied=tied)
    at = [cast.players.index(player) for player in players]
    ratings = np.full((len(times), len(at)), np.nan)
    block = max(1, _CELLS // (cells.size * 3))
    for start in range(0, len(times), block):
        seen = np.stack([davidson.counts(cells, row[ids]) for row in times[start : start + block]])
        zero = np.zeros((len(seen), cells.parameters))
        fitted, done = davidson.solve(cells, seen, zero, prior=prior, steps=60, short=1e-4)
        ratings[start : start + len(seen)][done] = fitted[done][:, at]
    return ratings


def _same(first: Electorate, second: Electorate) -> Estimate:
    """Return the share of pairs with the same preferred reply, among the pairs where both have a majority."""
    leads = [_majorities(e) for e in (first, second)]
    both = [name for name in leads[0] if name in leads[1]]
    decided = [name for name in both if leads[0][name] and leads[1][name]]
    agreed = [float(leads[0][name] == leads[1][name]) for name in decided]
    share = cluster.proportion(agreed, [first.pairs[name].group for name in decided])
    return from_interval(share, share.low, share.high, len(both))


def _majorities(one: Electorate) -> dict[str, str]:
    """Return pair's id → the run with more votes; "" if both runs have equally many."""
    leads: dict[str, float] = {}
    for vote in one.votes:
        pair = one.pairs[vote.pair]
        step = {"A": 1, "B": -1, "tie": 0}[vote.winner] * (1 if vote.a == pair.a else -1)
        leads[vote.pair] = leads.get(vote.pair, 0) + step
    return {
        name: "" if not lead else (one.pairs[name].a if lead > 0 else one.pairs[name].b) for name, lead in leads.items()
    }
