"""A judge whose verdicts are already in a file. It is measured like any other judge, without asking a model.

The file is a label file with the judge's ratings (several rows for a unit are repeats) or a file of PandaLM's verdicts.
If no rubric is given, one is derived from the labels and the verdicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from overtone.errors import DataError, UsageError
from overtone.judge_trust import labels as labelled
from overtone.judge_trust.labels import Labels
from overtone.judges.judge_input import Subject
from overtone.judges.judgement import Draw, Judgement
from overtone.judges.rubric import Dimension, Rubric
from overtone.paths import shown

KIND = "recorded"


def path_of(judge: str) -> Path | None:
    """Return the file of `recorded:FILE`, or None for any other judge."""
    kind, colon, name = judge.partition(":")
    if kind != KIND:
        return None
    if not colon or not name:
        raise UsageError("recorded: needs a file, e.g. recorded:verdicts.csv")
    return Path(name)


def rubric_of(labels: Labels, verdicts: Labels, dimensions: Sequence[str]) -> Rubric:
    """Return a rubric with the rated dimensions and no instructions, because no model is asked."""
    made = tuple(_dimension(name, labels.ratings, verdicts.ratings) for name in dimensions)
    pair = all("A" in d.choices and "B" in d.choices for d in made)
    return Rubric(
        name="recorded",
        version=1,
        title="What the files hold",
        measures="what the recorded judge was asked",
        cannot_see="what it was told",
        source="the files",
        subject="pair" if pair else "reply",
        system="",
        dimensions=made,
    )


def _dimension(name: str, people: Sequence[labelled.Rating], judge: Sequence[labelled.Rating]) -> Dimension:
    """Return a dimension that allows all given ratings.

    It is a scale from the lowest to the highest number, or a choice among the words that people used. A tie is added to
    A and B if the judge used it.
    """
    given = [[rating.value for rating in side if rating.dimension == name] for side in (people, judge)]
    numbers = [value for side in given for value in side if isinstance(value, float)]
    if not any(isinstance(value, str) for value in given[0]):
        low, high = math.floor(min(numbers)), math.ceil(max(numbers))
        return Dimension(key=name, label=name, question=name, scale=(low, max(high, low + 1)))
    choices = sorted({str(value) for value in given[0]})
    if {"A", "B"} <= set(choices) and "tie" in given[1]:
        choices = sorted({*choices, "tie"})
    if {"A", "B"} <= set(choices):
        values = {choice: {"A": 1.0, "B": 0.0}.get(choice, 0.5) for choice in choices}
    elif set(choices) <= {"yes", "no"}:
        values = {"yes": 1.0, "no": 0.0}
    else:
        values = {choice: float(place) for place, choice in enumerate(choices)}
    return Dimension(key=name, label=name, question=name, choices=tuple(values), values=values, better="neither")


def judgements(verdicts: Labels, labels: Labels, rubric: Rubric, units: Sequence[str]) -> list[Judgement]:
    """Return the recorded verdicts on `units`. A verdict that the rubric does not allow is unread, with the reason."""
    wanted = set(units)
    given: dict[str, dict[str, list[labelled.Rating]]] = {}
    for rating in verdicts.ratings:
        if rating.unit in wanted:
            given.setdefault(rating.unit, {}).setdefault(rating.dimension, []).append(rating)
    if not given:
        raise DataError(
            f"{shown(str(verdicts.path))} has no verdict on the units of {shown(str(labels.path))}: their ids differ"
        )
    result = []
    for name in units:
        unit = labels.units[name]
        by_key = given.get(name, {})
        repeats = max((len(rows) for rows in by_key.values()), default=0)
        draws = tuple(_draw(repeat, by_key, rubric) for repeat in range(repeats))
        subject = Subject(unit.id, unit.group, unit.texts, unit.sounds, unit.style)
        result.append(Judgement(subject, rubric.name, f"{KIND}:{verdicts.path.name}", draws))
    return result


def _draw(repeat: int, by_key: dict[str, list[labelled.Rating]], rubric: Rubric) -> Draw:
    values: dict[str, int | str] = {}
    problems = []
    for dimension in rubric.dimensions:
        rows = by_key.get(dimension.key, [])
        if repeat >= len(rows):
            continue
        value = rows[repeat].value
        menu = {str(answer).lower(): answer for answer in dimension.menu}
        plain = f"{value:g}" if isinstance(value, float) else value.lower()
        if plain in menu:
            values[dimension.key] = menu[plain]
        else:
            problems.append(f"{dimension.key} is {value!r}, which is not an allowed answer")
    return Draw(repeat, False, values, {}, "" if values else "; ".join(problems) or "no verdict")
