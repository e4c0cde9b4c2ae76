"""Do replies follow the voice? Computed from the replies to a script's styles and the references of those styles.

Each script gives a square of similarities, replies by references. Subtracting row and column means removes what a reply
shares with every reference and what a reference shares with every reply, so that a model whose replies do not depend on
the voice scores 0 and chance whatever it says. This is not comparable with a judge's score of speech relevance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.results.load import Answer
from overtone.results.measures import TIE, Estimate, estimate
from overtone.results.side_measures import by_basis, of_script

METRIC = "style_margin"
STYLES = ("target", "alternative", "neutral")

Square = npt.NDArray[np.float64]  # (replies, references), styles in one order


class StyleRow(Struct, frozen=True):
    """All squares of one size. `scripts` that lack a reply, a score or a reference are left out and counted.

    `squares` is the number of squares behind it: scripts times repeats.
    """

    basis: str
    styles: int  # 3 or 2
    sensitivity: Estimate
    assignment: Estimate
    chance: float
    squares: int
    left_out: int


def sensitivities(squares: Square) -> Square:
    """Return, for each square, the mean of the diagonal minus the mean of the rest, after subtracting row and column
    means."""
    rows, columns = squares.mean(1, keepdims=True), squares.mean(2, keepdims=True)
    centred = squares - rows - columns + squares.mean((1, 2), keepdims=True)
    own = np.eye(squares.shape[1], dtype=bool)
    differences: Square = centred[:, own].mean(1) - centred[:, ~own].mean(1)
    return differences


def assignments(squares: Square) -> Square:
    """Return, for each square, 1 if the true pairing of replies and references is the most similar of all, else 0. If
    several pairings tie with it, return the probability of choosing the true one at random."""
    n = squares.shape[1]
    orders = itertools.permutations(range(n))
    sums = np.stack([squares[:, range(n), list(order)].sum(1) for order in orders], axis=1)
    tied = sums > sums.max(1, keepdims=True) - TIE * n
    shares: Square = np.where(tied[:, 0], 1 / tied.sum(1), 0.0)  # the first permutation is the true one
    return shares


def style_rows(answers: Iterable[Answer]) -> list[StyleRow]:
    """Return one row for every basis and size of square; an empty list if no script was asked and scored in two
    styles."""
    return [
        _row(basis, size, [(group, square_of(replies)) for group, replies in scripts])
        for basis, size, scripts in by_size(answers)
    ]


def by_size(answers: Iterable[Answer]) -> list[tuple[str, int, list[tuple[str, dict[str, Answer]]]]]:
    """Return the scripts of every basis and size of square, once for each repeat, with the reply to each style."""
    asked = [a for a in answers if _belongs(a)]
    if not any(METRIC in a.scores for a in asked):
        return []
    sizes = []
    for basis, part in by_basis(asked, of_script(asked)):
        scripts: dict[tuple[str, int], dict[str, Answer]] = {}
        for answer in part:
            scripts.setdefault((answer.item.group, answer.repeat), {})[answer.item.style] = answer
        for size in (3, 2):
            own = [(group, replies) for (group, _), replies in scripts.items() if len(replies) == size]
            if own:
                sizes.append((basis, size, own))
    return sizes


def _belongs(answer: Answer) -> bool:
    item = answer.item
    return item.task == "converse" and not item.part and item.style in STYLES and len(item.turns) <= 1


def square_of(replies: dict[str, Answer]) -> Square | None:
    """Return the similarities of one script's replies to its references, or None if any of them is missing."""
    styles = [s for s in STYLES if s in replies]
    rows: list[list[float]] = []
    for style in styles:
        score = replies[style].scores.get(METRIC) if replies[style].answered else None
        row = [score.detail.get(f"sim_{other}") for other in styles] if score is not None else []
        known = [float(x) for x in row if isinstance(x, int | float) and math.isfinite(x)]
        if len(known) < len(styles):
            return None
        rows.append(known)
    return np.array(rows)


def _row(basis: str, size: int, squares: Sequence[tuple[str, Square | None]]) -> StyleRow:
    known = [square for _, square in squares if square is not None]
    stacked = np.stack(known) if known else np.empty((0, size, size))

    def read(function: Callable[[Square], Square]) -> list[tuple[float | None, str]]:
        values = iter(function(stacked).tolist())
        return [(None if square is None else next(values), group) for group, square in squares]

    return StyleRow(
        basis=basis,
        styles=size,
        sensitivity=estimate(read(sensitivities)),
        assignment=estimate(read(assignments), kind="proportion", good=1.0, bad=0.0),
        chance=1 / math.factorial(size),
        squares=sum(square is not None for _, square in squares),
        left_out=sum(square is None for _, square in squares),
    )
