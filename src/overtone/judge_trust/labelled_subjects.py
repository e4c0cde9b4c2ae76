"""People's labels beside a rubric: which dimension is which, what a label counts, and the subjects a judge is shown."""

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
OPTIONAL = ("topic", "context", "reference")  # texts that a request leaves out where a subject has none


class People(Struct, frozen=True):
    """What people gave in one dimension, as numbers: (raters, units), NaN where a rater did not rate a unit."""

    units: tuple[str, ...]
    raters: tuple[str, ...]
    ratings: Array


def matched(rubric: Rubric, labels: Labels, named: Mapping[str, str] | None = None) -> dict[str, str]:
    """Rubric's dimension → the labels' dimension: those of the same name, or as `named`. At least one, or an error."""
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
    found = {key: key for key in asked if key in theirs} | dict(named or {})
    if not found:
        raise UsageError(
            f"no dimension of rubric {rubric.name} ({', '.join(asked)}) is labelled in {shown(labels.path.name)} "
            f"({', '.join(map(shown, theirs))}); choose another --rubric, or say which is which: "
            f"--dimension {asked[0]}={shown(theirs[0])}"
        )
    return {key: found[key] for key in asked if key in found}


def people(labels: Labels, named: str, dimension: Dimension, units: Sequence[str]) -> People:
    """What people gave in the labels' dimension `named`, on the menu of the rubric's `dimension`."""
    table = labels.of(named)
    rated = tuple(unit for unit in units if unit in table)
    raters = tuple(dict.fromkeys(rater for unit in rated for rater in table[unit]))
    places = {rater: row for row, rater in enumerate(raters)}
    ratings = np.full((len(raters), len(rated)), math.nan)
    for column, unit in enumerate(rated):
        for rater, rating in table[unit].items():
            ratings[places[rater], column] = counted(labels, rating, dimension)
    return People(rated, raters, ratings)


def counted(labels: Labels, rating: Rating, dimension: Dimension) -> float:
    """What a label counts; DataError with its line where it is not on the dimension's menu."""
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
    """One value of several: a scale's mean; of choices the majority, else the one nearest to the mean (between two
    equally near ones that which lies in the middle); NaN where that does not decide."""
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
    """What the judge is shown of each unit. A thing the rubric asks for and no unit has is an error."""
    if rubric.subject == "group":
        raise UsageError(
            f"rubric {rubric.name} judges groups of replies in a run; a label file holds single ones or pairs"
        )
    chosen = [labels.units[name] for name in units]
    needed = [key for key in rubric.shows if key not in OPTIONAL]
    missing = [key for key in needed if not any(key in unit.texts for unit in chosen)]
    if hears != "nothing":
        missing += [f"{key}_sound" for key in rubric.hears if not any(key in unit.sounds for unit in chosen)]
    if missing:
        raise UsageError(
            f"rubric {rubric.name} puts {', '.join(missing)} before the judge, and {shown(labels.path.name)} has no "
            f"such column; its texts: {', '.join(sorted({key for unit in chosen for key in unit.texts})) or 'none'}"
        )
    return [Subject(unit.id, unit.group, unit.texts, unit.sounds, unit.style) for unit in chosen]


def chosen(labels: Labels, named: Sequence[str], limit: int | None, seed: int) -> list[str]:
    """The rated units, all or about `limit`: whole groups drawn by chance, so that a few stand for all."""
    rated = {rating.unit for rating in labels.ratings if rating.dimension in named}
    units = [unit for unit in labels.units.values() if unit.id in rated]
    if limit is None or limit >= len(units):
        return [unit.id for unit in units]
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.group, []).append(unit)
    names = list(groups)
    found: list[str] = []
    for place in np.random.default_rng(seed).permutation(len(names)):
        if len(found) < limit:
            found += [unit.id for unit in groups[names[place]]]
    return found[:limit]
