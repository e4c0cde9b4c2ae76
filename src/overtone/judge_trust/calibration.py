"""A judge's means in a run, put right by people's labels of some of its replies (prediction-powered inference)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from overtone.errors import DataError
from overtone.judge_trust import labels as people
from overtone.paths import shown
from overtone.results.headline_condition import by_condition
from overtone.results.load import Answer, Reading
from overtone.stats import ppi

FEW = 200  # labelled clusters from which on the interval keeps its promise


class Calibrated(Struct, frozen=True):
    """One judge's mean in one dimension under one condition, corrected. `note` says what to mind, or nothing."""

    metric: str  # cspeechrel@gpt-4o
    dimension: str
    judge: str
    condition: str
    corrected: ppi.Corrected
    note: str
    cases: tuple[str, ...] = ()  # those of the replies that people labelled


def calibrated_means(reading: Reading, labels: Path) -> list[Calibrated]:
    """Every judge's mean that the label file says something about.

    A label's `id` is an item's id or a case; `condition` and `repeat` say which reply it is of, and may be left out
    where the run has one. DataError where the file and the run have nothing in common.
    """
    found = people.read(labels)
    metrics = sorted({name for answer in reading.answers for name in answer.scores if "@" in name})
    if not metrics:
        raise DataError(f"{reading.name} holds no judge's scores; score it with --judge first")
    known = {metric: metric.partition("@")[0] for metric in metrics}
    shared = [metric for metric in metrics if known[metric] in found.dimensions]
    if not shared:
        raise DataError(
            f"{shown(str(labels))} labels {', '.join(map(shown, found.dimensions))}; the judges of {reading.name} "
            f"scored {', '.join(sorted(set(known.values())))}: no dimension is in both"
        )
    joined = [(answer, unit) for answer, unit in _joined(reading, found) if not answer.item.part]
    core = {  # what is kept apart has no place in a mean
        name: [answer for answer in found if not answer.item.part] for name, found in by_condition(reading).items()
    }
    out = []
    for metric in shared:
        given = {unit: _mean(found, ratings) for unit, ratings in found.of(known[metric]).items()}
        for condition in sorted(core):
            rows = [a for a in core[condition] if a.value(metric) is not None]
            asks = {a.ask for a in core[condition]}
            labelled = [(a, given[unit]) for a, unit in joined if a.ask in asks and unit in given]
            labelled = [(a, value) for a, value in labelled if a.value(metric) is not None]
            if rows and labelled:
                out.append(_calibrated(metric, known[metric], condition, rows, labelled))
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
        note = f"only {corrected.labelled_clusters} scripts are labelled: the interval may be too narrow below {FEW}"
    return Calibrated(metric, dimension, metric.partition("@")[2], condition, corrected, note, cases)


def _joined(reading: Reading, labels: people.Labels) -> list[tuple[Answer, str]]:
    """Every answer with the unit that labels it. A unit that could mean several replies is an error."""
    index: dict[str, list[Answer]] = {}
    for answer in reading.answers:
        if answer.item.task == "converse" and answer.answered:
            for name in dict.fromkeys((answer.item_id, answer.item.case)):
                index.setdefault(name, []).append(answer)
    several = {a.repeat for a in reading.answers} != {0}
    out: list[tuple[Answer, str]] = []
    taken: dict[int, people.Unit] = {}
    for unit in labels.units.values():
        meant = list(_meant(index.get(_plain(unit), []), unit, several))
        if len(meant) > 1:
            raise DataError(
                f"{shown(str(labels.path))}, {unit.where}: {shown(unit.id)} was answered {len(meant)} times "
                f"({', '.join(sorted({a.condition for a in meant}))}); say which reply in columns condition and repeat"
            )
        for answer in meant:
            if answer.ask in taken:
                raise DataError(
                    f"{shown(str(labels.path))}, {unit.where}: labels the same reply as {taken[answer.ask].where}"
                )
            taken[answer.ask] = unit
            out.append((answer, unit.id))
    if not out:
        some = next(iter(labels.units.values()))
        raise DataError(
            f"no id of {shown(str(labels.path))} is an item or a case of {reading.name} "
            f"(the first is {shown(some.id)!r}); ids are those of 'overtone export'"
        )
    return out


def _plain(unit: people.Unit) -> str:
    """The item or case, without what tells its replies apart."""
    return unit.id.removesuffix(unit.suffix)


def _meant(answers: list[Answer], unit: people.Unit, several: bool) -> Iterator[Answer]:
    for answer in answers:
        if unit.condition not in ("", answer.condition):
            continue
        if several and unit.repeat != answer.repeat:
            continue
        yield answer


def _mean(labels: people.Labels, ratings: dict[str, people.Rating]) -> float:
    numbers = []
    for rating in ratings.values():
        if isinstance(rating.value, str):
            counted = {"yes": 1.0, "no": 0.0}.get(rating.value.lower())
            if counted is None:
                raise DataError(
                    f"{shown(str(labels.path))}, {rating.where}: {rating.dimension} is {shown(rating.value)!r}; "
                    "a mean needs numbers"
                )
            numbers.append(counted)
        else:
            numbers.append(rating.value)
    return sum(numbers) / len(numbers)
