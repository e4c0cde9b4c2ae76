"""How far a judge says what people say, and how far people say the same: one set of measures, intervals by group.

Numbers in, numbers out. A unit's value is the mean of what its raters gave; where a measure needs a place on the scale
(exact agreement, κ, α) the mean is rounded, halves up.
"""

from __future__ import annotations

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
DRAWS = 1000  # of the bootstrap
MEASURES = {  # name → what it is, and what chance gives
    "exact": "the same value",
    "within_one": "at most one step apart",
    "spearman": "Spearman's ρ",
    "kendall": "Kendall's τ-b",
    "kappa": "Cohen's κ",
    "alpha": "Krippendorff's α",
}


class Measure(Struct, frozen=True):
    """A number with its 95 % interval; None where it cannot be told (no variation; fewer than two groups)."""

    value: float | None
    low: float | None
    high: float | None
    rows: int
    groups: int


def known(x: float) -> float | None:
    return None if math.isnan(x) else float(x)


def measure(found: Interval) -> Measure:
    return Measure(known(found.value), known(found.low), known(found.high), found.rows, found.clusters)


def placed(values: Array, ordered: bool) -> Array:
    """The place on the scale nearest to each mean; choices are places already."""
    return np.floor(values + 0.5 + 1e-9) if ordered else values


def statistics(a: Array, b: Array, *, ordered: bool) -> dict[str, Callable[[Rows], float]]:
    """Every measure of agreement as a function of row numbers. `ordered` is a scale; otherwise choices, as numbers."""
    x, y = placed(a, ordered), placed(b, ordered)
    found: dict[str, Callable[[Rows], float]] = {"exact": lambda rows: kappa.exact(x[rows], y[rows])}
    if ordered:
        found["within_one"] = lambda rows: kappa.within(x[rows], y[rows])
    found["spearman"] = lambda rows: correlation.spearman(a[rows], b[rows])
    found["kendall"] = lambda rows: correlation.kendall(a[rows], b[rows])
    found["kappa"] = lambda rows: kappa.cohen(x[rows], y[rows], "quadratic" if ordered else None)
    found["alpha"] = lambda rows: krippendorff.alpha(np.stack([x[rows], y[rows]]), "ordinal" if ordered else "nominal")
    return found


class Compared(Struct, frozen=True):
    """Two agreements on the same rows, and the first less the second: what the rows share cancels."""

    first: dict[str, Measure]
    second: dict[str, Measure]
    difference: dict[str, Measure]


def agreement(
    a: Array, b: Array, groups: Sequence[str], *, ordered: bool, seed: int, draws: int = DRAWS
) -> dict[str, Measure]:
    """Every measure of how far `a` and `b` agree, row by row, with intervals that draw whole groups."""
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
    """How much more the two sides of `first` agree than those of `second`, on the same rows and the same draws."""
    how = ordered if isinstance(ordered, tuple) else (ordered, ordered)
    one, other = (statistics(*pair, ordered=o) for pair, o in zip((first, second), how, strict=True))
    found: tuple[dict[str, Measure], dict[str, Measure], dict[str, Measure]] = ({}, {}, {})
    for name in one:
        if name not in other:
            continue
        kept: tuple[list[float], list[float]] = ([], [])
        ends = []
        for place, statistic in enumerate((one[name], other[name])):
            ends.append(bootstrap.clustered(_keeping(statistic, kept[place]), groups, seed=seed, draws=draws))
            found[place][name] = measure(ends[place])
        apart = np.array(kept[0]) - np.array(kept[1])  # the value itself, then the draws
        between = bootstrap.interval(
            float(apart[0]), apart[1:], np.empty(0), ends[0].rows, ends[0].clusters, level=0.95
        )
        found[2][name] = measure(between)
    return Compared(*found)


def _keeping(statistic: Callable[[Rows], float], kept: list[float]) -> Callable[[Rows], float]:
    """The statistic, with every value it gives kept: the same seed draws the same rows for another one."""

    def call(rows: Rows) -> float:
        kept.append(statistic(rows))
        return kept[-1]

    return call


class Ceiling(Struct, frozen=True):
    """How far one person says what the other people say, the same of the judge against those same people, and the
    difference (person − judge): what a judge could reach at best, and how much is missing."""

    people: dict[str, Measure]
    judge: dict[str, Measure]
    difference: dict[str, Measure]
    alpha: Measure  # over all raters at once
    pairs: dict[str, float]  # "rater and rater" → exact agreement on the units both rated, at most PAIRS of them
    raters: int
    units: int


PAIRS = 20
_LEAST_PAIR = 10  # units two raters share


def ceiling(
    ratings: Array, judge: Array, groups: Sequence[str], raters: Sequence[str], *, ordered: bool, seed: int,
    settle: Callable[[Array], float], draws: int = DRAWS,
) -> Ceiling | None:  # fmt: skip
    """From ratings (raters, units), NaN where missing. None where no unit has two raters.

    `settle` makes one value of several people's: the mean of a scale, the majority of choices (NaN: undecided).
    """
    rows = []
    for unit in np.flatnonzero((~np.isnan(ratings)).sum(0) >= 2):
        for rater in np.flatnonzero(~np.isnan(ratings[:, unit])):
            others = np.delete(ratings[:, unit], rater)
            value = settle(others[~np.isnan(others)])
            if not math.isnan(value):
                rows.append((ratings[rater, unit], value, judge[unit], unit))
    if not rows:
        return None
    one, rest, by_judge, place = (np.array(column) for column in zip(*rows, strict=True))
    owners = [groups[int(unit)] for unit in place]
    several = np.flatnonzero((~np.isnan(ratings)).sum(0) >= 2)
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
    found: dict[str, float] = {}
    if len(raters) * (len(raters) - 1) // 2 > PAIRS:
        return found
    for i, first in enumerate(raters):
        for j in range(i + 1, len(raters)):
            both = ~np.isnan(ratings[i]) & ~np.isnan(ratings[j])
            if both.sum() >= _LEAST_PAIR:
                found[f"{first} and {raters[j]}"] = kappa.exact(ratings[i, both], ratings[j, both])
    return found
