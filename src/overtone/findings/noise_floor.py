"""How large must a difference between two runs be to exceed what chance alone gives?

The same item, asked again under the same condition, can get another answer. So a run's mean varies between repeats.
This spread is estimated from the repeats of every item (`stats.repeats`). From the spread follows the smallest
difference between two runs of the same items that exceeds it. A smaller difference may vanish in a repetition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from overtone.display import value_rows as grid
from overtone.display.axes import Kind, Spot, close, page
from overtone.display.drawing import Drawing, series
from overtone.display.table_data import Line, PartTable
from overtone.findings.figure_source import FigureSource, NothingToDraw, axes_by_scale
from overtone.findings.finding import Finding, FindingResult, Settings
from overtone.findings.finding_cells import digits_of, head, kind_of, measure_cell, representing, text
from overtone.results import measure_names
from overtone.results.case_names import KeyedCases, unique
from overtone.results.headline_condition import headline
from overtone.results.load import Answer, Reading
from overtone.results.measures import TIE, Estimate, Measure
from overtone.results.wording import Sentence, shortfall
from overtone.stats import repeats
from overtone.stats.cluster import Interval
from overtone.stats.minimums import NOISE
from overtone.text import by_kind, interval

SIGNATURE = (
    "noise-floor|v1|pair:item,condition|cluster:script|variance:within-items|interval:log-student"
    "|difference:95 % of two equal runs"
)
ADVICE = "to measure the spread between repeats: ask every item again: overtone run … --repeats 3, into the same --out"
NO_CHANGE = "no value changed between repeats"
HINT = (
    "The same items asked again under the same condition. Spread: the standard deviation of a repeat's mean, estimated "
    "from the variance within items. Smallest difference: two runs like this one that differ only by chance differ by "
    "less in 95 % of cases. Percentage points, or the measure’s own scale; 95 % intervals clustered by script."
)


class NoiseRow(Struct, frozen=True):
    """One measure under one condition. The Estimates are on the measure's scale; `scored` counts repeated items."""

    key: str
    condition: str
    measure: str
    main: bool  # whether it is a headline measure; only these have sentences and are in the figure
    repeats: int
    means: list[float]  # one for each repeat
    spread: Estimate  # the standard deviation of a repeat's mean
    once: Estimate  # the smallest difference that exceeds the spread, if both runs ask every item once
    difference: Estimate  # the same, if both runs ask every item as often as this run


class NoiseFloor(Struct, frozen=True):
    """The spread between repeats of one run."""

    rows: list[NoiseRow]
    notes: list[str]
    signature: str = SIGNATURE


class _Repeated(NamedTuple):
    """The answers that one measure reads under one condition."""

    condition: str
    measure: Measure
    main: bool
    answers: list[tuple[float, Answer]]  # (value, answer), without answers that have no value
    asked: int  # number of items

    @property
    def key(self) -> str:
        return f"noise-floor/{self.condition}/{self.measure.name}"

    def by_item(self) -> dict[str, list[tuple[float, Answer]]]:
        """Return item id → its answers, for items with two or more answers."""
        items: dict[str, list[tuple[float, Answer]]] = {}
        for value, answer in self.answers:
            items.setdefault(answer.item_id, []).append((value, answer))
        return {item: own for item, own in items.items() if len(own) > 1}


def noise_floor(reading: Reading) -> NoiseFloor:
    """Compute the spread of every measure, under every condition in which items were asked more than once."""
    return NoiseFloor([_row(repeated) for repeated in _repeated(reading)], [])


def cases_by_key(reading: Reading) -> Iterator[KeyedCases]:
    """Yield each row's key with the cases that were repeated. The key with the suffix `/varied` comes with the cases
    whose value changed."""
    for repeated in _repeated(reading):
        items = repeated.by_item().values()
        yield repeated.key, unique(own[0][1].item.case for own in items)
        varied = [own for own in items if max(v for v, _ in own) - min(v for v, _ in own) > TIE]
        yield f"{repeated.key}/varied", unique(own[0][1].item.case for own in varied)


def _repeated(reading: Reading) -> Iterator[_Repeated]:
    """Yield the answers of each condition and measure, if at least one item has values in two repeats."""
    answers = headline(reading.answers)
    measures = measure_names.measures_of([reading]).values()
    main = {measure.name for measure in measure_names.headline([reading])}
    for condition in dict.fromkeys(a.condition for a in answers if a.repeat):
        here = [a for a in answers if a.condition == condition]
        for measure in measures:
            own = [a for a in here if a.item.task == measure.task and measure.belongs(a.item)]
            known = [(value, a) for a in own if (value := measure.read(a)) is not None and math.isfinite(value)]
            repeated = _Repeated(condition, measure, measure.name in main, known, len({a.item_id for a in own}))
            if repeated.by_item():
                yield repeated


def _row(repeated: _Repeated) -> NoiseRow:
    by_repeat: dict[int, list[float]] = {}
    for value, answer in repeated.answers:
        by_repeat.setdefault(answer.repeat, []).append(value)
    items = len({answer.item_id for _, answer in repeated.answers})
    variance = repeats.within_variance(
        [value for value, _ in repeated.answers],
        [answer.item_id for _, answer in repeated.answers],
        [answer.item.group for _, answer in repeated.answers],
    )
    two_runs = repeats.NORMAL * math.sqrt(2)
    return NoiseRow(
        key=repeated.key,
        condition=repeated.condition,
        measure=repeated.measure.name,
        main=repeated.main,
        repeats=len(by_repeat),
        means=[math.fsum(values) / len(values) for _, values in sorted(by_repeat.items())],
        spread=_estimate(repeats.noise_of_mean(variance, items), 1.0, repeated.asked),
        once=_estimate(repeats.noise_of_mean(variance, items), two_runs, repeated.asked),
        difference=_estimate(repeats.noise_of_mean(variance, len(repeated.answers)), two_runs, repeated.asked),
    )


def _estimate(noise: Interval, scale: float, asked: int) -> Estimate:
    value, low, high = (None if math.isnan(x) else scale * x for x in (noise.value, noise.low, noise.high))
    note = NO_CHANGE if value == 0 else ""
    return Estimate(value, low, high, noise.rows, asked, scripts=noise.clusters, note=note)


# ── in words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentences(data: NoiseFloor) -> list[Sentence]:
    """Return a sentence for each headline measure and condition with enough repeated scripts."""
    rows = [row for row in data.rows if row.main]
    enough = [row for row in rows if row.spread.scripts >= NOISE.least]
    few = [(f"{r.condition}, {measure_names.short(r.measure)}", r.spread.scripts) for r in rows if r not in enough]
    return [*(Sentence(_sentence(row), row.key, row.condition) for row in enough), *shortfall(NOISE, few)]


def _sentence(row: NoiseRow) -> str:
    begin = f"{row.condition}: {measure_names.short(row.measure)}"
    if row.spread.value == 0:
        return f"{begin} is the same in all {row.repeats} repeats of each of {row.spread.scored:,} items: no spread."
    return (
        f"{begin} varies between {row.repeats} repeats of {row.spread.scored:,} items with a standard deviation of "
        f"{_amount(row, row.spread)}. A difference between two such runs exceeds this spread above "
        f"{_amount(row, row.difference)}, or above {_amount(row, row.once)} if each item is asked once."
    )


def _amount(row: NoiseRow, e: Estimate) -> str:
    unit = " points" if measure_names.is_percent(row.measure) else ""
    kind, digits = kind_of(row.measure, difference=True), digits_of(row.measure)
    value, ends = f"{by_kind(e.value, kind, digits)}{unit}", interval(e, kind, digits)
    return f"{value} ({ends})" if ends else value


def tables(result: FindingResult[NoiseFloor], by: str, settings: Settings) -> list[PartTable]:
    """Make one table: a line for each condition and measure."""
    shown = representing([row.condition for row in result.data.rows], by, settings)
    lines = []
    for row in (row for row in result.data.rows if row.condition in shown):
        means = ", ".join(by_kind(mean, kind_of(row.measure), digits_of(row.measure)) for mean in row.means)
        gap = partial(measure_cell, result, row.measure, difference=True)
        cells = (
            text(result, means, row.key),
            gap(row.spread, f"{row.key}/varied" if row.spread.value else row.key),
            gap(row.difference, row.key),
            gap(row.once, row.key),
        )
        lines.append(Line(result.runs[0], row.condition, (head(row.measure),), cells))
    heads = ("Mean of each repeat", "Spread of a repeat", "Smallest difference", "Smallest difference, asked once")
    return [PartTable("noise-floor", "Spread between repeats", HINT, ("Measure",), heads, tuple(lines))]


# ── the figure ──────────────────────────────────────────────────────────────────────────────────────────────────────


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the mean of each repeat, and the smallest difference between two runs that exceeds chance."""
    results = source.results_of("noise-floor", NoiseFloor)
    shown = [(result, row) for result in results for row in _of_run(source, result)]
    if not shown:
        raise NothingToDraw(f"no item of these runs was asked twice under one condition; {ADVICE}")
    drawing, y = page(
        width,
        "Spread between repeats of the same run",
        source.with_name("lines are 95 % intervals, clustered by script. Smaller differences may be chance."),
    )
    made: list[grid.Group] = []
    measures_shown = list(dict.fromkeys(row.measure for _, row in shown))
    rated = [name for name in measures_shown if measure_names.about(name).scale == "mos"]
    for kind, gap, unit, measures in axes_by_scale(measures_shown, rated):
        parts = [
            (
                measure_names.short(measure),
                [(r.runs[0], _places(source, r, row, kind, gap)) for r, row in shown if row.measure == measure],
            )
            for measure in measures
        ]
        panels = [
            grid.Panel("Mean of each repeat", kind, unit, number="mean"),
            grid.Panel("Smallest difference between two runs", gap, "points" if gap == "points" else unit, low=0.0),
        ]
        made.append((grid.blocks(width, source.labels, parts), panels))
    y = grid.groups(drawing, y, made)
    drawing.text = " ".join(sentence.text for result in results for sentence in result.sentences)
    return close(drawing, y, ["n: items that were asked at least twice."], SIGNATURE)


def _of_run(source: FigureSource, result: FindingResult[NoiseFloor]) -> list[NoiseRow]:
    wanted = {f"task/{source.settings.input}", source.conditions[result.runs[0]]}
    return [row for row in result.data.rows if row.main and row.condition in wanted]


def _places(
    source: FigureSource, result: FindingResult[NoiseFloor], row: NoiseRow, kind: Kind, gap: Kind
) -> tuple[grid.Place, grid.Place]:
    run, digits = result.runs[0], digits_of(row.measure)
    ink, shape = series(run)
    key, name = result.prefix + row.key, f"{source.labels[run]}, {measure_names.short(row.measure)}"

    def mean_of(means: Sequence[float], what: str) -> Spot:
        mean = Estimate(math.fsum(means) / len(means), None, None, row.spread.scored, row.spread.asked)
        return Spot(mean, f"{name}, {what}", key, ink, shape, hollow=True, kind=kind, digits=digits)

    spots = tuple(mean_of([mean], f"repeat {number}") for number, mean in enumerate(row.means, 1))
    smallest = Spot(row.difference, f"{name}, smallest difference", key, ink, shape, kind=gap, digits=digits)
    return grid.Place(spots, mean_of(row.means, "mean of the repeats")), grid.Place((smallest,))


FINDING = Finding(
    title="Noise floor",
    question="How large must a difference between two runs be to exceed chance?",
    order=90,
    takes="run",
    compute=lambda inputs: noise_floor(inputs.run),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.run),
    tables=tables,
    advice=lambda data: [] if data.rows else [ADVICE],
    minimums=(NOISE,),
    draw=draw,
)
