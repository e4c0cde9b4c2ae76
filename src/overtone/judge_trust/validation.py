"""Measure a judge against people's labels: its agreement with people, the ceiling for it, and all audits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.errors import DataError
from overtone.judge_trust import audits
from overtone.judge_trust.audits import Finding
from overtone.judge_trust.labelled_subjects import People, people, settled
from overtone.judge_trust.labels import Labels
from overtone.judge_trust.people_agreement import DRAWS, Ceiling, Measure, agreement, ceiling, nearest_step
from overtone.judge_trust.unit_facts import family, lengths, pair_lengths, same_words
from overtone.judges.judgement import Judgement, NoVerdicts
from overtone.judges.rubric import Dimension, Rubric
from overtone.paths import shown
from overtone.stats import kappa

Array = npt.NDArray[np.float64]
BAR = 0.4  # minimum of the lower limit of α's interval for a validated judge
BELOW_CHANCE = -0.2  # maximum of α for a warning, if its whole interval is below 0
JUDGED = 0.9  # minimum share of labelled units with a verdict; agreement on a few proves nothing


class Confusion(Struct, frozen=True):
    """Counts of people's values (rows) and the judge's (columns)."""

    values: tuple[str, ...]
    counts: list[list[int]]


class Agreed(Struct, frozen=True):
    """Agreement of the judge with people in one dimension. `ceiling` is the agreement between people."""

    key: str
    label: str
    labelled_as: str
    ordered: bool
    units: int  # with labels and a verdict
    unjudged: int  # with labels but no verdict
    undecided: int  # without a majority among people's choices or the judge's
    judge_mean: float
    people_mean: float
    agreement: dict[str, Measure]
    ceiling: Ceiling | None
    confusion: Confusion

    @property
    def passed(self) -> bool:
        low = self.agreement["alpha"].low
        answered = self.units + self.undecided
        return low is not None and low >= BAR and answered >= JUDGED * (answered + self.unjudged)


class Validation(Struct):
    """The result of `overtone judge validate`."""

    judge: str
    identity: str
    rubric: str
    labels: str
    layout: str
    units: int
    groups: int
    bar: float
    seed: int
    dimensions: list[Agreed]
    findings: list[Finding]
    notes: list[str]
    asked: dict[str, float | str] = {}
    passed: dict[str, bool] = {}


class Board(Struct, frozen=True):
    """People's and the judge's numbers in one dimension, on the same units in the same order."""

    dimension: Dimension
    people: People
    judgements: list[Judgement]
    groups: list[str]
    human: Array  # one value per unit from all raters
    judge: Array  # one value per unit from all draws


def validate(
    judgements: Sequence[Judgement],
    rubric: Rubric,
    labels: Labels,
    dimensions: Mapping[str, str],
    *,
    judge: str,
    identity: str,
    seed: int,
    draws: int = DRAWS,
) -> Validation:
    """Measure verdicts against labels. `dimensions` maps the rubric's dimensions to the labels'."""
    by_unit = {j.subject.id: j for j in judgements}
    reports: list[Agreed] = []
    findings: list[Finding] = []
    boards: list[Board] = []
    for dimension in rubric.dimensions:
        if dimension.key not in dimensions:
            continue
        ratings = people(labels, dimensions[dimension.key], dimension, list(by_unit))
        board, unjudged, undecided = _board(dimension, ratings, by_unit)
        if not len(board.human):
            raise (NoVerdicts if ratings.units else DataError)(_nothing(judge, dimension, ratings, by_unit))
        boards.append(board)
        reports.append(_agreed(board, dimensions[dimension.key], unjudged, undecided, seed, draws))
        findings += _audits(board, labels, identity, seed)
    findings.insert(0, _halo(boards, seed))
    groups = {group for board in boards for group in board.groups}
    notes = [*filter(None, map(_exchanged, reports)), *labels.notes]
    if len(groups) < 2:
        notes.append("all units are in one group, so there are no intervals")
    return Validation(
        judge,
        identity,
        rubric.identity,
        labels.path.name,
        labels.layout,
        len({name for board in boards for name in board.people.units}),
        len(groups),
        BAR,
        seed,
        reports,
        findings,
        notes,
        passed={report.key: report.passed for report in reports},
    )


def _exchanged(report: Agreed) -> str:
    """Return a warning if the judge agrees with people far less than by chance, for example because labels are swapped.
    Otherwise return ""."""
    alpha = report.agreement["alpha"]
    if alpha.value is None or alpha.high is None or alpha.value > BELOW_CHANCE or alpha.high >= 0:
        return ""
    words = [value for value in report.confusion.values if value != "tie"]
    if report.ordered:
        cause = "does one of the two scales run the other way?"
    elif len(words) == 2:
        cause = f"are {words[1]} and {words[0]} exchanged?"
    else:
        cause = "do the verdicts belong to these units?"
    return (
        f"warning: on {report.key} the judge agrees with people far less than by chance (α {alpha.value:.2f}, "
        f"95 % interval {alpha.low:.2f} to {alpha.high:.2f}): {cause}"
    )


def _nothing(judge: str, dimension: Dimension, ratings: People, by_unit: Mapping[str, Judgement]) -> str:
    if not ratings.units:
        return f"no judged unit has a label for {dimension.key!r}"
    problems = [draw.problem for name in ratings.units for draw in by_unit[name].draws if draw.problem]
    why = f"; the first problem: {shown(problems[0][:300])}" if problems else ""
    return f"{shown(judge)} gave no verdict on {dimension.key!r} for any of {len(ratings.units)} labelled units{why}"


def _board(dimension: Dimension, ratings: People, by_unit: Mapping[str, Judgement]) -> tuple[Board, int, int]:
    """Return the board, the number of units without a verdict, and the number of undecided units."""
    keep, human, machine = [], [], []
    unjudged = undecided = 0
    for place, name in enumerate(ratings.units):
        numbers = np.array(by_unit[name].numbers(dimension))
        given = ratings.ratings[:, place]
        pair = settled(given[~np.isnan(given)], dimension), settled(numbers, dimension)
        if not numbers.size:
            unjudged += 1
        elif math.isnan(pair[0]) or math.isnan(pair[1]):
            undecided += 1
        else:
            keep.append(place)
            human.append(pair[0])
            machine.append(pair[1])
    units = tuple(ratings.units[place] for place in keep)
    cut = People(units, ratings.raters, ratings.ratings[:, keep])
    chosen = [by_unit[name] for name in units]
    groups = [j.subject.group for j in chosen]
    return Board(dimension, cut, chosen, groups, np.array(human), np.array(machine)), unjudged, undecided


def _agreed(board: Board, named: str, unjudged: int, undecided: int, seed: int, draws: int) -> Agreed:
    dimension, ordered = board.dimension, board.dimension.ordered
    values = sorted({dimension.number(answer) for answer in dimension.menu})
    names = {dimension.number(answer): str(answer) for answer in dimension.menu}
    counts = kappa.confusion(nearest_step(board.human, ordered), nearest_step(board.judge, ordered), values)
    return Agreed(
        dimension.key,
        dimension.label,
        named,
        ordered,
        len(board.human),
        unjudged,
        undecided,
        float(board.judge.mean()),
        float(board.human.mean()),
        agreement(board.judge, board.human, board.groups, ordered=ordered, seed=seed, draws=draws),
        ceiling(
            board.people.ratings,
            board.judge,
            board.groups,
            board.people.raters,
            ordered=ordered,
            seed=seed,
            settle=lambda given: settled(given, dimension),
            draws=draws,
        ),
        Confusion(tuple(names[value] for value in values), counts.tolist()),
    )


def _audits(board: Board, labels: Labels, identity: str, seed: int) -> list[Finding]:
    key = board.dimension.key
    findings = [audits.repeatability(*_repeats(board), key, ordered=board.dimension.ordered)]
    if {"A", "B"} <= set(board.dimension.choices):
        findings += [*_position(board), _length_in_pairs(board, labels)]
        if "tie" in board.dimension.choices:
            findings.append(audits.ties(board.judge, board.human, board.groups, key))
    else:
        words = lengths(labels, board.people.units)
        if words is None:
            findings.append(audits.unmeasured("length bias", key, "the label file has no texts of the replies"))
        else:
            findings.append(audits.length_of_replies(board.judge, words, board.human, board.groups, key, seed=seed))
    if board.dimension.ordered:
        findings.append(_polarisation(board, seed))
    findings += [_self_preference(board, labels, identity, seed), _shortcut(board, labels)]
    return findings


def _repeats(board: Board) -> tuple[Array, list[str]]:
    """Return verdicts as an array (repeats, requests), and each request's group. Each order of a pair is a request."""
    rows: list[dict[int, float]] = []
    groups: list[str] = []
    for judgement in board.judgements:
        for swapped in (False, True):
            given = {
                draw.repeat: board.dimension.number(draw.values[board.dimension.key])
                for draw in judgement.draws
                if draw.swapped == swapped and board.dimension.key in draw.values
            }
            if given:
                rows.append(given)
                groups.append(judgement.subject.group)
    repeats = max(max(given) for given in rows) + 1
    table = [[given.get(repeat, math.nan) for given in rows] for repeat in range(repeats)]
    return np.array(table), groups


def _position(board: Board) -> list[Finding]:
    key = board.dimension.key
    first, groups, turned, turned_groups, reversed_ = [], [], [], [], 0
    for judgement in board.judgements:
        verdicts = {(d.repeat, d.swapped): d.values[key] for d in judgement.draws if key in d.values}
        for (repeat, swapped), value in verdicts.items():
            if swapped or (repeat, True) not in verdicts:
                continue
            other = verdicts[repeat, True]
            turned.append(float(value != other))
            reversed_ += {value, other} == {"A", "B"}
            turned_groups.append(judgement.subject.group)
            for winner, chosen in (("A", value), ("B", other)):  # B is shown first when they are swapped
                if chosen in ("A", "B"):
                    first.append(float(chosen == winner))
                    groups.append(judgement.subject.group)
    if not turned:
        return [audits.first_place(board.judge, board.human, board.groups, key)]
    return audits.position(np.array(first), groups, key, turned=np.array(turned), turned_groups=turned_groups,
                           reversed_=reversed_)  # fmt: skip


def _length_in_pairs(board: Board, labels: Labels) -> Finding:
    key = board.dimension.key
    words = pair_lengths(labels, board.people.units)
    if words is None:
        return audits.unmeasured("length bias", key, "the label file has no texts of the replies")
    differ = words[0] != words[1]
    longer_is_a = (words[0] > words[1])[differ]
    judge, human = board.judge[differ], board.human[differ]
    groups = [group for group, keep in zip(board.groups, differ, strict=True) if keep]
    return audits.length_in_pairs(
        np.where(longer_is_a, judge, 1 - judge), np.where(longer_is_a, human, 1 - human), groups, key
    )


def _polarisation(board: Board, seed: int) -> Finding:
    single, owners = [], []
    for judgement in board.judgements:
        numbers = judgement.numbers(board.dimension)
        single += numbers
        owners += [judgement.subject.group] * len(numbers)
    rated = ~np.isnan(board.people.ratings)
    humans = board.people.ratings[rated]
    human_owners = [board.groups[unit] for unit in np.nonzero(rated)[1]]
    return audits.polarisation(
        np.array(single), humans, owners, human_owners, board.dimension.ends, board.dimension.key, seed=seed
    )


def _self_preference(board: Board, labels: Labels, identity: str, seed: int) -> Finding:
    mine = family(identity.partition("|")[0].partition(":")[2])
    systems = [labels.units[name].systems for name in board.people.units]
    gap = board.judge - board.human
    if {"A", "B"} <= set(board.dimension.choices):
        sides = [(family(s.get("a", "")) == mine, family(s.get("b", "")) == mine) for s in systems]
        rows = np.array([bool(mine) and a != b for a, b in sides])
        toward = np.array([1.0 if a else -1.0 for a, _ in sides])
        groups = [group for group, keep in zip(board.groups, rows, strict=True) if keep]
        own = np.ones(int(rows.sum()), dtype=np.bool_)
        return audits.self_preference((gap * toward)[rows], own, groups, board.dimension.key, mine, seed=seed)
    own = np.array([bool(mine) and family(s.get("reply", "")) == mine for s in systems])
    return audits.self_preference(gap, own, board.groups, board.dimension.key, mine, seed=seed)


def _shortcut(board: Board, labels: Labels) -> Finding:
    pairs = same_words(labels, board.people.units)
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (0, 1))
    groups = [board.groups[place] for place, _ in pairs]
    return audits.lexical_shortcut(
        board.judge[second] - board.judge[first], board.human[second] - board.human[first], groups, board.dimension.key
    )


def _halo(boards: Sequence[Board], seed: int) -> Finding:
    scales = [board for board in boards if board.dimension.ordered]
    shared = (
        [name for name in scales[0].people.units if all(name in set(b.people.units) for b in scales)] if scales else []
    )
    rows = [{name: place for place, name in enumerate(board.people.units)} for board in scales]
    judge = np.array([[b.judge[at[name]] for name in shared] for b, at in zip(scales, rows, strict=True)])
    human = np.array([[b.human[at[name]] for name in shared] for b, at in zip(scales, rows, strict=True)])
    groups = [scales[0].groups[rows[0][name]] for name in shared]
    return audits.halo(judge, human, groups, seed=seed)
