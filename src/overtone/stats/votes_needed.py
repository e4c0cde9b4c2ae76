"""How many more votes are needed to decide which of two systems is better, if the present estimate is about right.

The difference on each script has two parts: a real one, which more votes on the same scripts do not average out, and
the noise of the votes. More votes reduce only the noise. If the real differences between scripts are too large, more
scripts are needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from overtone.stats.cluster import student_quantile
from overtone.stats.minimums import DIFFERENCE

MOST = 20.0  # times as many votes or scripts as there are; beyond, the answer would be a guess
Verdict = Literal["decided", "votes", "scripts", "people", "close", "few"]


class Decision(Struct, frozen=True):
    """The data needed for a decision.

    `decided`: the difference is significant already. `votes`: about `more` votes on the same scripts suffice.
    `scripts`: about `more` further scripts suffice. `people`: the scripts suffice, but the raters differ too much from
    each other, so more people are needed. `close`: MOST times the data would not suffice. `few`: that cannot be said,
    because fewer than DIFFERENCE.least scripts have answers about both systems.
    """

    verdict: Verdict
    more: int = 0


def votes_needed(
    values: Sequence[float],
    scripts: Sequence[str],
    sides: Sequence[int],
    *,
    level: float = 0.95,
    p: float | None = None,
) -> Decision:
    """Return the data needed to decide whether the mean difference is not 0.

    `sides` is 1 for a rating of the first system, −1 for a rating of the second. For votes on pairs, whose values are
    already differences, it is always 1. `p` is the p-value of a test that respects raters too, which then says whether
    the difference is decided; None: there is no such test.
    """
    decision = _by_scripts(values, scripts, sides, level)
    if p is None:
        return decision
    if p < 1 - level:
        return Decision("decided")
    return Decision("people") if decision.verdict == "decided" else decision


def _by_scripts(values: Sequence[float], scripts: Sequence[str], sides: Sequence[int], level: float) -> Decision:
    rated: dict[str, tuple[list[float], list[float]]] = {}
    for value, script, side in zip(values, scripts, sides, strict=True):
        rated.setdefault(script, ([], []))[0 if side > 0 else 1].append(value)
    pairs = all(side > 0 for side in sides)
    whole = [(first, second) for first, second in rated.values() if first and (second or pairs)]
    if len(whole) < 2:
        return Decision("few")
    undecided = Decision("few" if len(whole) < DIFFERENCE.least else "close")
    gaps = np.array([np.mean(first) - (np.mean(second) if second else 0.0) for first, second in whole])
    count = len(whole)
    votes = sum(len(first) + len(second) for first, second in whole)
    mean, spread = float(gaps.mean()), float(gaps.var(ddof=1))
    quantile = student_quantile(0.5 + level / 2, count - 1)
    if mean == 0:
        return undecided
    if mean**2 > quantile**2 * spread / count:
        return Decision("decided")
    noise = min(_noise(whole), spread)  # of one script's difference
    room = mean**2 * count / quantile**2 - (spread - noise)
    if room > 0 and noise / room <= MOST:
        return Decision("votes", max(1, math.ceil(votes * (noise / room - 1))))
    wanted = quantile**2 * spread / mean**2
    if wanted <= MOST * count:
        return Decision("scripts", max(1, math.ceil(wanted - count)))
    return undecided


def _noise(whole: Sequence[tuple[list[float], list[float]]]) -> float:
    """Return the mean variance of a script's difference that comes from the votes; infinite if no script has two votes
    on one side, because then all variation may be noise."""
    squares, freedom = 0.0, 0
    for side in (one for both in whole for one in both if one):
        squares += float(((np.array(side) - np.mean(side)) ** 2).sum())
        freedom += len(side) - 1
    if not freedom:
        return math.inf
    variance = squares / freedom
    return variance * float(np.mean([sum(1 / len(one) for one in both if one) for both in whole]))
