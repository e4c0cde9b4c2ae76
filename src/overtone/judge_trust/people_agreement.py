"""Agreement of a judge with people, and of people with each other: one set of measures, with intervals by group.

The functions take arrays and return numbers. A unit's value is the mean of its ratings. Measures that need whole steps
of the scale (exact agreement, κ, α) round this mean, halves up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.stats import agreement as krippendorff
from overtone.stats import bootstrap, correlation, kappa
from overtone.stats.cluster import Interval

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
DRAWS = 1000  # bootstrap resamples
MEASURES = {  # name → label
    "exact": "the same value",
    "within_one": "at most one step apart",
    "spearman": "Spearman's ρ",
    "kendall": "Kendall's τ-b",
    "kappa": "Cohen's κ",
    "alpha": "Krippendorff's α",
}


class Measure(Struct, frozen=True):
    """A number with its 95 % interval; None if it cannot be computed (no variation, or fewer than two groups)."""

    value: float | None
    low: float | None
    high: float | None
    rows: int
    groups: int


def finite(x: float) -> float | None:
    """Return the number, or None for NaN."""
    return None if math.isnan(x) else float(x)


def measure(interval: Interval) -> Measure:
    """Return an interval with None in place of NaN."""
    value, low, high = map(finite, (interval.value, interval.low, interval.high))
    return Measure(value, low, high, interval.rows, interval.clusters)


def nearest_step(values: Array, ordered: bool) -> Array:
    """Return the step of the scale nearest to each mean. If not `ordered`, values are choices and do not change."""
    return np.floor(values + 0.5 + 1e-9) if ordered else values


def statistics(a: Array, b: Array, *, ordered: bool) -> dict[str, Callable[[Rows], float]]:
    """Return measure's name → function of row indices. `ordered` is True for a scale, False for coded choices."""
    x, y = nearest_step(a, ordered), nearest_step(b, ordered)
    functions: dict[str, Callable[[Rows], float]] = {"exact": lambda rows: kappa.exact(x[rows], y[rows])}
    if ordered:
        functions["within_one"] = lambda rows: kappa.within(x[rows], y[rows])
    functions["spearman"] = lambda rows: correlation.spearman(a[rows], b[rows])
    functions["kendall"] = lambda rows: correlation.kendall(a[rows], b[rows])
    functions["kappa"] = lambda rows: kappa.cohen(x[rows], y[rows], "quadratic" if ordered else None)
    level: krippendorff.Level = "ordinal" if ordered else "nominal"
    functions["alpha"] = lambda rows: krippendorff.alpha(np.stack([x[rows], y[rows]]), level)
    return functions


class Compared(Struct, frozen=True):
    """Two agreements on the same rows, and the paired difference (first − second)."""

    first: dict[str, Measure]
    second: dict[str, Measure]
    difference: dict[str, Measure]


def agreement(
    a: Array, b: Array, groups: Sequence[str], *, ordered: bool, seed: int, draws: int = DRAWS
) -> dict[str, Measure]:
    """Return measure's name → agreement of `a` and `b`, with an interval from resampling whole groups."""
    return {
        name: measure(bootstrap.clustered(statistic, groups, seed=seed, draws=draws))
        for name, statistic in statistics(a, b, ordered=ordered).items()
    }


def compared(
    first: tuple[Array, Array],
    second: tuple[Array, Array],
    groups: Sequence[str],
    *,
    ordered: bool | tuple[bool, bool],
    seed: int,
    draws: int = DRAWS,
) -> Compared:
    """Compare the agreement of the two arrays in `first` with the agreement of the two arrays in `second`.

    Both agreements use the same resamples.
    """
    how = ordered if isinstance(ordered, tuple) else (ordered, ordered)
    one, other = (statistics(*pair, ordered=o) for pair, o in zip((first, second), how, strict=True))
    result = Compared({}, {}, {})
    for name in one:
        if name not in other:
            continue
        a, first_values = _recorded(one[name], groups, seed, draws)
        b, second_values = _recorded(other[name], groups, seed, draws)
        differences = first_values - second_values  # the value itself, then one per resample
        difference = bootstrap.interval(
            float(differences[0]), differences[1:], np.empty(0), a.rows, a.clusters, level=0.95
        )
        result.first[name], result.second[name], result.difference[name] = map(measure, (a, b, difference))
    return result


def _recorded(
    statistic: Callable[[Rows], float], groups: Sequence[str], seed: int, draws: int
) -> tuple[Interval, Array]:
    """Bootstrap a statistic. Return its interval and its value on each resample; equal seeds give equal resamples."""
    values: list[float] = []

    def call(rows: Rows) -> float:
        values.append(statistic(rows))
        return values[-1]

    return bootstrap.clustered(call, groups, seed=seed, draws=draws), np.array(values)


class Ceiling(Struct, frozen=True):
    """The ceiling for a judge: how well one person agrees with the other people.

    `people` is this agreement, `judge` is the judge's agreement with the same other people, and `difference` is the
    first minus the second.
    """

    people: dict[str, Measure]
    judge: dict[str, Measure]
    difference: dict[str, Measure]
    alpha: Measure  # over all raters at once
    pairs: dict[str, float]  # "rater and rater" → exact agreement; empty for more than PAIRS pairs
    raters: int
    units: int


PAIRS = 20
_LEAST_PAIR = 10  # minimum of units that two raters share


def ceiling(
    ratings: Array, judge: Array, groups: Sequence[str], raters: Sequence[str], *, ordered: bool, seed: int,
    settle: Callable[[Array], float], draws: int = DRAWS,
) -> Ceiling | None:  # fmt: skip
    """Compute the ceiling from ratings (raters, units) with NaN for missing ones; None if no unit has two raters.

    `settle` reduces several people's ratings to one value: a scale's mean or a majority of choices (NaN: undecided).
    """
    rows = []
    several = np.flatnonzero((~np.isnan(ratings)).sum(0) >= 2)
    for unit in several:
        for rater in np.flatnonzero(~np.isnan(ratings[:, unit])):
            others = np.delete(ratings[:, unit], rater)
            value = settle(others[~np.isnan(others)])
            if not math.isnan(value):
                rows.append((ratings[rater, unit], value, judge[unit], unit))
    if not rows:
        return None
    one, rest, by_judge, place = (np.array(column) for column in zip(*rows, strict=True))
    owners = [groups[int(unit)] for unit in place]
    level: krippendorff.Level = "ordinal" if ordered else "nominal"
    table = ratings[:, several]
    all_at_once = bootstrap.clustered(
        lambda drawn: krippendorff.alpha(table[:, drawn], level),
        [groups[int(u)] for u in several],
        seed=seed,
        draws=draws,
    )
    both = compared((one, rest), (by_judge, rest), owners, ordered=ordered, seed=seed, draws=draws)
    return Ceiling(
        both.first,
        both.second,
        both.difference,
        measure(all_at_once),
        _pairs(ratings, raters),
        len(ratings),
        len(several),
    )


def _pairs(ratings: Array, raters: Sequence[str]) -> dict[str, float]:
    shares: dict[str, float] = {}
    pairs = list(itertools.combinations(range(len(raters)), 2))
    for i, j in pairs if len(pairs) <= PAIRS else ():
        both = ~np.isnan(ratings[i]) & ~np.isnan(ratings[j])
        if both.sum() >= _LEAST_PAIR:
            shares[f"{raters[i]} and {raters[j]}"] = kappa.exact(ratings[i, both], ratings[j, both])
    return shares
