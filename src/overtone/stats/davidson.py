"""The Bradley–Terry model with Davidson's ties, solved by Newton's method for many weightings of the votes at once.

With d = rating(a) − rating(b) + covariates · coefficients, the odds of the outcomes are e^{d/2} (a wins) : ν (tie) :
e^{−d/2} (b wins). In log ν, ratings and coefficients this is an exponential family, so the log-likelihood is concave.
Newton's steps climb to its only maximum; if the steps never get short, no maximum exists. Votes with the same pair and
the same covariates are added up into cells, so the cost of a bootstrap draw depends on the number of cells, not of
votes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overtone.stats.votes import TIE, Votes

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

_SHORT = 1e-8  # converged if a step is this short (the next step would be about its square)
_LONGEST = 2.0  # no single step moves a rating further: far from the maximum, Newton's steps are too long
_BEYOND = 25.0  # if the ratings of players who met differ by more (odds of 10^10), they diverge to infinity
_UNKNOWN = 1e-7  # a coefficient that changes the chances by less than this many votes diverges too
_NO_TIES = -40.0  # log ν if there was no tie


@dataclass(frozen=True)
class Cells:
    """The votes as cells sorted by pair. The outcomes of a cell are those of the pair's first player."""

    players: int
    pair: Codes  # (cells,): the pair of each cell
    starts: Codes  # (pairs,): the first cell of each pair
    sides: Array  # (pairs, players): 1 for the first player, −1 for the second
    x: Array  # (cells, covariates)
    tied: bool  # whether ν is a parameter
    place: Codes  # (votes,): cell · 3 + outcome
    size: int

    @property
    def parameters(self) -> int:
        return self.players + int(self.x.shape[1]) + int(self.tied)


@dataclass(frozen=True)
class Point:
    """The log-likelihood, its slope and its curvature (Fisher's information) at given parameters, for every problem."""

    height: Array  # (problems,)
    slope: Array  # (problems, parameters)
    curvature: Array  # (problems, parameters, parameters)
    endless: npt.NDArray[np.bool_]  # (problems,): whether the parameters diverge


def cells(cast: Votes, x: Array, *, tied: bool) -> Cells:
    """Add votes up into cells. `x` holds the covariates of every vote, A's minus B's: (votes, covariates)."""
    size = len(cast.players)
    swap = cast.a > cast.b
    first, second = np.where(swap, cast.b, cast.a), np.where(swap, cast.a, cast.b)
    outcome = np.where(swap, 2 - cast.outcome, cast.outcome)
    key = (first * size + second).astype(np.float64)
    table = np.concatenate([key[:, None], np.where(swap[:, None], -x, x)], axis=1)
    if x.shape[1]:
        unique, cell = np.unique(table, axis=0, return_inverse=True)
    else:
        keys, cell = np.unique(key, return_inverse=True)
        unique = keys[:, None]
    pairs, starts, pair = np.unique(unique[:, 0], return_index=True, return_inverse=True)
    sides = np.zeros((pairs.size, size))
    at = np.arange(pairs.size)
    sides[at, (pairs // size).astype(np.intp)] = 1
    sides[at, (pairs % size).astype(np.intp)] = -1
    place = cell.reshape(-1) * 3 + outcome
    return Cells(size, pair, starts, sides, unique[:, 1:], tied, place.astype(np.intp), len(unique))


def counts(of: Cells, weights: Array | None = None) -> Array:
    """Count each outcome in each cell, (cells, 3). `weights` is how many times each vote counts (default: once).

    If ν is not a parameter, a tie counts as half a win for both players.
    """
    table = np.bincount(of.place, weights=weights, minlength=of.size * 3).reshape(of.size, 3).astype(np.float64)
    if not of.tied:
        table += table[:, [TIE]] / 2 * np.array([1.0, 0.0, 1.0])
        table[:, TIE] = 0
    return table


def solve(
    of: Cells, seen: Array, start: Array, *, prior: float, steps: int, short: float = _SHORT
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the maximum-likelihood parameters of every problem in `seen` (problems, cells, 3), and a mask of the
    problems that have converged.
    """
    solution, done = np.array(start), np.zeros(len(seen), dtype=bool)
    if of.tied:
        solution[seen[..., TIE].sum(-1) == 0, -1] = _NO_TIES
    step = np.zeros_like(solution)
    height = np.full(len(seen), -np.inf)
    active = np.arange(len(seen)) if prior else np.flatnonzero(linked(of, seen))
    for _ in range(steps):
        tried = solution[active] + step[active]
        here = climb(of, seen[active], tried, prior)
        lower = here.height < height[active] - 1e-9 * np.abs(here.height)
        step[active[lower]] /= 2  # too far: go back and halve the step
        up, better = active[~lower], ~lower
        solution[up], height[up] = tried[better], here.height[better]
        new = _steps(of, here.curvature[better], here.slope[better], prior)
        longest = np.abs(new).max(1, initial=0.0)
        step[up] = new * np.minimum(1.0, _LONGEST / np.maximum(longest, 1e-300))[:, None]
        lost = np.isnan(longest) | here.endless[better]
        settled = (longest < short) & ~lost
        solution[up[settled]] += new[settled]
        done[up[settled]] = True
        active = np.sort(np.concatenate([active[lower], up[~settled & ~lost]]))
        if not active.size:
            break
    return solution, done


def linked(of: Cells, seen: Array) -> npt.NDArray[np.bool_]:
    """Return a mask of the problems in which wins and ties link all players in both directions. In all other problems,
    the ratings diverge."""
    first, second = of.sides.argmax(1), of.sides.argmin(1)
    reach = np.zeros((len(seen), of.players, of.players), dtype=np.float32)
    held_up, held_down = seen[..., 0] + seen[..., TIE] > 0, seen[..., 2] + seen[..., TIE] > 0
    reach[:, first, second] = _per_pair(of, held_up.astype(np.float64)) > 0
    reach[:, second, first] = _per_pair(of, held_down.astype(np.float64)) > 0
    all_linked = np.ones(len(seen), dtype=bool)
    for direction in (reach, reach.transpose(0, 2, 1)):
        known = np.zeros((len(seen), of.players), dtype=np.float32)
        known[:, 0] = 1
        while True:
            further = np.maximum(known, (known[:, None, :] @ direction)[:, 0] > 0)
            if (further == known).all():
                break
            known = further
        all_linked &= known.all(1)
    return all_linked


def log_odds(of: Cells, parameters: Array) -> Array:
    """Return the log-odds of the first player against the second, ties aside: (problems, cells)."""
    n, k = of.players, of.x.shape[1]
    differences = parameters[:, :n] @ of.sides.T
    return np.asarray(differences[:, of.pair] + parameters[:, n : n + k] @ of.x.T if k else differences)


def chances(of: Cells, parameters: Array) -> Array:
    """Return the chances of the three outcomes in every cell: (problems, cells, 3)."""
    half = log_odds(of, parameters) / 2
    top = np.abs(half)
    log_tie = parameters[:, -1:] if of.tied else None
    if log_tie is not None:
        top = np.maximum(top, log_tie)
    odds = np.empty((*half.shape, 3))
    odds[..., 0], odds[..., 2] = np.exp(half - top), np.exp(-half - top)
    odds[..., 1] = np.exp(log_tie - top) if log_tie is not None else 0.0
    return np.asarray(odds / odds.sum(-1, keepdims=True))


def climb(of: Cells, seen: Array, parameters: Array, prior: float) -> Point:
    """Return the log-likelihood, its slope and its curvature, including the imagined votes of the prior."""
    n, k = of.players, of.x.shape[1]
    p = chances(of, parameters)
    often = seen.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        height = np.where(seen > 0, seen * np.log(p), 0.0).sum((-1, -2))
    lean = (p[..., 0] - p[..., 2]) / 2
    off = (seen[..., 0] - seen[..., 2]) / 2 - often * lean
    spread = often * ((p[..., 0] + p[..., 2]) / 4 - lean**2)

    def per_player(values: Array) -> Array:
        return np.asarray(_per_pair(of, values) @ of.sides)

    slope, curvature = np.zeros_like(parameters), np.zeros((*parameters.shape, parameters.shape[1]))
    slope[:, :n] = per_player(off)
    pairs = _per_pair(of, spread)
    first, second = of.sides.argmax(1), of.sides.argmin(1)
    curvature[:, first, second] = curvature[:, second, first] = -pairs
    at = np.arange(n)
    curvature[:, at, at] = pairs @ np.abs(of.sides)
    for c in range(k):
        weighted = spread * of.x[:, c]
        slope[:, n + c] = off @ of.x[:, c]
        curvature[:, :n, n + c] = curvature[:, n + c, :n] = per_player(weighted)
        curvature[:, n : n + k, n + c] = weighted @ of.x
    if of.tied:
        shared = -often * lean * p[..., 1]
        slope[:, -1] = (seen[..., 1] - often * p[..., 1]).sum(-1)
        curvature[:, -1, -1] = (often * p[..., 1] * (1 - p[..., 1])).sum(-1)
        curvature[:, :n, -1] = curvature[:, -1, :n] = per_player(shared)
        curvature[:, n : n + k, -1] = curvature[:, -1, n : n + k] = shared @ of.x
        never = seen[..., TIE].sum(-1) == 0  # then ν stays 0
        slope[never, -1] = 0
        curvature[never, -1, :] = curvature[never, :, -1] = 0
        curvature[never, -1, -1] = 1
    if prior:  # `prior` wins and as many losses of every player against an imagined player of rating 0
        rating = parameters[:, :n]
        height += prior * (-np.logaddexp(0, rating) - np.logaddexp(0, -rating)).sum(1)
        slope[:, :n] -= prior * np.tanh(rating / 2)
        curvature[:, at, at] += prior / 2 / np.cosh(rating / 2) ** 2
    differences = np.abs(parameters[:, :n] @ of.sides.T).max(1, initial=0.0)
    known = curvature[:, np.arange(n, n + k), np.arange(n, n + k)].min(1, initial=np.inf)
    return Point(height, slope, curvature, (differences > _BEYOND) | (known < _UNKNOWN))


def held(of: Cells, curvature: Array, prior: float) -> Array:
    """Return the curvature, made invertible: without a prior, votes do not determine a common shift of all ratings."""
    if prior:
        return curvature
    fixed = curvature.copy()
    fixed[:, : of.players, : of.players] += 1 / of.players
    return fixed


def _steps(of: Cells, curvature: Array, slope: Array, prior: float) -> Array:
    fixed = held(of, curvature, prior)
    try:
        return np.asarray(np.linalg.solve(fixed, slope[..., None])[..., 0])
    except np.linalg.LinAlgError:  # one of the problems has no maximum: find out which one
        steps = np.full_like(slope, np.nan)
        for i in range(len(slope)):
            try:
                steps[i] = np.linalg.solve(fixed[i], slope[i])
            except np.linalg.LinAlgError:
                continue  # stays NaN: not converged
        return steps


def _per_pair(of: Cells, values: Array) -> Array:
    """Sum values over the cells of each pair."""
    return values if of.starts.size == of.size else np.add.reduceat(values, of.starts, axis=1)
