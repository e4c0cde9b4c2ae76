"""The funnel as tables: a line for each stage overall, a matrix of stages by dimension, style or cue, and the gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import ALL, DEFAULT, basis, cell, chosen, named, over, representing
from overtone.findings.funnel.compute import LABELS, Funnel, StageRow
from overtone.findings.funnel.funnel_stages import ORDER
from overtone.text import percent

BREAKDOWNS = ("overall", "dimension", "style", "cue")
HINTS = {
    "funnel": (
        "The share of cases that reach a stage, among the cases that have it. The same, corrected for blind "
        "guessing; if the style margin decides use, corrected for replies that ignore the voice. How often cases "
        "reach the stage that reached the previous one, and how often the others do: a stage matters for the next "
        "only if these two differ. Last, the share that reaches this stage and every previous one. 95 % intervals "
        "clustered by script."
    ),
    "reached": "The share of cases that reach each stage, in percent.",
    "steps": (
        "How much more often cases reach a stage that reached the previous one than cases that did not, in points: "
        "about 0 if the previous stage does not matter."
    ),
    "gains": (
        "The same cases with the true cue stated in words and without. This difference, not the steps above, measures "
        "what perfect hearing would give."
    ),
}


def make_tables(result: FindingResult[Funnel], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make the table of the stages, or of one breakdown, and the table of the gains."""
    shown = representing([row.condition for row in result.data.rows], by, settings)
    rows = [row for row in result.data.rows if row.condition in shown]
    made = [_stages(result, rows)] if by in ("overall", ALL) else []
    if by != "overall":
        rows = chosen(rows, by)
        made += [
            _matrix(result, rows, "funnel-reached", "The funnel, stage by stage", "reached", _reached),
            _matrix(result, rows, "funnel-steps", "How much each stage matters for the next", "steps", _difference),
        ]
    return [*made, _gains(result, by)]


def _stages(result: FindingResult[Funnel], rows: Sequence[StageRow]) -> PartTable:
    """Make the headline table: one line for each stage with data."""
    lines = [
        Line(result.runs[0], row.condition, (basis(row.basis), LABELS[row.stage]), _cells(result, row))
        for row in rows
        if row.by == "overall" and row.reached.scored
    ]
    heads = (
        "Reached ↑ · %",
        "Corrected for guessing · %",
        "After the previous stage · %",
        "Without it · %",
        "Difference · points",
        "With all previous · %",
    )
    return named(PartTable("funnel", "The funnel", HINTS["funnel"], ("Cues", "Stage"), heads, tuple(lines)))


def _cells(result: FindingResult[Funnel], row: StageRow) -> tuple[Cell, ...]:
    step = row.step
    sides = (Cell(),) * 3
    if step is not None:
        before = ORDER[ORDER.index(row.stage) - 1]
        small = "" if step.after == before else f"after: {LABELS[step.after]}"
        sides = (
            cell(result, step.given, f"{row.key}/given", small=small),
            cell(result, step.otherwise, f"{row.key}/otherwise"),
            _difference(result, row),
        )
    return (
        _reached(result, row),
        cell(result, row.corrected, row.key, small="" if row.chance is None else f"chance {percent(row.chance)}"),
        *sides,
        cell(result, row.through, f"{row.key}/through") if row.step is not None else Cell(),
    )


def _reached(result: FindingResult[Funnel], row: StageRow) -> Cell:
    return cell(result, row.reached, row.key)


def _difference(result: FindingResult[Funnel], row: StageRow) -> Cell:
    return cell(result, row.step.difference, f"{row.key}/step", "points") if row.step else Cell()


def _matrix(
    result: FindingResult[Funnel],
    rows: Sequence[StageRow],
    key: str,
    title: str,
    hint: str,
    read: Callable[[FindingResult[Funnel], StageRow], Cell],
) -> PartTable:
    lines: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for row in rows:
        lines.setdefault((row.condition, basis(row.basis), over(row)), {})[row.stage] = read(result, row)
    used = [s for s in ORDER if any((e := row[s].estimate) and e.scored for row in lines.values() if s in row)]
    unit = " · points" if hint == "steps" else " · %"
    return named(
        PartTable(
            key, title, HINTS[hint], ("Cues", "Over"), tuple(LABELS[s].capitalize() + unit for s in used),
            tuple(
                Line(result.runs[0], condition, (cues, over), tuple(cells.get(s, Cell()) for s in used))
                for (condition, cues, over), cells in lines.items()
            ),
        )
    )  # fmt: skip


def _gains(result: FindingResult[Funnel], by: str) -> PartTable:
    lines = [
        Line(
            result.runs[0], gain.condition, (basis(gain.basis), over(gain), LABELS[gain.stage]),
            (
                cell(result, gain.untold, gain.key),
                cell(result, gain.told, gain.key),
                cell(result, gain.difference, gain.key, "points"),
            ),
        )
        for gain in chosen(result.data.gains, by)
    ]  # fmt: skip
    heads = ("Cue not stated · %", "Cue stated · %", "Difference · points")
    title = "The effect of stating the cue"
    return named(PartTable("funnel-gains", title, HINTS["gains"], ("Cues", "Over", "Stage"), heads, tuple(lines)))
