"""The tables of sources: for each pair of sources, one table with all measures."""

from __future__ import annotations

from overtone.display.table_data import Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import (
    DEFAULT,
    HOLM,
    basis,
    chosen,
    head,
    measure_cell,
    named,
    over,
    p_cell,
    representing,
)
from overtone.findings.source.compute import Sources

BREAKDOWNS = ("overall", "dimension", "style")
HINT = (
    "The same scripts in the same styles from both sources, case by case; a case counts once, whatever its number of "
    "questions. The difference is one between these two sets of clips: microphones and rooms differ too. " + HOLM
)


def make_tables(result: FindingResult[Sources], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make a table for each pair of sources."""
    lines: dict[tuple[str, str], list[Line]] = {}
    shown = representing([row.condition for row in result.data.rows], by, settings)
    for row in (r for r in chosen(result.data.rows, by) if r.condition in shown and r.difference.scored):
        cells = (
            measure_cell(result, row.measure, row.first, f"{row.key}/first"),
            measure_cell(result, row.measure, row.second, f"{row.key}/second"),
            measure_cell(result, row.measure, row.difference, row.key, difference=True),
            p_cell(result, row.adjusted, row.difference, row.key),
        )
        names = (basis(row.basis), head(row.measure), over(row))
        lines.setdefault(row.sources, []).append(Line(result.runs[0], row.condition, names, cells))
    return [
        named(
            PartTable(
                f"source/{first}~{second}", f"{first} against {second}".capitalize(), HINT, ("Cues", "Measure", "Over"),
                (first, second, "Difference", "p, Holm"), tuple(rows),
            )
        )
        for (first, second), rows in lines.items()
    ]  # fmt: skip
