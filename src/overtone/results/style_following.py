"""Do replies follow the voice? Compare the replies to each style of a script with the reference of each style.

Each script gives a square table of similarities, replies by references. Subtracting row and column means removes the
content that a reply shares with all references, and that a reference shares with all replies. So if a model's replies
do not depend on the voice, sensitivity is 0 and assignment is at chance, whatever the replies say. These numbers are
not comparable with a judge's score of speech relevance.
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

Square = npt.NDArray[np.float64]  # (…, replies, references), with the same order of styles in both


class StyleRow(Struct, frozen=True):
    """The results over all squares of one size. `squares` is their number: one for each script and repeat.

    `left_out` counts the scripts that are left out because a reply, a score or a reference is missing.
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
    """Return, for each square, 1 if the true pairing of replies and references has the highest similarity of all
    pairings, else 0. In a tie, return the probability of choosing the true pairing at random."""
    n = squares.shape[1]
    orders = itertools.permutations(range(n))
    sums = np.stack([squares[:, range(n), list(order)].sum(1) for order in orders], axis=1)
    tied = sums > sums.max(1, keepdims=True) - TIE * n
    shares: Square = np.where(tied[:, 0], 1 / tied.sum(1), 0.0)  # the first permutation is the true one
    return shares


def style_rows(answers: Iterable[Answer]) -> list[StyleRow]:
    """Return one row for each basis and size of square; an empty list if no script has scores in two styles."""
    return [
        _row(basis, size, [(group, square_of(replies)) for group, replies in scripts])
        for basis, size, scripts in by_size(answers)
    ]


def by_size(answers: Iterable[Answer]) -> list[tuple[str, int, list[tuple[str, dict[str, Answer]]]]]:
    """Return (basis, size, scripts) for each basis and size of square. A script is given once for each repeat, with
    style → reply."""
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
    """Return the similarities between one script's replies and its references, or None if any similarity is missing."""
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
