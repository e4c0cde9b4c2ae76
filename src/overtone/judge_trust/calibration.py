"""Correct the mean of a judge's scores by people's labels of some of the replies (prediction-powered inference)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from overtone.errors import DataError
from overtone.judge_trust import labels as people
from overtone.paths import shown
from overtone.results.headline_condition import by_condition
from overtone.results.load import Answer, Reading
from overtone.stats import ppi

FEW = 200  # labelled clusters below which the interval may be too narrow


class Calibrated(Struct, frozen=True):
    """One judge's corrected mean in one dimension under one condition. `note` is a warning or ""."""

    metric: str  # cspeechrel@gpt-4o
    dimension: str
    judge: str
    condition: str
    corrected: ppi.Corrected
    note: str
    cases: tuple[str, ...] = ()  # cases of the labelled replies


def calibrated_means(reading: Reading, given: people.Labels | Path) -> list[Calibrated]:
    """Return the corrected mean of every judge and dimension that has labels.

    `given` are labels, or a file of them. A label's `id` is an item's id or a case. `condition` and `repeat` identify
    the reply, and may be missing if the item has only one. Raises DataError if the labels and the run share no
    dimension or no reply.
    """
    label_file = people.read(given) if isinstance(given, Path) else given
    labels = label_file.path
    metrics = sorted({name for answer in reading.answers for name in answer.scores if "@" in name})
    if not metrics:
        raise DataError(f"{reading.name} has no judge's scores; score it with --judge first")
    dimension_of = {metric: metric.partition("@")[0] for metric in metrics}
    shared = [metric for metric in metrics if dimension_of[metric] in label_file.dimensions]
    if not shared:
        raise DataError(
            f"{shown(str(labels))} labels {', '.join(map(shown, label_file.dimensions))}; the judges of {reading.name} "
            f"scored {', '.join(sorted(set(dimension_of.values())))}: no dimension is in both"
        )
    joined = _joined(reading, label_file)
    core = {  # parts outside the benchmark's core are not averaged with it
        name: [answer for answer in answers if not answer.item.part] for name, answers in by_condition(reading).items()
    }
    out = []
    for metric in shared:
        by_unit = {unit: _mean(label_file, given) for unit, given in label_file.of(dimension_of[metric]).items()}
        for condition in sorted(core):
            rows = [a for a in core[condition] if a.value(metric) is not None]
            asks = {a.ask for a in rows}
            labelled = [(a, by_unit[unit]) for a, unit in joined if a.ask in asks and unit in by_unit]
            if labelled:
                out.append(_calibrated(metric, dimension_of[metric], condition, rows, labelled))
    if not out:
        raise DataError(f"no reply of {reading.name} that a judge scored has a label in {shown(str(labels))}")
    return out


def _calibrated(
    metric: str, dimension: str, condition: str, rows: list[Answer], labelled: list[tuple[Answer, float]]
) -> Calibrated:
    try:
        corrected = ppi.mean(
            [a.value(metric) or 0.0 for a in rows],
            [a.item.group for a in rows],
            [a.value(metric) or 0.0 for a, _ in labelled],
            [value for _, value in labelled],
            [a.item.group for a, _ in labelled],
        )
    except ValueError as error:
        raise DataError(f"{metric}, {condition}: {error}") from None
    cases = tuple(dict.fromkeys(a.item.case for a, _ in labelled))
    note = ""
    if corrected.labelled_clusters < FEW:
        note = f"only {corrected.labelled_clusters} scripts are labelled; below {FEW}, the interval may be too narrow"
    return Calibrated(metric, dimension, metric.partition("@")[2], condition, corrected, note, cases)


def _joined(reading: Reading, labels: people.Labels) -> list[tuple[Answer, str]]:
    """Return (answer, unit) for each labelled answer. Raises DataError if a unit matches several replies."""
    index: dict[str, list[Answer]] = {}
    for answer in reading.answers:
        if answer.item.task == "converse" and answer.answered:
            for name in dict.fromkeys((answer.item_id, answer.item.case)):
                index.setdefault(name, []).append(answer)
    several = {a.repeat for a in reading.answers} != {0}
    out: list[tuple[Answer, str]] = []
    labelled_by: dict[int, people.Unit] = {}
    for unit in labels.units.values():
        possible = [
            answer
            for answer in index.get(unit.id.removesuffix(unit.suffix), [])
            if unit.condition in ("", answer.condition) and (not several or unit.repeat == answer.repeat)
        ]
        if len(possible) > 1:
            raise DataError(
                f"{shown(str(labels.path))}, {unit.where}: {shown(unit.id)} was answered {len(possible)} times "
                f"({', '.join(sorted({a.condition for a in possible}))}); add columns condition and repeat"
            )
        for answer in possible:
            if answer.ask in labelled_by:
                raise DataError(
                    f"{shown(str(labels.path))}, {unit.where}: labels the same reply as {labelled_by[answer.ask].where}"
                )
            labelled_by[answer.ask] = unit
            out.append((answer, unit.id))
    if not out:
        some = next(iter(labels.units.values()))
        raise DataError(
            f"no id of {shown(str(labels.path))} is an item or a case of {reading.name} "
            f"(the first is {shown(some.id)!r}); use the ids of 'overtone export'"
        )
    return out


def _mean(labels: people.Labels, ratings: dict[str, people.Rating]) -> float:
    numbers = []
    for rating in ratings.values():
        if isinstance(rating.value, str):
            number = {"yes": 1.0, "no": 0.0}.get(rating.value.lower())
            if number is None:
                raise DataError(
                    f"{shown(str(labels.path))}, {rating.where}: {rating.dimension} is {shown(rating.value)!r}; "
                    "a mean needs numbers"
                )
            numbers.append(number)
        else:
            numbers.append(rating.value)
    return sum(numbers) / len(numbers)
