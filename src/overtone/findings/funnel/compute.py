"""The funnel: how many cases pass each stage, from hearing the words to a reply that sounds right.

The levels share their scripts, so the stages are joined case by case. A stage matters for the next one only if cases
that pass the stage reach the next one more often than cases that fail it. The funnel reports both rates and their
difference, which are associations within a run. Conditions that state the cue simulate perfect hearing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone import cues
from overtone.findings.funnel.funnel_stages import DEFAULT, ORDER, Stages, Table, read_tables, signature
from overtone.results.case_names import KeyedCases, Names
from overtone.results.load import Reading
from overtone.results.measures import Estimate, correct, estimate, from_interval
from overtone.results.wording import headline
from overtone.schema import STYLES
from overtone.stats import cluster
from overtone.stats.grouped_means import Parts

_Values = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.intp]

SIGNATURE = signature(DEFAULT)
LABELS = {
    "words": "heard the words",
    "cue": "heard the cue",
    "reasoned": "reasoned from it",
    "used": "used it in the reply",
    "sounded": "sounded right",
}
MOVABLE = ("used", "sounded")  # stages that a stated cue can change
OUTCOMES = ("passed", "failed", "missing")  # suffixes of a row's key: its cases by the outcome of the stage
STEP = ("given", "otherwise", "step")  # suffixes of a step's key: after a passed stage, after a failed one, both


class Step(Struct, frozen=True):
    """The share of cases that pass a stage, among cases that passed an earlier stage and among those that failed it."""

    after: str  # the earlier stage: the nearest one before this that the run has data for
    given: Estimate
    otherwise: Estimate
    difference: Estimate


class StageRow(Struct, frozen=True):
    """One stage over one selection of cases. `reached` counts every repeat of a case; `cases` counts each case once."""

    key: str
    condition: str
    basis: str  # validated, unvalidated, or "" where the benchmark does not say
    by: str  # overall, dimension, style, cue
    name: str
    stage: str
    reached: Estimate
    corrected: Estimate | None  # probability that guessing passes; None for a stage that cannot be guessed
    chance: float | None
    through: Estimate  # passed this and every earlier stage, among cases with data for all these stages
    step: Step | None
    cases: int = 0
    onward: Estimate | None = None  # passed this stage, among cases that passed all earlier ones; None if unknown


class Gain(Struct, frozen=True):
    """The effect of a stated true cue on the reply: the prompt oracle minus the prompt enhance, on the same cases."""

    key: str
    condition: str  # the condition with the prompt oracle
    base: str
    basis: str
    by: str
    name: str
    stage: str
    told: Estimate
    untold: Estimate
    difference: Estimate


Row = TypeVar("Row", StageRow, Gain)


class Funnel(Struct, frozen=True):
    """The funnel of one run, under each condition of its conversations."""

    run: str
    signature: str
    rows: list[StageRow]
    gains: list[Gain]
    notes: list[str]


def funnel(reading: Reading, stages: Stages = DEFAULT) -> Funnel:
    """Compute every stage and step, overall and by dimension, cue and style.

    Neutral clips carry no cue, so only the breakdown by style includes them.
    """
    tables, judged = read_tables(reading, stages)
    return Funnel(
        run=reading.name,
        signature=signature(stages, judged),
        rows=[row for table in tables.values() for row in _rows(table)],
        gains=[_gain(pair, stage) for pair in _pairs(tables) for stage in MOVABLE if _has(pair, stage)],
        notes=_notes(tables, judged),
    )


def rows_by_stage(data: Funnel, condition: str, input: str = "audio") -> dict[str, StageRow]:
    """Return stage → headline row for one condition.

    Without a condition, the first condition with the input `input` is used. Rows without cases are left out.
    """
    condition = condition or next((r.condition for r in data.rows if r.condition.endswith(f"/{input}")), "")
    rows = headline([row for row in data.rows if row.condition == condition])
    return {row.stage: row for row in reversed(rows) if row.reached.scored}


def cases_by_key(reading: Reading, stages: Stages = DEFAULT) -> Iterator[KeyedCases]:
    """Yield the key of every number with the cases that the number counts.

    A row's key gives the cases with data for its stage. A suffix of OUTCOMES selects the cases with that outcome, a
    suffix of STEP one side of the step or both, and `through` the cases with data for this and every earlier stage. A
    gain's key gives the cases under both conditions; `gained` and `lost` select the cases that changed.
    """
    tables, _ = read_tables(reading, stages)
    for table in tables.values():
        named = Names([case for case, _ in table.keys])
        for chosen in _selections(table):
            for stage in ORDER:
                for suffix, rows in _rows_by_suffix(chosen, stage):
                    yield f"{chosen.key}/{stage}{suffix}", named.of(rows)
    for pair in _pairs(tables):
        named = Names([case for case, _ in pair.stated.table.keys])
        for stage in (stage for stage in MOVABLE if _has(pair, stage)):
            first, second = _both(pair, stage)
            changes = (("", ~np.isnan(first - second)), ("/gained", first > second), ("/lost", first < second))
            for suffix, kept in changes:
                yield f"{pair.key}/{stage}{suffix}", named.of(pair.stated.rows[kept])


def _rows_by_suffix(chosen: _Chosen, stage: str) -> Iterator[tuple[str, _Rows]]:
    """Yield (suffix of the key, table rows) for each number in one row of the funnel."""
    table, at = chosen.table, ORDER.index(stage)
    known = table.known[chosen.rows]
    now = known[:, at]
    scored = ~np.isnan(now)
    yield "", chosen.rows[scored]
    for outcome, kept in zip(OUTCOMES, (now == 1, now == 0, ~scored), strict=True):
        yield f"/{outcome}", chosen.rows[kept]
    here = _before(table, at)
    yield "/through", chosen.rows[scored & ~np.isnan(known[:, here]).any(axis=1)]
    if here and table.has[at]:
        before = known[:, here[-1]]
        sides = (scored & (before == 1), scored & (before == 0), scored & ~np.isnan(before))
        for name, kept in zip(STEP, sides, strict=True):
            yield f"/{name}", chosen.rows[kept]


# ── which cases ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Chosen(NamedTuple):
    """A selection of a table's cases, and the key of this selection."""

    key: str
    table: Table
    basis: str
    by: str
    name: str
    rows: _Rows


class _Pair(NamedTuple):
    """The same cases with and without a stated cue, row by row."""

    key: str
    stated: _Chosen
    unstated: _Chosen


def _selections(table: Table) -> Iterator[_Chosen]:
    items = table.items
    unsure = np.array([item.status == "unvalidated" for item in items], dtype=bool)
    cued = np.array([item.style != "neutral" for item in items], dtype=bool)
    sure_name = "validated" if any(item.status == "validated" for item in items) else ""
    for basis, mask in ((sure_name, ~unsure), ("unvalidated", unsure)):
        start = f"{table.name}/{table.condition}" + ("/unvalidated" if basis == "unvalidated" else "")
        rows = np.flatnonzero(mask & cued)
        if rows.size:
            yield _Chosen(f"{start}/overall", table, basis, "overall", "", rows)
        for by, names, order in (
            ("dimension", [item.dimension for item in items], cues.DIMENSIONS),
            ("cue", [item.cue for item in items], cues.slugs()),
            ("style", [item.style for item in items], STYLES),
        ):
            parts: dict[str, list[int]] = {}
            for row in np.flatnonzero(mask) if by == "style" else rows:
                parts.setdefault(names[row], []).append(int(row))
            known = list(order)
            for name in sorted(parts, key=lambda n: (known.index(n) if n in known else len(known), n)):
                if name:
                    chosen = np.array(parts[name], dtype=np.intp)
                    yield _Chosen(f"{start}/{by}/{name}", table, basis, by, name, chosen)


def _pairs(tables: dict[str, Table]) -> Iterator[_Pair]:
    for condition, stated in tables.items():
        prompt, _, given = condition.partition("/")
        unstated = tables.get(f"enhance/{given}")
        if prompt != "oracle" or unstated is None:
            continue
        place = {key: row for row, key in enumerate(unstated.keys)}
        for chosen in _selections(stated):
            both = [(row, place[stated.keys[row]]) for row in chosen.rows if stated.keys[row] in place]
            if both:
                here, there = (np.array(side, dtype=np.intp) for side in zip(*both, strict=True))
                key = f"{stated.name}/gain{chosen.key.removeprefix(stated.name)}"
                yield _Pair(key, chosen._replace(rows=here), chosen._replace(table=unstated, rows=there))


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Rates:
    """Rates over many selections of one table, computed together."""

    def __init__(self, table: Table, selections: Sequence[_Rows]) -> None:
        self.sizes = [rows.size for rows in selections]
        self._parts = Parts(selections, cluster.codes([item.group for item in table.items])[0])

    def of(self, values: _Values, asked: Sequence[int] | None = None) -> list[Estimate]:
        """Return the share of ones in each selection, with bounds for missing values.

        `asked` is the number of rows in each selection that should have a value (default: all rows).
        """
        estimates = []
        for rate, size in zip(self._parts.proportions(values), asked or self.sizes, strict=True):
            right = rate.value * rate.rows if rate.rows else 0.0
            best, worst = ((right + size - rate.rows) / size, right / size) if size else (None, None)
            estimates.append(from_interval(rate, rate.low, rate.high, size, best, worst))
        return estimates

    def differences(self, values: _Values, first: npt.NDArray[np.bool_]) -> list[Estimate]:
        gaps = zip(self._parts.differences(values, first), self.sizes, strict=True)
        return [from_interval(gap, gap.low, gap.high, size) for gap, size in gaps]

    def count(self, kept: npt.NDArray[np.bool_]) -> list[int]:
        """Return, for each selection, the number of rows for which `kept` is true."""
        ends = np.cumsum([0, *self.sizes])
        held = np.concatenate([[0], np.cumsum(kept[self._parts.rows])])
        return [int(n) for n in held[ends[1:]] - held[ends[:-1]]]


def _rows(table: Table) -> list[StageRow]:
    """Compute a row for every stage in every selection."""
    selections = list(_selections(table))
    rates = _Rates(table, [selection.rows for selection in selections])
    columns = [_column(table, at, rates) for at in range(len(ORDER))]
    onward = [_onward(table, at, rates) for at in range(len(ORDER))]
    rows = []
    for number, selection in enumerate(selections):
        for at, stage in enumerate(ORDER):
            reached, through, steps = columns[at]
            chances = table.chance[selection.rows, at]
            guessed = chances[~np.isnan(table.known[selection.rows, at]) & ~np.isnan(chances)]
            chance = float(guessed.mean()) if guessed.size else None
            rows.append(
                StageRow(
                    key=f"{selection.key}/{stage}",
                    condition=table.condition,
                    basis=selection.basis,
                    by=selection.by,
                    name=selection.name,
                    stage=stage,
                    reached=reached[number],
                    corrected=None if chance is None else correct(reached[number], chance),
                    chance=chance,
                    through=through[number],
                    step=steps[number] if steps else None,
                    cases=_distinct(table, selection.rows, at),
                    onward=onward[at][number] if onward[at] else None,
                )
            )
    return rows


def _distinct(table: Table, rows: _Rows, at: int) -> int:
    known = rows[~np.isnan(table.known[rows, at])]
    return int(known.size) if not table.again else len({table.keys[row][0] for row in known})


def _column(table: Table, at: int, rates: _Rates) -> tuple[list[Estimate], list[Estimate], list[Step]]:
    """Return three lists over the selections: the pass rate of one stage, the share that passes this and all earlier
    stages, and the steps of the stage. The list of steps is empty if there is no earlier stage."""
    here = _before(table, at)
    path = table.known[:, [*here, at]]
    through = np.where(np.isnan(path).any(axis=1), np.nan, path.min(axis=1))
    now = table.known[:, at]
    steps = []
    if here and table.has[at]:
        before = table.known[:, here[-1]]
        given, otherwise = (
            rates.of(np.where(before == side, now, np.nan), rates.count(before == side)) for side in (1, 0)
        )
        gaps = rates.differences(np.where(np.isnan(before), np.nan, now), before == 1)
        after = ORDER[here[-1]]
        steps = [Step(after, *three) for three in zip(given, otherwise, gaps, strict=True)]
    return rates.of(now), rates.of(through), steps


def _onward(table: Table, at: int, rates: _Rates) -> list[Estimate]:
    """Return, for every selection, the share that pass this stage among the cases that passed all earlier stages.

    The list is empty if the run has no data for the stage.
    """
    if not table.has[at]:
        return []
    remaining = (table.known[:, _before(table, at)] == 1).all(axis=1)
    return rates.of(np.where(remaining, table.known[:, at], np.nan), rates.count(remaining))


def _before(table: Table, at: int) -> list[int]:
    """Return the indices of the earlier stages that the run has data for."""
    return [i for i in range(at) if table.has[i]]


def _gain(pair: _Pair, stage: str) -> Gain:
    first, second = _both(pair, stage)
    groups = [pair.stated.table.items[row].group for row in pair.stated.rows]
    both = ~np.isnan(first - second)
    kept = [group for group, known in zip(groups, both, strict=True) if known]
    side = np.repeat([True, False], len(kept))
    values = np.concatenate([first[both], second[both]])
    difference = _difference(values, side, kept * 2, len(groups))
    difference = msgspec.structs.replace(difference, scored=len(kept))  # counts cases, not their sides
    return Gain(
        key=f"{pair.key}/{stage}",
        condition=pair.stated.table.condition,
        base=pair.unstated.table.condition,
        basis=pair.stated.basis,
        by=pair.stated.by,
        name=pair.stated.name,
        stage=stage,
        told=_rate(np.where(both, first, np.nan), groups),
        untold=_rate(np.where(both, second, np.nan), groups),
        difference=difference,
    )


def _both(pair: _Pair, stage: str) -> tuple[_Values, _Values]:
    at = ORDER.index(stage)
    return pair.stated.table.known[pair.stated.rows, at], pair.unstated.table.known[pair.unstated.rows, at]


def _has(pair: _Pair, stage: str) -> bool:
    at = ORDER.index(stage)
    return bool(pair.stated.table.has[at] and pair.unstated.table.has[at])


def _rate(values: _Values, groups: Sequence[str]) -> Estimate:
    rows = [(None if math.isnan(v) else v, g) for v, g in zip(values.tolist(), groups, strict=True)]
    return estimate(rows, kind="proportion", good=1.0, bad=0.0)


def _difference(values: _Values, first: npt.NDArray[np.bool_], groups: list[str], asked: int) -> Estimate:
    gap = cluster.difference(values, first.tolist(), groups)
    return from_interval(gap, gap.low, gap.high, asked)


def _notes(tables: dict[str, Table], judged: bool) -> list[str]:
    lines = []
    if not judged and any(table.has[ORDER.index("used")] for table in tables.values()):
        lines.append(
            "No judge rated these replies: “used” is decided by the style margin, a similarity of texts, which "
            "cannot be compared with a judge's rating."
        )
    for table in tables.values():
        missing = [stage for stage, has in zip(ORDER, table.has, strict=True) if not has]
        if missing:
            lines.append(f"{table.condition}: no case has the stage {', '.join(missing)}.")
    return lines
