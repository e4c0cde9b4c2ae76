"""The first screen of a report: for each run a verdict, its headline numbers and its funnel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from overtone.display.columns import hearing_columns
from overtone.display.table_data import counted
from overtone.findings.figure_source import FigureSource
from overtone.findings.funnel.compute import LABELS, Funnel, rows_by_stage
from overtone.findings.funnel.funnel_stages import ORDER
from overtone.findings.text_only.compute import TextOnly
from overtone.findings.verdict import Verdict, suite_verdict, verdict_from
from overtone.report.case_links import where
from overtone.report.template_tables import talk_columns
from overtone.results.headline import suite_tables
from overtone.results.judge_scores import PANEL
from overtone.results.load import Reading
from overtone.results.measure_names import C1, C4, VES
from overtone.results.measures import Estimate
from overtone.results.summary import ConditionSummary, Summary
from overtone.text import interval, percent, value_of

MOST = 5  # numbers of a run
TALK = 2  # of these, about its replies
RATED = (C4, VES, C1)  # judged dimensions in order of preference


class Tile(NamedTuple):
    """One headline number as text, and the key of its cases."""

    label: str
    value: str
    interval: str
    counted: str
    key: str


class Stage(NamedTuple):
    """One stage of the funnel. `reached` is None if no case has data for the stage."""

    label: str
    reached: Estimate | None
    chance: float | None
    written: str
    key: str


class Card(NamedTuple):
    """The answer for one run."""

    number: int
    verdict: Verdict
    tiles: list[Tile]
    stages: list[Stage]


def cards(readings: Sequence[Reading], summaries: Sequence[Summary], source: FigureSource) -> list[Card]:
    """Return the card of every run. The runs of `source`, whose levels share their scripts, come first; the other
    runs have their own headline tables."""
    made = []
    for number, (reading, summary) in enumerate(zip(readings, summaries, strict=True)):
        if number < len(source.readings):
            made.append(_linked(number, reading, summary, source))
        else:
            made.append(Card(number, suite_verdict(reading), list(_suite_tiles(number, reading)), []))
    return made


def _linked(number: int, reading: Reading, summary: Summary, source: FigureSource) -> Card:
    stages = source.results_of("funnel", Funnel)[number]
    words = source.results_of("text-only", TextOnly)[number]
    condition, given = source.conditions[number], source.settings.input
    verdict = verdict_from(reading, stages, words, condition, given)
    tiles = [*_hearing_tiles(number, summary, given), *_talk_tiles(number, summary, condition)]
    rows = rows_by_stage(stages.data, condition, given)
    shown = []
    for stage in ORDER if rows else ():
        row = rows.get(stage)
        label = LABELS[stage].capitalize()
        if row is None:
            shown.append(Stage(label, None, None, "", ""))
        else:
            written = percent(row.reached.value)
            shown.append(Stage(label, row.reached, row.chance, written, stages.prefix + row.key))
    return Card(number, verdict, tiles[:MOST], shown)


def _hearing_tiles(number: int, summary: Summary, given: str) -> Iterator[Tile]:
    """Yield the accuracies, then the first measure of transcripts."""
    asked = [c for c in summary.conditions if any(e.scored for e in (*c.measures.values(), *c.unvalidated.values()))]
    preferred = [c for c in asked if c.condition == f"task/{given}"] or [c for c in asked if "task/" in c.condition]
    for c in preferred[:1]:
        measures, over = (c.measures, "") if c.measures else (c.unvalidated, "unvalidated")
        columns = [col for col in hearing_columns([c]) if (e := measures.get(col.measure)) and e.value is not None]
        right = [col for col in columns if col.measure.endswith("_accuracy")]
        others = [col for col in columns if col not in right][:1]
        for col in (*right, *others):
            key = where(number, col.measure, condition=c.condition, over=over)
            yield _tile(f"{col.label}\u00a0{col.better}".strip(), measures[col.measure], col.kind, col.digits, key)


def _talk_tiles(number: int, summary: Summary, condition: str) -> Iterator[Tile]:
    """Yield the judges' scores of the replies; without judges, the similarity of the replies to the references."""
    c = next((c for c in summary.conditions if c.condition == condition), None)
    if c is None:
        return
    judged = list(_judged_tiles(number, c))
    if judged:
        yield from judged[:TALK]
        return
    talk, over = (c.conversation, "") if c.conversation else (c.unvalidated_conversation, "unvalidated")
    for column in talk_columns([talk], c.declared)[:1] if talk else ():
        e = talk.measures.get(column.name) if talk else None
        if e is not None and e.value is not None:
            key = where(number, "replies", condition=condition, over=over, score=column.name)
            yield _tile(f"Reply {column.label}", e, column.kind, column.digits, key)


def _judged_tiles(number: int, c: ConditionSummary) -> Iterator[Tile]:
    rows = [row for row in c.judged if row.basis != "unvalidated"] or c.judged
    for dimension in RATED:
        mine = sorted((r for r in rows if r.dimension.key == dimension), key=lambda r: (r.judge != PANEL, r.judge))
        for row in mine[:1]:
            if row.headline.value is not None:
                about = {"condition": c.condition, "over": row.basis, "rubric": dimension, "judge": row.judge}
                kind = "percent" if row.dimension.share else "number"
                yield _tile(row.dimension.label, row.headline, kind, 2, where(number, "judged", **about))


def _suite_tiles(number: int, reading: Reading) -> Iterator[Tile]:
    for table in suite_tables(reading)[:1]:
        for row in table.rows[:1]:
            pairs = zip(table.headline.columns, row.cells, strict=True)
            for column, e in [(col, e) for col, e in pairs if e is not None and e.value is not None][:MOST]:
                yield _tile(column.label, e, column.kind, column.digits, f"{number + 1}:{row.key}/{column.key}")


def _tile(label: str, e: Estimate, kind: str, digits: int, key: str) -> Tile:
    unit = " %" if kind == "percent" else ""
    return Tile(label, value_of(e, kind, digits) + unit, interval(e, kind, digits), counted(e), key)
