"""Consistency of several judges on the same units: how often two judges agree, and how often each agrees with people.

This follows AEQ-Bench's baseline of 50 pairs of replies. Its threshold of 80 % is for coarse answers: a scale from 1 to
5 is reduced to three steps; choices and other scales are compared as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.errors import DataError
from overtone.judge_trust.labelled_subjects import people, settled
from overtone.judge_trust.labels import Labels
from overtone.judge_trust.people_agreement import DRAWS, Measure, measure, nearest_step
from overtone.judge_trust.scale_questions import collapsed
from overtone.judges.judgement import Judgement
from overtone.judges.rubric import Dimension, Rubric
from overtone.stats import agreement as krippendorff
from overtone.stats import bootstrap, cluster

Array = npt.NDArray[np.float64]
LINE = 0.8  # minimum share of equal answers of consistent judges
PEOPLE = "people"


class Couple(Struct, frozen=True):
    """Two judges, or a judge and people, on the same units. `side` says whether the interval is above, below or across
    the threshold LINE."""

    first: str
    second: str
    same: Measure  # share of units with equal answers
    side: Literal["above", "below", "across", "unknown"]


class Consistent(Struct, frozen=True):
    """The agreement in one dimension: between every two judges, between each judge and people, and among all judges."""

    key: str
    label: str
    coarse: bool  # five steps were reduced to three
    judges: list[Couple]
    people: list[Couple]
    mean: float | None  # of the judges' shares
    alpha: Measure  # Krippendorff's, over all judges
    sentence: str


def consistency(
    judgements: Mapping[str, Sequence[Judgement]], rubric: Rubric, labels: Labels, dimensions: Mapping[str, str], *,
    seed: int, draws: int = DRAWS,
) -> list[Consistent]:  # fmt: skip
    """Compare two or more judges, given by name. `dimensions` maps the rubric's dimensions to the labels'."""
    return [
        _dimension(judgements, d, labels, dimensions[d.key], seed, draws)
        for d in rubric.dimensions
        if d.key in dimensions
    ]


def _dimension(
    judgements: Mapping[str, Sequence[Judgement]], d: Dimension, labels: Labels, named: str, seed: int, draws: int
) -> Consistent:
    units = {j.subject.id: j.subject.group for given in judgements.values() for j in given}
    names, groups = list(units), list(units.values())
    rows = {name: _settled(given, d, names) for name, given in judgements.items()}
    human = _people(labels, named, d, names)
    judges = [
        _couple(a, b, rows[a], rows[b], groups, f"{d.key}: {a} and {b} share no unit that both judged")
        for a, b in itertools.combinations(rows, 2)
    ]
    with_people = [
        _couple(a, PEOPLE, values, human, groups, f"{d.key}: {a} judged no labelled unit") for a, values in rows.items()
    ]
    table = np.stack(list(rows.values()))
    level: krippendorff.Level = "ordinal" if d.ordered else "nominal"
    alpha = bootstrap.clustered(lambda at: krippendorff.alpha(table[:, at], level), groups, seed=seed, draws=draws)
    shares = [c.same.value for c in judges if c.same.value is not None]
    mean = sum(shares) / len(shares) if shares else None
    sentence = _sentence(judges, with_people, mean)
    return Consistent(d.key, d.label, d.scale == (1, 5), judges, with_people, mean, measure(alpha), sentence)


def _settled(given: Sequence[Judgement], d: Dimension, names: Sequence[str]) -> Array:
    by_unit = {j.subject.id: settled(np.array(j.numbers(d)), d) for j in given}
    return _coarse(np.array([by_unit.get(name, math.nan) for name in names]), d)


def _people(labels: Labels, named: str, d: Dimension, names: Sequence[str]) -> Array:
    given = people(labels, named, d, names)
    columns = [given.ratings[:, place] for place in range(len(given.units))]
    by_unit = {unit: settled(column[~np.isnan(column)], d) for unit, column in zip(given.units, columns, strict=True)}
    return _coarse(np.array([by_unit.get(name, math.nan) for name in names]), d)


def _coarse(values: Array, d: Dimension) -> Array:
    if d.scale == (1, 5):
        return collapsed(values)
    return nearest_step(values, d.scale is not None)


def _couple(first: str, second: str, a: Array, b: Array, groups: Sequence[str], nothing: str) -> Couple:
    both = ~np.isnan(a) & ~np.isnan(b)
    if not both.any():
        raise DataError(nothing)
    owners = [group for group, keep in zip(groups, both, strict=True) if keep]
    same = measure(cluster.proportion((a[both] == b[both]).astype(np.float64), owners))
    return Couple(first, second, same, _side(same))


def _side(same: Measure) -> Literal["above", "below", "across", "unknown"]:
    if same.low is None or same.high is None:
        return "unknown"
    return "above" if same.low >= LINE else "below" if same.high < LINE else "across"


def _sentence(judges: Sequence[Couple], with_people: Sequence[Couple], mean: float | None) -> str:
    reach = sum(c.same.value is not None and c.same.value >= LINE for c in with_people)
    sure = sum(c.side == "above" for c in with_people)
    return (
        f"Two judges agree on {100 * (mean or 0):.0f} % of the units on average. {reach} of {len(with_people)} judges "
        f"agree with people on at least {100 * LINE:.0f} %; for {sure} of them the whole interval does."
    )
