"""Synthesised against human voices: the same scripts in the same styles, spoken by an engine and by people.

Only scripts that both sources have are counted, and each case is compared with itself, so that the difficulty of a
script cancels out. Human recordings differ from synthesised speech in more than naturalness (microphone, room, accent),
so a result applies only to these two sets of clips.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from overtone import cues
from overtone.results import measure_names, significance
from overtone.results.case_names import KeyedCases, unique
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, Measure
from overtone.results.side_measures import by_basis
from overtone.results.wording import Sentence, shortfall
from overtone.schema import STYLES
from overtone.stats.minimums import DIFFERENCE

SEED, DRAWS = 19, 10_000
SIGNATURE = (
    f"source|v2|pairs:case-means|test:sign-flips by script,within-the-scale|draws:{DRAWS}|seed:{SEED}|"
    "adjust:holm, overall rows together, of a breakdown by measure|difference:first-less-second"
)
FIRST = "synthesis"  # compared with every other source
MEASURES = (
    "wer_raw", "semsim", "voice_accuracy", "reasoning_accuracy", "reply_semsim", measure_names.C1,
    measure_names.C4, measure_names.VES, "emoalign_reference", "style_margin", "nisqa_mos", "utmos",
)  # fmt: skip


class SourceRow(Struct, frozen=True):
    """One measure on the cases that both sources have. Every case has the same weight."""

    key: str
    basis: str
    condition: str
    by: str  # overall, style, dimension
    name: str
    measure: str
    sources: tuple[str, str]
    first: Estimate
    second: Estimate
    difference: Estimate  # first − second
    p: float | None = None
    adjusted: float | None = None  # corrected for all `tests` tests of its family
    tests: int = 0


class Sources(Struct, frozen=True):
    """The sources of one model's clips, compared."""

    rows: list[SourceRow]
    sources: tuple[str, ...]
    scripts: int  # number of scripts that both sources have
    notes: list[str]
    signature: str = SIGNATURE


class Pair(NamedTuple):
    """The mean of a measure for one script in one style, in each of two sources, and the cases of each source."""

    first: float | None
    second: float | None
    script: str
    style: str
    dimension: str
    cases: tuple[tuple[str, ...], tuple[str, ...]]


Place = tuple[str, str, str]  # script, style, condition


def source(readings: Reading | Sequence[Reading]) -> Sources:
    """Compare the sources within one run that has several, or between runs of one model with one source each."""
    core, measures, notes = _core(readings)
    names = _names(core)
    rows: list[SourceRow] = []
    paired: set[str] = set()
    for basis, condition, measure, sources, pairs in _compared(core, measures):
        paired |= {pair.script for pair in pairs}
        rows += _rows(basis, condition, measure, sources, pairs)
    if len(names) < 2:
        notes.append(f"One source only ({', '.join(names) or 'not named'}): nothing to compare.")
    elif not rows:
        notes.append(f"No script was asked in two of the sources {', '.join(names)}.")
    return Sources(_adjusted(rows), tuple(names), len(paired), notes)


def _core(readings: Reading | Sequence[Reading]) -> tuple[list[Answer], dict[str, Measure], list[str]]:
    answers, measures, notes = measure_names.pooled([readings] if isinstance(readings, Reading) else readings)
    return [a for a in answers if not a.item.part and a.item.source], measures, notes


def _names(core: Iterable[Answer]) -> list[str]:
    return sorted({a.item.source for a in core}, key=lambda s: (s != FIRST, s))


def _compared(
    core: list[Answer], measures: Mapping[str, Measure]
) -> Iterator[tuple[str, str, Measure, tuple[str, str], list[Pair]]]:
    """Yield (basis, condition, measure, two sources, pairs) for every comparison."""
    names = _names(core)
    if len(names) < 2:
        return
    unsure = {script_of(a) for a in core if a.item.status == "unvalidated"}
    for basis, answers in by_basis(core, lambda a: "unvalidated" if script_of(a) in unsure else a.item.status):
        for first, second in itertools.combinations(names, 2):
            if first != FIRST and FIRST in names:
                continue
            shared = _shared(answers, first, second)
            for name in (n for n in MEASURES if n in measures):
                for condition, pairs in _pairs(
                    shared.get(measures[name].task, ()), measures[name], first, second
                ).items():
                    yield basis, condition, measures[name], (first, second), pairs


def script_of(answer: Answer) -> str:
    """Return the script's name without the source, so that it is the same for clips of all sources."""
    return answer.item.group.removeprefix(f"{answer.item.source}/")


def cases_by_key(readings: Reading | Sequence[Reading]) -> Iterator[KeyedCases]:
    """Yield the key of every row with the cases of both sources; the suffix `first` or `second` selects one source."""
    core, measures, _ = _core(readings)
    for basis, condition, measure, sources, pairs in _compared(core, measures):
        for by, name, part in _parts(pairs):
            whole = [pair for pair in part if pair.first is not None and pair.second is not None]
            key = _key(basis, condition, by, name, sources, measure.name)
            sides = [unique(case for pair in whole for case in pair.cases[k]) for k in (0, 1)]
            yield key, unique([*sides[0], *sides[1]])
            yield f"{key}/first", sides[0]
            yield f"{key}/second", sides[1]


def sentences(data: Sources) -> list[Sentence]:
    """Return a sentence on each overall row. It names the worse source, or says that the difference is not
    significant."""
    lines = []
    few: list[tuple[str, int]] = []
    for row in data.rows:
        if row.by != "overall" or row.difference.value is None:
            continue
        first, second = row.sources
        gap = row.difference
        basis = " (cues not validated)" if row.basis == "unvalidated" else ""
        what = f"{measure_names.short(row.measure)} under {row.condition}{basis}"
        if gap.scripts < DIFFERENCE.least:
            few.append((f"{what}, {first} against {second}", gap.scripts))
            continue
        here, there = (measure_names.write(row.measure, side) for side in (row.first, row.second))
        numbers = f"{here} on {first}, {there} on {second}"
        by = f"{measure_names.write(row.measure, gap, difference=True)} ({first} minus {second}, {gap.scripts} scripts)"
        amount = f"a difference of {by}"
        if significance.significant(row.adjusted):
            lower = measure_names.about(row.measure).better == "lower"
            amount = f"worse on {second if ((gap.value or 0.0) > 0) != lower else first} by {by}"
        test = significance.by_test(gap, row.adjusted, row.tests)
        lines.append(Sentence(f"{what}: {numbers}; {amount}{test}.", row.key, row.condition))
    return [*lines, *shortfall(DIFFERENCE, few)]


def _shared(answers: Iterable[Answer], first: str, second: str) -> dict[str, list[tuple[Place, Answer]]]:
    """Return task → (place, answer) pairs, for the places that were asked in both sources."""
    placed: dict[str, list[tuple[Place, Answer]]] = {first: [], second: []}
    for answer in answers:
        if (side := placed.get(answer.item.source)) is not None:
            side.append(((script_of(answer), answer.item.style, answer.condition), answer))
    common = {place for place, _ in placed[first]} & {place for place, _ in placed[second]}
    by_task: dict[str, list[tuple[Place, Answer]]] = {}
    for place, answer in itertools.chain(*placed.values()):
        if place in common:
            by_task.setdefault(answer.item.task, []).append((place, answer))
    return by_task


def _pairs(answers: Iterable[tuple[Place, Answer]], measure: Measure, first: str, second: str) -> dict[str, list[Pair]]:
    """Return condition → pairs of means, for the places that were asked in both sources."""
    sides: dict[str, dict[Place, list[Answer]]] = {first: {}, second: {}}
    for place, answer in answers:
        if measure.belongs(answer.item):
            sides[answer.item.source].setdefault(place, []).append(answer)
    by_condition: dict[str, list[Pair]] = {}
    for place, here in sides[first].items():
        there = sides[second].get(place)
        if there is not None:
            script, style, condition = place
            means = [_mean([measure.read(a) for a in side]) for side in (here, there)]
            cases = tuple(unique(a.item.case for a in here)), tuple(unique(a.item.case for a in there))
            pair = Pair(means[0], means[1], script, style, there[-1].item.dimension, cases)
            by_condition.setdefault(condition, []).append(pair)
    return by_condition


def _mean(values: Sequence[float | None]) -> float | None:
    known = [x for x in values if x is not None]
    return sum(known) / len(known) if known else None


def _parts(pairs: Iterable[Pair]) -> Iterator[tuple[str, str, list[Pair]]]:
    """Yield (by, name, pairs) for all pairs together, for each style and for each dimension."""
    ways: tuple[tuple[str, Sequence[str], Callable[[Pair], str]], ...] = (
        ("overall", ("overall",), lambda _: "overall"),
        ("style", STYLES, lambda pair: pair.style),
        ("dimension", cues.DIMENSIONS, lambda pair: pair.dimension),
    )
    for by, order, of in ways:
        parts: dict[str, list[Pair]] = {}
        for pair in pairs:
            parts.setdefault(of(pair), []).append(pair)
        for name in (n for n in order if n in parts):
            yield by, name, parts[name]


def _key(basis: str, condition: str, by: str, name: str, sources: tuple[str, str], measure: str) -> str:
    return f"source/{basis or 'all'}/{condition}/{by}/{name}/{'~'.join(sources)}/{measure}"


def _rows(basis: str, condition: str, measure: Measure, sources: tuple[str, str], pairs: list[Pair]) -> list[SourceRow]:
    rows = []
    for by, name, part in _parts(pairs):
        whole = [
            (None, None, p.script) if p.first is None or p.second is None else (p.first, p.second, p.script)
            for p in part
        ]
        first = measure.side([(a, script) for a, _, script in whole])
        second = measure.side([(b, script) for _, b, script in whole])
        key = _key(basis, condition, by, name, sources, measure.name)
        gap, p = measure.tested(whole, seed=SEED, draws=DRAWS)
        rows.append(SourceRow(key, basis, condition, by, name, measure.name, sources, first, second, gap, p))
    return rows


def _adjusted(rows: Sequence[SourceRow]) -> list[SourceRow]:
    """Return the rows with corrected p-values.

    The overall rows of two sources are one family. In a breakdown, the rows of each condition and measure are one
    family.
    """
    families = [(r.basis, r.sources, r.by, *(() if r.by == "overall" else (r.condition, r.measure))) for r in rows]
    return significance.adjust(rows, families)
