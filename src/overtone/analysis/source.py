"""Synthesised against human voices: the same scripts in the same styles, spoken by an engine and by people.

Only scripts that both sources have count, and each case is compared with itself: what a script makes easy or hard
cancels. People's recordings differ from an engine's in more than naturalness (microphone, room, accent), so a
difference is between these two sets of clips.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from overtone import cues
from overtone.analysis import outcomes as out
from overtone.analysis import said
from overtone.analysis.measures import METRICS, Estimate, Measure, estimate
from overtone.analysis.parts import by_basis
from overtone.analysis.reading import Answer, Reading
from overtone.analysis.said import Sentence
from overtone.schema import STYLES

SIGNATURE = "source|v1|pairs:case-means|interval:student-by-script|difference:first-less-second"
FIRST = "synthesis"  # is compared with each other source
MEASURES = (
    "wer_raw", "semsim", "voice_accuracy", "reasoning_accuracy", "reply_semsim", out.C1, out.C4, out.VES,
    "emoalign_reference", "style_margin", "nisqa_mos", "utmos",
)  # fmt: skip


class SourceRow(Struct, frozen=True):
    """One measure on the cases both sources have. Every case counts the same, however many questions it has."""

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


class Sources(Struct, frozen=True):
    rows: list[SourceRow]
    sources: tuple[str, ...]
    scripts: int  # that are paired
    notes: list[str]
    signature: str = SIGNATURE


Pair = tuple[float | None, float | None, str, str, str]  # first, second, script, style, dimension
Place = tuple[str, str, str]  # script, style, condition


def source(readings: Reading | Sequence[Reading]) -> Sources:
    """From one run over both sources, or from several runs of one model over one source each."""
    answers, measures, notes = out.pooled([readings] if isinstance(readings, Reading) else readings)
    core = [a for a in answers if not a.item.part and a.item.source]
    names = sorted({a.item.source for a in core}, key=lambda s: (s != FIRST, s))
    rows: list[SourceRow] = []
    paired: set[str] = set()
    unsure = {script_of(a) for a in core if a.item.status == "unvalidated"}
    for basis, found in by_basis(core, lambda a: "unvalidated" if script_of(a) in unsure else a.item.status):
        for first, second in itertools.combinations(names, 2):
            if first != FIRST and FIRST in names:
                continue
            for name in (n for n in MEASURES if n in measures):
                for condition, pairs in _pairs(found, measures[name], first, second).items():
                    paired |= {script for _, _, script, _, _ in pairs}
                    rows += _rows(basis, condition, name, (first, second), pairs)
    if len(names) < 2:
        notes.append(f"One source only ({', '.join(names) or 'not named'}): nothing to compare.")
    elif not rows:
        notes.append(f"No script was asked in two of the sources {', '.join(names)}.")
    return Sources(rows, tuple(names), len(paired), notes)


def script_of(answer: Answer) -> str:
    """The script without its source: what clips of several sources have in common."""
    return answer.item.group.removeprefix(f"{answer.item.source}/")


def behind(readings: Reading | Sequence[Reading], key: str) -> list[str]:
    """The cases under a row, of both sources."""
    _, basis, prompt, input, by, name, sources, measure = key.split("/")
    answers, measures, _ = out.pooled([readings] if isinstance(readings, Reading) else readings)
    if measure not in measures:
        return []
    core = [a for a in answers if not a.item.part and a.item.source]
    unsure = {script_of(a) for a in core if a.item.status == "unvalidated"}
    first, _, second = sources.partition("~")
    for found_basis, found in by_basis(core, lambda a: "unvalidated" if script_of(a) in unsure else a.item.status):
        if (found_basis or "all") == basis:
            pairs = _pairs(found, measures[measure], first, second).get(f"{prompt}/{input}", [])
            scripts = {
                (script, style)
                for a, b, script, style, dimension in pairs
                if a is not None
                and b is not None
                and name in {"overall": ("overall",), "style": (style,)}.get(by, (dimension,))
            }
            return sorted(
                {
                    a.item.case
                    for a in found
                    if (script_of(a), a.item.style) in scripts and a.item.source in (first, second)
                }
            )
    return []


def sentences(found: Sources) -> list[Sentence]:
    """Every measure overall: on which source it is worse, or that this cannot be told."""
    told = []
    for row in found.rows:
        if row.by != "overall" or row.difference.value is None:
            continue
        first, second = row.sources
        gap = row.difference
        basis = " (cues not validated)" if row.basis == "unvalidated" else ""
        what = f"{out.label(row.measure)} under {row.condition}{basis}"
        numbers = f"{out.told(row.measure, row.first)} on {first}, {out.told(row.measure, row.second)} on {second}"
        apart = out.told(row.measure, gap, difference=True)
        if not said.tells(gap):
            text = f"{what}: {numbers}; whether they differ cannot be told, {apart}."
        else:
            about = METRICS.get({"reply_semsim": "semsim"}.get(row.measure, row.measure))
            lower = about is not None and about.better == "lower"
            worse = second if ((gap.value or 0.0) > 0) != lower else first
            text = f"{what}: {numbers}; worse on {worse} by {apart} ({first} less {second}, {gap.scripts} scripts)."
        told.append(Sentence(text, row.key))
    return told


def _pairs(answers: Iterable[Answer], measure: Measure, first: str, second: str) -> dict[str, list[Pair]]:
    """By condition: the case means of the cases both sources were asked."""
    sides: dict[str, dict[Place, list[float | None]]] = {first: {}, second: {}}
    dimension: dict[str, str] = {}
    for answer in answers:
        item = answer.item
        if item.source in sides and measure.belongs(item):
            place = (script_of(answer), item.style, answer.condition)
            sides[item.source].setdefault(place, []).append(measure.read(answer))
            dimension[place[0]] = item.dimension
    found: dict[str, list[Pair]] = {}
    for place, values in sides[first].items():
        if place in sides[second]:
            script, style, condition = place
            pair = (_mean(values), _mean(sides[second][place]), script, style, dimension[script])
            found.setdefault(condition, []).append(pair)
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [x for x in values if x is not None]
    return sum(known) / len(known) if known else None


def _rows(basis: str, condition: str, measure: str, sources: tuple[str, str], pairs: list[Pair]) -> list[SourceRow]:
    rows = []
    ways: tuple[tuple[str, Sequence[str], Callable[[Pair], str]], ...] = (
        ("overall", ("overall",), lambda _: "overall"),
        ("style", STYLES, lambda p: p[3]),
        ("dimension", cues.DIMENSIONS, lambda p: p[4]),
    )
    for by, order, of in ways:
        parts: dict[str, list[Pair]] = {}
        for pair in pairs:
            parts.setdefault(of(pair), []).append(pair)
        for name in (n for n in order if n in parts):
            key = f"source/{basis or 'all'}/{condition}/{by}/{name}/{'~'.join(sources)}/{measure}"
            both = [(a, b, g) for a, b, g, _, _ in parts[name]]
            whole = [(None, None, g) if a is None or b is None else (a, b, g) for a, b, g in both]
            first, second = (estimate([(row[k], row[2]) for row in whole]) for k in (0, 1))  # type: ignore[misc]
            gap = estimate(out.difference(whole))
            rows.append(SourceRow(key, basis, condition, by, name, measure, sources, first, second, gap))
    return rows
