"""Two questions about judging itself, after AEQ-Bench: is a coarse scale easier to agree on than a fine one, and does a
judge that hears agree better with people than one that reads a description of the sound?

Coarse: the same rubric with three steps, whose anchors are the fine scale's first, middle and last. People's labels are
collapsed the same way: 1 and 2 become 1, 3 becomes 2, 4 and 5 become 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.judge_trust.labelled_subjects import People, people, settled
from overtone.judge_trust.labels import Labels
from overtone.judge_trust.people_agreement import DRAWS, Compared, compared, placed
from overtone.judges.judgement import Judgement
from overtone.judges.rubric import Dimension, Rubric

Array = npt.NDArray[np.float64]
COARSE = {1: 1, 2: 1, 3: 2, 4: 3, 5: 3}


class Answered(Struct, frozen=True):
    """One question in one dimension: two ways of judging on the same units, and the difference (first − second)."""

    question: str
    dimension: str
    first: str
    second: str
    units: int
    compared: Compared
    sentence: str


def coarse(rubric: Rubric) -> Rubric:
    """The rubric on three steps: its five-point scales alone. UsageError where it has none."""
    made = []
    for d in rubric.dimensions:
        if d.scale == (1, 5):
            anchors = {str(new): d.anchors[old] for new, old in ((1, "1"), (2, "3"), (3, "5")) if old in d.anchors}
            made.append(msgspec.structs.replace(d, scale=(1, 3), anchors=anchors))
    if not made:
        raise UsageError(f"rubric {rubric.name} has no scale from 1 to 5 to make coarser")
    return msgspec.structs.replace(rubric, name=f"{rubric.name}-coarse", dimensions=tuple(made))


def collapsed(values: Array) -> Array:
    """Five steps as three; NaN stays. A value between two steps goes to the nearer one first, halves up."""
    out = np.full(values.shape, np.nan)
    there = ~np.isnan(values)
    out[there] = np.vectorize(COARSE.get, otypes=[np.float64])(placed(values[there], True).astype(np.intp))
    return out


def coarse_against_fine(
    fine: Sequence[Judgement],
    rough: Sequence[Judgement],
    rubric: Rubric,
    labels: Labels,
    dimensions: Mapping[str, str],
    *,
    seed: int,
    draws: int = DRAWS,
) -> list[Answered]:
    """For every five-point dimension: three steps asked against five steps asked, each with people's labels on its own
    scale; and against five steps collapsed to three, on the same labels."""
    found = []
    three = {d.key: d for d in coarse(rubric).dimensions}
    for d in rubric.dimensions:
        if d.key not in three or d.key not in dimensions:
            continue
        given = people(labels, dimensions[d.key], d, [j.subject.id for j in fine])
        rows = _rows(given, d, fine, three[d.key], rough)
        human5 = np.array([settled(_rated(given.ratings[:, place]), d) for place in rows.places])
        human3 = np.array([settled(_rated(collapsed(given.ratings[:, place])), d) for place in rows.places])
        own = compared((rows.second, human3), (rows.first, human5), rows.groups, ordered=True, seed=seed, draws=draws)
        same = compared(
            (rows.second, human3), (collapsed(rows.first), human3), rows.groups, ordered=True, seed=seed, draws=draws
        )
        for title, result in (("five steps, each on its own scale", own), ("five steps collapsed to three", same)):
            found.append(
                Answered(
                    "coarse against fine",
                    d.key,
                    "three steps",
                    title,
                    len(rows.places),
                    result,
                    _sentence("three steps", title, result),
                )
            )
    return found


def audio_against_description(
    audio: Sequence[Judgement],
    description: Sequence[Judgement],
    rubric: Rubric,
    labels: Labels,
    dimensions: Mapping[str, str],
    *,
    seed: int,
    draws: int = DRAWS,
) -> list[Answered]:
    """For every labelled dimension: the judge that hears against the judge that reads what was measured."""
    found = []
    for d in rubric.dimensions:
        if d.key not in dimensions:
            continue
        given = people(labels, dimensions[d.key], d, [j.subject.id for j in audio])
        rows = _rows(given, d, audio, d, description)
        human = np.array([settled(_rated(given.ratings[:, place]), d) for place in rows.places])
        known = ~np.isnan(human)
        groups = [group for group, keep in zip(rows.groups, known, strict=True) if keep]
        pair = (rows.first[known], human[known]), (rows.second[known], human[known])
        result = compared(*pair, groups, ordered=d.ordered, seed=seed, draws=draws)
        names = "verdicts from audio", "verdicts from a description"
        said = _sentence(*names, result)
        found.append(Answered("audio against description", d.key, *names, int(known.sum()), result, said))
    return found


class _Rows(Struct, frozen=True):
    places: list[int]  # columns of the people's table
    groups: list[str]
    first: Array
    second: Array


def _rows(
    given: People, one: Dimension, first: Sequence[Judgement], other: Dimension, second: Sequence[Judgement]
) -> _Rows:
    """The labelled units that both ways of judging gave a verdict on."""
    sides = [{j.subject.id: j for j in judgements} for judgements in (first, second)]
    places, groups, a, b = [], [], [], []
    for place, name in enumerate(given.units):
        if name not in sides[0] or name not in sides[1]:
            continue
        values = [settled(np.array(side[name].numbers(d)), d) for side, d in zip(sides, (one, other), strict=True)]
        if not np.isnan(values).any():
            places.append(place)
            groups.append(sides[0][name].subject.group)
            a.append(values[0])
            b.append(values[1])
    if not places:
        raise DataError(f"no labelled unit was judged both ways in {one.key!r}")
    return _Rows(places, groups, np.array(a), np.array(b))


def _rated(column: Array) -> Array:
    return column[~np.isnan(column)]


def _sentence(first: str, second: str, result: Compared) -> str:
    gap = result.difference["alpha"]
    a, b = result.first["alpha"].value, result.second["alpha"].value
    if gap.value is None or a is None or b is None:
        return "α cannot be told: one of the two does not vary."
    said = f"α is {a:.2f} with {first} and {b:.2f} with {second}"
    if gap.low is None or gap.high is None:
        return f"{said}; one group only, so nothing is known of the spread."
    between = f"difference {gap.value:+.2f}, {gap.low:+.2f} to {gap.high:+.2f}"
    verdict = (
        f"{first} agree better"
        if gap.low > 0
        else f"{second} agree better"
        if gap.high < 0
        else "no difference is shown"
    )
    return f"{said} ({between}): {verdict}.".replace("-", "−")
