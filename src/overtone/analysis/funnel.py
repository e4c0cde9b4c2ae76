"""The funnel: of each case, were the words heard, the cue heard, reasoned from, used in the reply, and did it sound so?

The levels share their scripts, so the stages are joined case by case. A stage matters for the next only where the next
is reached more often by the cases that passed it than by those that did not; both are reported, and their difference.
These are associations within a run: what perfect hearing gives is measured instead, by telling the model the cue.
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
from overtone.analysis import said, significance
from overtone.analysis.cases_under import Names, Under
from overtone.analysis.funnel_stages import DEFAULT, ORDER, Stages, Table, read_tables, signature
from overtone.analysis.measures import Estimate, correct, estimate, from_interval
from overtone.analysis.reading import Reading
from overtone.analysis.said import Sentence
from overtone.schema import STYLES
from overtone.stats import cluster
from overtone.stats.many import Parts
from overtone.stats.minimums import DIFFERENCE, LARGEST_LOSS, RATE

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
TOLD = ("used", "sounded")  # stages that telling the model the cue can move
OUTCOMES = ("passed", "failed", "missing")  # ends of a row's key: its cases by what became of the stage
STEP = ("given", "otherwise", "step")  # and those of its step: after a stage passed, after one failed, both


class Step(Struct, frozen=True):
    """How often a stage is reached by the cases that passed an earlier one, and by those that did not."""

    after: str  # the earlier stage: the one before, or the nearest before that which the run has
    given: Estimate
    otherwise: Estimate
    difference: Estimate


class StageRow(Struct, frozen=True):
    """One stage over one selection of cases. `reached` counts each time a case was asked; `cases` have the stage."""

    key: str
    condition: str
    basis: str  # validated, unvalidated, or "" where the benchmark does not say
    by: str  # overall, dimension, style, cue
    name: str
    stage: str
    reached: Estimate
    corrected: Estimate | None  # for guessing; None where a stage cannot be guessed
    chance: float | None
    through: Estimate  # reached, and every stage before that the run has; of cases with all of them
    step: Step | None
    cases: int = 0
    onward: Estimate | None = None  # reached, of cases that came through all stages before; None where it is not known


class Gain(Struct, frozen=True):
    """What the reply gains when the true cue is told: oracle less PEnhance on the same cases."""

    key: str
    condition: str  # the oracle's
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
    """The funnel of one run, under each condition its conversations were held in."""

    run: str
    signature: str
    rows: list[StageRow]
    gains: list[Gain]
    notes: list[str]


def funnel(reading: Reading, stages: Stages = DEFAULT) -> Funnel:
    """Every stage and step overall and by dimension, cue and style. Neutral clips carry no cue: they stand by style."""
    tables, judged = read_tables(reading, stages)
    return Funnel(
        run=reading.name,
        signature=signature(stages, judged),
        rows=[row for table in tables.values() for row in _rows(table)],
        gains=[_gain(pair, stage) for pair in _pairs(tables) for stage in TOLD if _has(pair, stage)],
        notes=_notes(tables, judged),
    )


def under(reading: Reading, stages: Stages = DEFAULT) -> Iterator[Under]:
    """Every number with the cases under it. A row's key stands for the cases that have its stage, and with an end of
    OUTCOMES for those with that outcome, of STEP for the two sides of its step and both, of `through` for those that
    have every stage up to it. A gain's key stands for the cases on both sides, with `gained` and `lost` for what moved.
    """
    tables, _ = read_tables(reading, stages)
    for table in tables.values():
        named = Names([case for case, _ in table.keys])
        for chosen in _selections(table):
            for stage in ORDER:
                for end, rows in _parted(chosen, stage):
                    yield f"{chosen.key}/{stage}{end}", named.of(rows)
    for pair in _pairs(tables):
        named = Names([case for case, _ in pair.told.table.keys])
        for stage in (stage for stage in TOLD if _has(pair, stage)):
            first, second = _both(pair, stage)
            for end, kept in (("", ~np.isnan(first - second)), ("/gained", first > second), ("/lost", first < second)):
                yield f"{pair.key}/{stage}{end}", named.of(pair.told.rows[kept])


def _parted(chosen: _Chosen, stage: str) -> Iterator[tuple[str, _Rows]]:
    """The rows of a table under each number of one row of the funnel, by the end of its key."""
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


def sentences(found: Funnel) -> list[Sentence]:
    """What the funnel says overall, condition by condition."""
    losses = list(_losses(said.headline(found.rows)))
    lines = [sentence for sentence in losses if sentence.key]
    few: list[tuple[str, int]] = []  # what has too few scripts for a sentence
    told: set[tuple[str, str]] = set()  # what comes before the reply is the same whatever the prompt
    for row in said.headline(found.rows):
        given = row.condition if row.stage in TOLD else row.condition.partition("/")[2]
        if row.reached.value is None or (given, row.stage) in told:
            continue
        told.add((given, row.stage))
        if row.reached.scripts < RATE.least:
            few.append((f"{given}, {LABELS[row.stage]}", row.reached.scripts))
            continue
        guessed = ""
        if row.corrected is not None:
            guessed = f", {said.percent(row.corrected)} corrected for guessing"
            if row.stage == "used":
                guessed += f" (a model that ignores the delivery scores {100 * (row.chance or 0.0):.0f} %)"
        often = "" if row.cases == row.reached.scored else f", asked {row.reached.scored} times,"
        reached = f"{said.percent(row.reached)} of {row.cases} cases{often} {LABELS[row.stage]}"
        lines.append(Sentence(f"{given}: {reached}{guessed}{_lacking(row)}.", row.key))
        if row.step is not None and row.step.difference.value is not None:
            scripts = min(row.step.given.scripts, row.step.otherwise.scripts)
            if scripts < RATE.least:
                few.append((f"{given}, {LABELS[row.stage]} with and without “{LABELS[row.step.after]}”", scripts))
            else:
                lines.append(Sentence(f"{given}: {_say_step(row.stage, row.step)}", row.key))
    lines += [sentence for sentence in losses if not sentence.key]
    lines += said.shortfall(RATE, few)
    gains = [gain for gain in said.headline(found.gains) if gain.difference.value is not None]
    for gain in gains:
        if gain.difference.scripts >= DIFFERENCE.least:
            text = (
                f"{gain.condition} against {gain.base}: with the cue told, {said.percent(gain.told)} of replies "
                f"{LABELS[gain.stage]}, without {said.percent(gain.untold)}, on the same {gain.difference.scored} "
                f"cases: a difference of {said.points(gain.difference)}{significance.by_interval(gain.difference)}."
            )
            lines.append(Sentence(text, gain.key))
    too_few = [gain for gain in gains if gain.difference.scripts < DIFFERENCE.least]
    named = [(f"{g.condition} against {g.base}, {LABELS[g.stage]}", g.difference.scripts) for g in too_few]
    return [*lines, *said.shortfall(DIFFERENCE, named)]


def _losses(rows: Sequence[StageRow]) -> Iterator[Sentence]:
    """The stage that fewest of those who came so far pass, under the prompt that stands for a run."""
    there = dict.fromkeys(row.condition for row in rows)
    prompts = [c for p in ("enhance", "basic", "zero") for c in (f"{p}/audio", f"{p}/transcript") if c in there]
    for condition in (prompts or [c for c in there if not c.startswith("oracle")])[:1]:
        stages = [(row, row.onward) for row in rows if row.condition == condition and row.onward is not None]
        steps = [(row, onward) for row, onward in stages if onward.value is not None]
        if len(steps) < 2:
            continue
        few = [(f"{condition}, {LABELS[row.stage]}", onward.scripts) for row, onward in steps]
        if lacking := [(name, scripts) for name, scripts in few if scripts < LARGEST_LOSS.least]:
            yield from said.shortfall(LARGEST_LOSS, [(f"where most is lost: {name}", n) for name, n in lacking])
            continue
        (lost, share), (second, other) = sorted(steps, key=lambda step: step[1].value or 0.0)[:2]
        text = (
            f"of the cases that came through all stages before, {said.percent(share)} of {share.scored} "
            f"{LABELS[lost.stage]}; the next lowest share is {said.percent(other)} of {other.scored}, at "
            f"“{LABELS[second.stage]}”"
        )
        if (share.high or 0.0) < (other.low or 0.0):
            yield Sentence(f"{condition}: most is lost at “{LABELS[lost.stage]}”: {text}.", lost.key)
        else:
            yield Sentence(f"{condition}: no stage clearly loses most: {text}, and their intervals overlap.", lost.key)


def _lacking(row: StageRow) -> str:
    return f"; {row.reached.missing} more lack this stage" if row.reached.missing else ""


def _say_step(stage: str, step: Step) -> str:
    return (
        f"of cases that {LABELS[step.after]}, {said.percent(step.given)} also {LABELS[stage]}; of those that did not, "
        f"{said.percent(step.otherwise)}: a difference of {said.points(step.difference)}"
        f"{significance.by_interval(step.difference)}."
    )


# ── which cases ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Chosen(NamedTuple):
    """Some cases of a table: which, and the key that names them."""

    key: str
    table: Table
    basis: str
    by: str
    name: str
    rows: _Rows


class _Pair(NamedTuple):
    """The same cases with the cue told and without, row by row."""

    key: str
    told: _Chosen
    untold: _Chosen


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
    for condition, told in tables.items():
        prompt, _, given = condition.partition("/")
        untold = tables.get(f"enhance/{given}")
        if prompt != "oracle" or untold is None:
            continue
        place = {key: row for row, key in enumerate(untold.keys)}
        for chosen in _selections(told):
            both = [(row, place[told.keys[row]]) for row in chosen.rows if told.keys[row] in place]
            if both:
                here, there = (np.array(side, dtype=np.intp) for side in zip(*both, strict=True))
                key = f"{told.name}/gain{chosen.key.removeprefix(told.name)}"
                yield _Pair(key, chosen._replace(rows=here), chosen._replace(table=untold, rows=there))


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Rates:
    """Rates over many selections of one table at once."""

    def __init__(self, table: Table, selections: Sequence[_Rows]) -> None:
        self.sizes = [rows.size for rows in selections]
        self._parts = Parts(selections, cluster.codes([item.group for item in table.items])[0])

    def of(self, values: _Values, asked: Sequence[int] | None = None) -> list[Estimate]:
        """The share of ones in each selection. `asked` is how many it is of, where that is not the whole selection."""
        found = []
        for rate, size in zip(self._parts.proportions(values), asked or self.sizes, strict=True):
            right = rate.value * rate.rows if rate.rows else 0.0
            best, worst = ((right + size - rate.rows) / size, right / size) if size else (None, None)
            found.append(from_interval(rate, rate.low, rate.high, size, best, worst))
        return found

    def differences(self, values: _Values, first: npt.NDArray[np.bool_]) -> list[Estimate]:
        found = zip(self._parts.differences(values, first), self.sizes, strict=True)
        return [from_interval(gap, gap.low, gap.high, size) for gap, size in found]

    def count(self, kept: npt.NDArray[np.bool_]) -> list[int]:
        """How many rows of each selection are among those kept."""
        ends = np.cumsum([0, *self.sizes])
        held = np.concatenate([[0], np.cumsum(kept[self._parts.rows])])
        return [int(n) for n in held[ends[1:]] - held[ends[:-1]]]


def _rows(table: Table) -> list[StageRow]:
    """Every stage of every selection."""
    chosen = list(_selections(table))
    rates = _Rates(table, [one.rows for one in chosen])
    columns = [_column(table, at, rates) for at in range(len(ORDER))]
    onward = [_onward(table, at, rates) for at in range(len(ORDER))]
    rows = []
    for number, one in enumerate(chosen):
        for at, stage in enumerate(ORDER):
            reached, through, steps = columns[at]
            chances = table.chance[one.rows, at]
            guessed = chances[~np.isnan(table.known[one.rows, at]) & ~np.isnan(chances)]
            chance = float(guessed.mean()) if guessed.size else None
            rows.append(
                StageRow(
                    key=f"{one.key}/{stage}",
                    condition=table.condition,
                    basis=one.basis,
                    by=one.by,
                    name=one.name,
                    stage=stage,
                    reached=reached[number],
                    corrected=None if chance is None else correct(reached[number], chance),
                    chance=chance,
                    through=through[number],
                    step=steps[number] if steps else None,
                    cases=_distinct(table, one.rows, at),
                    onward=onward[at][number] if onward[at] else None,
                )
            )
    return rows


def _distinct(table: Table, rows: _Rows, at: int) -> int:
    known = rows[~np.isnan(table.known[rows, at])]
    return int(known.size) if not table.again else len({table.keys[row][0] for row in known})


def _column(table: Table, at: int, rates: _Rates) -> tuple[list[Estimate], list[Estimate], list[Step]]:
    """One stage of every selection: how often it is reached, reached through all before, and its steps."""
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
    """How many of the cases that came through all stages before pass this one, in every selection; none where the run
    does not have the stage."""
    if not table.has[at]:
        return []
    came = (table.known[:, _before(table, at)] == 1).all(axis=1)
    return rates.of(np.where(came, table.known[:, at], np.nan), rates.count(came))


def _before(table: Table, at: int) -> list[int]:
    """The stages before that the run has."""
    return [i for i in range(at) if table.has[i]]


def _gain(pair: _Pair, stage: str) -> Gain:
    first, second = _both(pair, stage)
    groups = [pair.told.table.items[row].group for row in pair.told.rows]
    both = ~np.isnan(first - second)
    kept = [group for group, known in zip(groups, both, strict=True) if known]
    side = np.repeat([True, False], len(kept))
    values = np.concatenate([first[both], second[both]])
    difference = _difference(values, side, kept * 2, len(groups))
    difference = msgspec.structs.replace(difference, scored=len(kept))  # cases, not sides of them
    return Gain(
        key=f"{pair.key}/{stage}",
        condition=pair.told.table.condition,
        base=pair.untold.table.condition,
        basis=pair.told.basis,
        by=pair.told.by,
        name=pair.told.name,
        stage=stage,
        told=_rate(np.where(both, first, np.nan), groups),
        untold=_rate(np.where(both, second, np.nan), groups),
        difference=difference,
    )


def _both(pair: _Pair, stage: str) -> tuple[_Values, _Values]:
    at = ORDER.index(stage)
    return pair.told.table.known[pair.told.rows, at], pair.untold.table.known[pair.untold.rows, at]


def _has(pair: _Pair, stage: str) -> bool:
    at = ORDER.index(stage)
    return bool(pair.told.table.has[at] and pair.untold.table.has[at])


def _rate(values: _Values, groups: Sequence[str]) -> Estimate:
    rows = [(None if math.isnan(v) else v, g) for v, g in zip(values.tolist(), groups, strict=True)]
    return estimate(rows, kind="proportion", good=1.0, bad=0.0)


def _difference(values: _Values, first: npt.NDArray[np.bool_], groups: list[str], asked: int) -> Estimate:
    found = cluster.difference(values, first.tolist(), groups)
    return from_interval(found, found.low, found.high, asked)


def _notes(tables: dict[str, Table], judged: bool) -> list[str]:
    lines = []
    if not judged and any(table.has[ORDER.index("used")] for table in tables.values()):
        lines.append(
            "No judge rated these replies: “used” is told by the style margin, a likeness of texts, "
            "which does not compare with a judge's rating."
        )
    for table in tables.values():
        lacking = [stage for stage, there in zip(ORDER, table.has, strict=True) if not there]
        if lacking:
            lines.append(f"{table.condition}: no case has the stage {', '.join(lacking)}.")
    return lines
