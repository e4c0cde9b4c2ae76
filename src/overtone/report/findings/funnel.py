"""The funnel as tables: a line for each stage overall, a matrix of stages by dimension, style or cue, and the gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.funnel import LABELS, Funnel, StageRow
from overtone.analysis.funnel_stages import ORDER
from overtone.report.findings._cells import ALL, DEFAULT, basis, cell, chosen, named, over, standing
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall", "dimension", "style", "cue")
HINTS = {
    "funnel": (
        "Of the cases that have a stage, the share that reaches it; the same less what blind guessing gives, or less "
        "what replies that ignore the voice give, where use is told by the style margin; how often "
        "it is reached where the stage before was, and where it was not. A stage matters for the next only where these "
        "two differ. Last: reached together with every stage before. 95 % intervals by script."
    ),
    "reached": "The share of cases that reach each stage, in percent.",
    "steps": (
        "How much more often a stage is reached where the stage before was than where it was not, in points: "
        "about 0 where it does not matter."
    ),
    "gains": (
        "The same cases with the true cue told in words and without. What perfect hearing would give is this "
        "difference, measured, and not the steps above."
    ),
}


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Funnel)
    shown = standing([row.condition for row in found.rows], by, settings)
    rows = [row for row in found.rows if row.condition in shown]
    made = [_stages(finding, rows)] if by in ("overall", ALL) else []
    if by != "overall":
        rows = chosen(rows, by)
        made += [
            _matrix(finding, rows, "funnel-reached", "The funnel, stage by stage", "reached", _reached),
            _matrix(finding, rows, "funnel-steps", "What each stage matters for", "steps", _difference),
        ]
    return [*made, _gains(finding, found, by)]


def _stages(finding: Finding, rows: Sequence[StageRow]) -> PartTable:
    """The headline: the stages that some case has."""
    lines = [
        Line(finding.runs[0], row.condition, (basis(row.basis), LABELS[row.stage]), _cells(finding, row))
        for row in rows
        if row.by == "overall" and row.reached.scored
    ]
    heads = (
        "Reached ↑ · %",
        "Less guessing · %",
        "After the stage before · %",
        "Without it · %",
        "Difference · points",
        "With all before · %",
    )
    return named(PartTable("funnel", "The funnel", HINTS["funnel"], ("Cues", "Stage"), heads, tuple(lines)))


def _cells(finding: Finding, row: StageRow) -> tuple[Cell, ...]:
    step = row.step
    sides = (Cell(),) * 3
    if step is not None:
        before = ORDER[ORDER.index(row.stage) - 1]
        small = "" if step.after == before else f"after: {LABELS[step.after]}"
        sides = (
            cell(finding, step.given, f"{row.key}/given", small=small),
            cell(finding, step.otherwise, f"{row.key}/otherwise"),
            _difference(finding, row),
        )
    return (
        _reached(finding, row),
        cell(finding, row.corrected, row.key, small="" if row.chance is None else f"chance {100 * row.chance:.0f} %"),
        *sides,
        cell(finding, row.through, f"{row.key}/through") if row.step is not None else Cell(),
    )


def _reached(finding: Finding, row: StageRow) -> Cell:
    return cell(finding, row.reached, row.key)


def _difference(finding: Finding, row: StageRow) -> Cell:
    return cell(finding, row.step.difference, f"{row.key}/step", "points") if row.step else Cell()


def _matrix(
    finding: Finding,
    rows: Sequence[StageRow],
    key: str,
    title: str,
    hint: str,
    read: Callable[[Finding, StageRow], Cell],
) -> PartTable:
    lines: dict[tuple[str, str, str], dict[str, Cell]] = {}
    for row in rows:
        lines.setdefault((row.condition, basis(row.basis), over(row)), {})[row.stage] = read(finding, row)
    used = [s for s in ORDER if any((e := found[s].estimate) and e.scored for found in lines.values() if s in found)]
    unit = " · points" if hint == "steps" else " · %"
    return named(
        PartTable(
            key, title, HINTS[hint], ("Cues", "Over"), tuple(LABELS[s].capitalize() + unit for s in used),
            tuple(
                Line(finding.runs[0], condition, names, tuple(found.get(s, Cell()) for s in used))
                for (condition, *names_), found in lines.items()
                for names in [tuple(names_)]
            ),
        )
    )  # fmt: skip


def _gains(finding: Finding, found: Funnel, by: str) -> PartTable:
    lines = [
        Line(
            finding.runs[0], gain.condition, (basis(gain.basis), over(gain), LABELS[gain.stage]),
            (
                cell(finding, gain.untold, gain.key),
                cell(finding, gain.told, gain.key),
                cell(finding, gain.difference, gain.key, "points"),
            ),
        )
        for gain in chosen(found.gains, by)
    ]  # fmt: skip
    heads = ("Not told · %", "Told the cue · %", "Difference · points")
    title = "What telling the cue gives"
    return named(PartTable("funnel-gains", title, HINTS["gains"], ("Cues", "Over", "Stage"), heads, tuple(lines)))
