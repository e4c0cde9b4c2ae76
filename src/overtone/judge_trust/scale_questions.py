"""Two questions about judging, after AEQ-Bench: does a judge agree better with people on a coarse scale, and does a
judge that hears agree better than one that reads a description of the sound?

The coarse rubric has three steps, which have the anchors of steps 1, 3 and 5 of the fine rubric. People's labels are
reduced to three steps: 1 and 2 become 1, 3 becomes 2, 4 and 5 become 3.
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
from overtone.judge_trust.people_agreement import DRAWS, Compared, compared, nearest_step
from overtone.judges.judgement import Judgement
from overtone.judges.rubric import Dimension, Rubric

Array = npt.NDArray[np.float64]
COARSE = {1: 1, 2: 1, 3: 2, 4: 3, 5: 3}


class Contrast(Struct, frozen=True):
    """A comparison in one dimension: two ways of judging the same units, and the difference (first − second)."""

    question: str
    dimension: str
    first: str
    second: str
    units: int
    compared: Compared
    sentence: str


def coarse(rubric: Rubric) -> Rubric:
    """Return the rubric with only its five-point scales, reduced to three steps. Raises UsageError if it has none."""
    dimensions = []
    for d in rubric.dimensions:
        if d.scale == (1, 5):
            anchors = {str(new): d.anchors[old] for new, old in ((1, "1"), (2, "3"), (3, "5")) if old in d.anchors}
            dimensions.append(msgspec.structs.replace(d, scale=(1, 3), anchors=anchors))
    if not dimensions:
        raise UsageError(f"rubric {rubric.name} has no scale from 1 to 5 to make coarser")
    return msgspec.structs.replace(rubric, name=f"{rubric.name}-coarse", dimensions=tuple(dimensions))


def collapsed(values: Array) -> Array:
    """Reduce five steps to three; NaN stays. A value between two steps is rounded first, halves up."""
    out = np.full(values.shape, np.nan)
    rated = ~np.isnan(values)
    out[rated] = np.vectorize(COARSE.get, otypes=[np.float64])(nearest_step(values[rated], True).astype(np.intp))
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
) -> list[Contrast]:
    """Compare verdicts on three steps with verdicts on five, for every five-point dimension.

    Their agreement with people's labels is compared twice: with each kind of verdict on its own scale, and with both
    reduced to three steps.
    """
    answers = []
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
            names = "three steps", title
            sentence = _sentence(*names, result)
            answers.append(Contrast("coarse against fine", d.key, *names, len(rows.places), result, sentence))
    return answers


def audio_against_description(
    audio: Sequence[Judgement],
    description: Sequence[Judgement],
    rubric: Rubric,
    labels: Labels,
    dimensions: Mapping[str, str],
    *,
    seed: int,
    draws: int = DRAWS,
) -> list[Contrast]:
    """Compare, for every labelled dimension, the judge that hears with the judge that reads a description."""
    answers = []
    for d in rubric.dimensions:
        if d.key not in dimensions:
            continue
        given = people(labels, dimensions[d.key], d, [j.subject.id for j in audio])
        rows = _rows(given, d, audio, d, description)
        human = np.array([settled(_rated(given.ratings[:, place]), d) for place in rows.places])
        decided = ~np.isnan(human)
        groups = [group for group, keep in zip(rows.groups, decided, strict=True) if keep]
        pair = (rows.first[decided], human[decided]), (rows.second[decided], human[decided])
        result = compared(*pair, groups, ordered=d.ordered, seed=seed, draws=draws)
        names = "verdicts from audio", "verdicts from a description"
        sentence = _sentence(*names, result)
        answers.append(Contrast("audio against description", d.key, *names, int(decided.sum()), result, sentence))
    return answers


class _Rows(Struct, frozen=True):
    places: list[int]  # columns of the people's table
    groups: list[str]
    first: Array
    second: Array


def _rows(
    given: People, one: Dimension, first: Sequence[Judgement], other: Dimension, second: Sequence[Judgement]
) -> _Rows:
    """Return the values of the labelled units that have a verdict from both ways of judging."""
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
        return "α cannot be computed: one of the two does not vary."
    values = f"α is {a:.2f} with {first} and {b:.2f} with {second}"
    if gap.low is None or gap.high is None:
        return f"{values}; there is no interval, because all units are in one group."
    difference = f"difference {gap.value:+.2f}, {gap.low:+.2f} to {gap.high:+.2f}"
    better = first if gap.low > 0 else second if gap.high < 0 else ""
    verdict = f"{better} agree better with people" if better else "the difference is not statistically significant"
    return f"{values} ({difference}): {verdict}.".replace("-", "−")
