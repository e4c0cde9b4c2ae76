"""Exact binomial tails and intervals, e.g. to test whether answers are correct more often than by guessing.

For independent trials. If trials share a script or a speaker, use the interval of `cluster.proportion`.
"""

from __future__ import annotations

import math
from collections.abc import Callable


def at_least(successes: int, trials: int, chance: float) -> float:
    """Return the probability of `successes` or more in `trials` trials that each succeed with probability `chance`."""
    _check(successes, trials)
    if not 0 <= chance <= 1:
        raise ValueError(f"a chance must be between 0 and 1, not {chance}")
    if successes == 0 or chance == 1:
        return 1.0
    if chance == 0:
        return 0.0
    tail = math.fsum(math.exp(_log_term(k, trials, chance)) for k in range(successes, trials + 1))
    return min(1.0, tail)


def at_most(successes: int, trials: int, chance: float) -> float:
    """Return the probability of `successes` or fewer in `trials` trials that each succeed with probability `chance`."""
    _check(successes, trials)
    return at_least(trials - successes, trials, 1 - chance)


def exact_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a proportion; (0, 1) without trials. It contains the true proportion with
    a probability of at least `level`.
    """
    _check(successes, trials)
    if not 0 < level < 1:
        raise ValueError(f"a level must be between 0 and 1, not {level}")
    tail = (1 - level) / 2
    low = _turning_point(lambda p: at_least(successes, trials, p) < tail) if successes else 0.0
    high = _turning_point(lambda p: at_most(successes, trials, p) >= tail) if successes < trials else 1.0
    return low, high


def _turning_point(below: Callable[[float], bool]) -> float:
    """Find by bisection the p at which `below` changes from true (for small p) to false."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def _log_term(k: int, trials: int, chance: float) -> float:
    log_choose = math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
    return log_choose + k * math.log(chance) + (trials - k) * math.log1p(-chance)


def _check(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is not a count of successes")
