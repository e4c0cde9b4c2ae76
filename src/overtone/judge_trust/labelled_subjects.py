"""Match people's labels with a rubric: dimensions, labels as numbers, and the subjects that a judge gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.judge_trust.labels import Labels, Rating, Unit
from overtone.judges.judge_input import Subject
from overtone.judges.policy import Hears
from overtone.judges.rubric import Dimension, Rubric
from overtone.paths import shown
from overtone.spec import suggest

Array = npt.NDArray[np.float64]
OPTIONAL = ("topic", "context", "reference")  # texts that a subject may lack


class People(Struct, frozen=True):
    """People's ratings in one dimension as numbers (raters, units), with NaN for missing ones."""

    units: tuple[str, ...]
    raters: tuple[str, ...]
    ratings: Array


def matched(rubric: Rubric, labels: Labels, named: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return rubric's dimension → labels' dimension, as in `named` or by equal names. Raises UsageError without a
    match."""
    theirs = labels.dimensions
    asked = [d.key for d in rubric.dimensions]
    for ours, other in (named or {}).items():
        if ours not in asked:
            raise UsageError(
                f"rubric {rubric.name} has no dimension {ours!r}{suggest(ours, asked)}; it has {', '.join(asked)}"
            )
        if other not in theirs:
            raise UsageError(
                f"{shown(labels.path.name)} has no labels for {other!r}{suggest(other, theirs)}; "
                f"it has {', '.join(map(shown, theirs))}"
            )
    mapping = {key: key for key in asked if key in theirs} | dict(named or {})
    if not mapping:
        raise UsageError(
            f"no dimension of rubric {rubric.name} ({', '.join(asked)}) is labelled in {shown(labels.path.name)} "
            f"({', '.join(map(shown, theirs))}); choose another --rubric, or say which is which: "
            f"--dimension {asked[0]}={shown(theirs[0])}"
        )
    return {key: mapping[key] for key in asked if key in mapping}


def people(labels: Labels, named: str, dimension: Dimension, units: Sequence[str]) -> People:
    """Return people's ratings in the labels' dimension `named`, as numbers on the scale of the rubric's `dimension`."""
    table = labels.of(named)
    rated = tuple(unit for unit in units if unit in table)
    raters = tuple(dict.fromkeys(rater for unit in rated for rater in table[unit]))
    places = {rater: row for row, rater in enumerate(raters)}
    ratings = np.full((len(raters), len(rated)), math.nan)
    for column, unit in enumerate(rated):
        for rater, rating in table[unit].items():
            ratings[places[rater], column] = as_number(labels, rating, dimension)
    return People(rated, raters, ratings)


def as_number(labels: Labels, rating: Rating, dimension: Dimension) -> float:
    """Convert a label to a number. Raises DataError, with the label's line, if the dimension does not allow the
    label."""
    value = rating.value
    low, high = dimension.ends
    if dimension.scale and isinstance(value, float) and low <= value <= high:
        return value
    if not dimension.scale:
        for choice in dimension.choices:
            if choice.lower() == str(value).lower() or dimension.values[choice] == value:
                return dimension.values[choice]
    menu = f"a number from {low:g} to {high:g}" if dimension.scale else " or ".join(dimension.choices)
    raise DataError(
        f"{shown(str(labels.path))}, {rating.where}: {rating.dimension} is {shown(str(value))!r}; "
        f"the rubric's {dimension.key} is {menu}"
    )


def settled(values: Array, dimension: Dimension) -> float:
    """Reduce several values to one: the mean on a scale, or the most frequent choice.

    If several choices are equally frequent, the one nearest to the mean is taken. If two are equally near, the more
    central one is taken. If both are equally central, the result is NaN.
    """
    if not values.size:
        return math.nan
    if dimension.scale:
        return float(values.mean())
    kinds, often = np.unique(values, return_counts=True)
    if (often == often.max()).sum() == 1:
        return float(kinds[often.argmax()])
    menu = np.array(sorted(set(dimension.values.values())))
    away = np.abs(menu - values.mean())
    nearest = menu[away <= away.min() + 1e-9]
    if len(nearest) > 1:
        central = np.abs(nearest - (menu[0] + menu[-1]) / 2)
        nearest = nearest[central <= central.min() + 1e-9]
    return float(nearest[0]) if len(nearest) == 1 else math.nan


def subjects(rubric: Rubric, labels: Labels, units: Sequence[str], hears: Hears) -> list[Subject]:
    """Return the subjects for the judge. Raises UsageError if all units lack a text or sound that the rubric needs."""
    if rubric.subject == "group":
        raise UsageError(
            f"rubric {rubric.name} judges groups of replies in a run; a label file has single replies or pairs"
        )
    chosen = [labels.units[name] for name in units]
    needed = [key for key in rubric.shows if key not in OPTIONAL]
    missing = [key for key in needed if not any(key in unit.texts for unit in chosen)]
    if hears != "nothing":
        missing += [f"{key}_sound" for key in rubric.hears if not any(key in unit.sounds for unit in chosen)]
    if missing:
        raise UsageError(
            f"rubric {rubric.name} needs {', '.join(missing)}, and {shown(labels.path.name)} has no such column; "
            f"its texts: {', '.join(sorted({key for unit in chosen for key in unit.texts})) or 'none'}"
        )
    return [Subject(unit.id, unit.group, unit.texts, unit.sounds, unit.style) for unit in chosen]


def chosen(labels: Labels, named: Sequence[str], limit: int | None, seed: int) -> list[str]:
    """Return the rated units. With `limit`, return that many units, from whole groups drawn at random."""
    rated = {rating.unit for rating in labels.ratings if rating.dimension in named}
    units = [unit for unit in labels.units.values() if unit.id in rated]
    if limit is None or limit >= len(units):
        return [unit.id for unit in units]
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.group, []).append(unit)
    names = list(groups)
    order = np.random.default_rng(seed).permutation(len(names))
    return [unit.id for place in order for unit in groups[names[place]]][:limit]
