"""Power and sample size of paired designs, before anything is run: how many rows does a difference need?

Two systems answer the same rows; rows come in clusters of `per_cluster` rows, whose differences have the correlation
`alike`. So the number of rows is divided by the design effect 1 + (per_cluster − 1) · `alike`. For means the test is
Student's with (clusters − 1) degrees of freedom, and its distribution under the difference is approximated by a
shifted Student distribution; the noncentral one differs by at most 0.035 of power at 10 clusters, 0.016 at 20 and 0.008
at 40. For proportions the test is McNemar's, by its normal approximation (Connor 1987). `bench/stats.py` compares both
with simulated tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from overtone.stats.beta import student_cdf
from overtone.stats.cluster import normal_quantile, student_quantile

LEVEL = 0.95  # confidence level of the two-sided test
_MOST = 1_000_000_000  # a design that needs more rows is rejected


@dataclass(frozen=True)
class Design:
    """The size and power of a design: `rows` in `clusters`, with the probability `power` of detecting `difference`."""

    difference: float
    rows: int
    clusters: int
    power: float


def spread_of_difference(spread_a: float, spread_b: float, alike: float) -> float:
    """Return the standard deviation of a − b from the standard deviations and the correlation of a and b over rows."""
    if spread_a < 0 or spread_b < 0 or not -1 <= alike <= 1:
        raise ValueError("standard deviations must be at least 0 and the correlation between -1 and 1")
    return math.sqrt(max(0.0, spread_a**2 + spread_b**2 - 2 * alike * spread_a * spread_b))


def discordant(rate_a: float, rate_b: float, alike: float = 0.0) -> tuple[float, float]:
    """Return the share of rows that only a gets right, and the share for b. `alike` is the answers' correlation (φ)."""
    if not (0 <= rate_a <= 1 and 0 <= rate_b <= 1 and -1 <= alike <= 1):
        raise ValueError("rates must be between 0 and 1 and the correlation between -1 and 1")
    both = rate_a * rate_b + alike * math.sqrt(rate_a * (1 - rate_a) * rate_b * (1 - rate_b))
    if not max(0.0, rate_a + rate_b - 1) - 1e-12 <= both <= min(rate_a, rate_b) + 1e-12:
        raise ValueError(f"rates of {rate_a} and {rate_b} cannot have a correlation of {alike}; choose one closer to 0")
    return max(0.0, rate_a - both), max(0.0, rate_b - both)


def mean_power(
    difference: float, spread: float, clusters: int, *, per_cluster: float = 1, alike: float = 0.0, level: float = LEVEL
) -> float:
    """Return the power of a two-sided paired test at 1 − `level` to detect a mean `difference`. `spread` is the
    standard deviation of the rows' differences.
    """
    _check(level, per_cluster, alike)
    if clusters < 2:
        raise ValueError("a paired test needs at least two clusters")
    if spread <= 0:
        raise ValueError("the spread of the differences must be above 0")
    rows = clusters * per_cluster / design_effect(per_cluster, alike)
    moved = abs(difference) * math.sqrt(rows) / spread
    cut = student_quantile(1 - (1 - level) / 2, clusters - 1)
    return student_cdf(moved - cut, clusters - 1) + student_cdf(-cut - moved, clusters - 1)


def mean_size(
    difference: float, spread: float, *, power: float = 0.8, per_cluster: float = 1, alike: float = 0.0
) -> Design:
    """Return the fewest clusters with which `mean_power` reaches `power`."""

    def reached(clusters: int) -> float:
        return mean_power(difference, spread, clusters, per_cluster=per_cluster, alike=alike)

    return _smallest(difference, power, per_cluster, reached)


def proportion_power(
    only_a: float, only_b: float, clusters: int, *, per_cluster: float = 1, alike: float = 0.0, level: float = LEVEL
) -> float:
    """Return the power of McNemar's test. `only_a` and `only_b` are shares of rows that only one side gets right."""
    _check(level, per_cluster, alike)
    _check_discordant(only_a, only_b)
    rows = clusters * per_cluster / design_effect(per_cluster, alike)
    difference, either = abs(only_a - only_b), only_a + only_b
    cut = -normal_quantile((1 - level) / 2)
    left = math.sqrt(max(either - difference**2, 0.0))
    reach = difference * math.sqrt(rows)
    near = (reach - cut * math.sqrt(either)) / left if left else math.copysign(math.inf, reach - cut)
    far = (-reach - cut * math.sqrt(either)) / left if left else -math.inf
    return student_cdf(near, math.inf) + student_cdf(far, math.inf)


def proportion_size(
    only_a: float, only_b: float, *, power: float = 0.8, per_cluster: float = 1, alike: float = 0.0
) -> Design:
    """Return the fewest clusters with which `proportion_power` reaches `power`."""
    _check_discordant(only_a, only_b)

    def reached(clusters: int) -> float:
        return proportion_power(only_a, only_b, clusters, per_cluster=per_cluster, alike=alike)

    return _smallest(only_a - only_b, power, per_cluster, reached)


def design_effect(per_cluster: float, alike: float) -> float:
    """Return the number of correlated rows of a cluster that count as one independent row."""
    return 1 + (per_cluster - 1) * alike


def _smallest(difference: float, power: float, per_cluster: float, reached: Callable[[int], float]) -> Design:
    """Return the design with the fewest clusters, at least 2, that reaches the power: by doubling, then bisection."""
    if difference == 0:
        raise ValueError("no number of rows detects a difference of 0; give the smallest difference that matters")
    if not 1 - LEVEL < power < 1:
        raise ValueError(f"a power must be between {1 - LEVEL:g} (the rate by chance) and 1, not {power}")
    high = 2
    while reached(high) < power:
        high *= 2
        if high > _MOST:
            raise ValueError(f"no design of up to {_MOST:,} clusters detects such a small difference")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) < power else (low, middle)
    return Design(difference, math.ceil(high * per_cluster - 1e-9), high, reached(high))


def _check(level: float, per_cluster: float, alike: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"needs a level between 0 and 1, not {level}")
    if per_cluster < 1 or not 0 <= alike <= 1:
        raise ValueError("a cluster needs at least one row, and the correlation of its rows must be between 0 and 1")


def _check_discordant(only_a: float, only_b: float) -> None:
    if only_a < 0 or only_b < 0 or not 0 < only_a + only_b <= 1:
        raise ValueError(
            f"the shares of rows that one side gets right must add up to between 0 and 1, not {only_a} and {only_b}"
        )
