"""Multinomial logistic regression with an L2 penalty, by L-BFGS. The core has neither SciPy nor scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.intp]

_MEMORY, _STEPS, _CLOSE = 12, 150, 1e-6
_CURVED = 1e-12


def fit(
    x: NDArray[np.floating[Any]],
    classes: Codes,
    possible: Flags,
    weights: Array,
    strength: float,
    start: Array | None = None,
) -> Array:
    """Return weights (classes, features + 1), the last column the biases, which are not penalised.

    `possible` (rows, classes) is False for a class that a row's corpus does not label: the row then says nothing about
    it. `weights` are those of the rows. `strength` is that of the penalty, relative to a mean loss over the rows. The
    large products have the precision of `x`.
    """
    rows, width = x.shape
    count = possible.shape[1]
    share = weights / weights.sum()
    wanted = np.eye(count)[classes]
    hidden = np.where(possible, 0.0, -np.inf)

    def loss(flat: Array) -> tuple[float, Array]:
        w = flat.reshape(count, width + 1)
        scores = (x @ w[:, :-1].T.astype(x.dtype)).astype(np.float64) + w[:, -1] + hidden
        scores -= scores.max(1, keepdims=True)
        likely = np.exp(scores)
        total = likely.sum(1, keepdims=True)
        value = -share @ (scores[np.arange(rows), classes] - np.log(total[:, 0]))
        error = (likely / total - wanted) * share[:, None]
        slope = np.concatenate([error.T.astype(x.dtype) @ x + strength * w[:, :-1], error.sum(0)[:, None]], 1)
        return float(value + strength / 2 * np.square(w[:, :-1]).sum()), slope.ravel()

    first = np.zeros(count * (width + 1)) if start is None else start.ravel()
    return minimised(loss, first).reshape(count, width + 1)


def minimised(loss: Callable[[Array], tuple[float, Array]], at: Array) -> Array:
    """Return where a smooth convex function, which returns its value and gradient, is least; by L-BFGS."""
    value, slope = loss(at)
    moves: list[Array] = []
    turns: list[Array] = []
    for _ in range(_STEPS):
        direction = -_curved(slope, moves, turns)
        along = float(direction @ slope)
        if along >= 0:  # the memory misleads: start over
            moves, turns, direction = [], [], -slope
            along = -float(slope @ slope)
        step = 1.0 if moves else min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1e-300))
        while True:
            below, below_slope = loss(at + step * direction)
            if below <= value + 1e-4 * step * along:
                break
            step /= 2
            if step < 1e-12:
                return at
        move, turn = step * direction, below_slope - slope
        at = at + move
        if move @ turn > _CURVED:
            moves, turns = [*moves, move][-_MEMORY:], [*turns, turn][-_MEMORY:]
        close = value - below < _CLOSE * max(1.0, abs(below))
        value, slope = below, below_slope
        if close:
            break
    return at


def _curved(slope: Array, moves: list[Array], turns: list[Array]) -> Array:
    """Return the gradient times the inverse curvature that the last moves show (the two loops of L-BFGS)."""
    out = slope.copy()
    factors = []
    for move, turn in zip(reversed(moves), reversed(turns), strict=True):
        factor = (move @ out) / (move @ turn)
        factors.append(factor)
        out -= factor * turn
    if moves:
        out *= (moves[-1] @ turns[-1]) / (turns[-1] @ turns[-1])
    for move, turn, factor in zip(moves, turns, reversed(factors), strict=True):
        out += (factor - (turn @ out) / (move @ turn)) * move
    return out
