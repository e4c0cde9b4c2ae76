"""Synthesised against human voices, as tables: for each two sources a table of every measure."""

from __future__ import annotations

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.source import Sources
from overtone.report.findings._cells import (
    DEFAULT,
    HOLM,
    basis,
    cell,
    chosen,
    digits_of,
    head,
    kind_of,
    named,
    over,
    p_cell,
    standing,
)
from overtone.report.table import Line, PartTable

BYS = ("overall", "dimension", "style")
HINT = (
    "The same scripts in the same styles from both sources, case by case; a case counts once however many questions it "
    "has. The difference is between these two sets of clips: microphones and rooms differ too. " + HOLM
)


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Sources)
    lines: dict[tuple[str, str], list[Line]] = {}
    shown = standing([row.condition for row in found.rows], by, settings)
    for row in (r for r in chosen(found.rows, by) if r.condition in shown and r.difference.scored):
        gap = kind_of(row.measure, difference=True)
        digits = digits_of(row.measure)
        cells = (
            cell(finding, row.first, f"{row.key}/first", kind_of(row.measure), digits=digits),
            cell(finding, row.second, f"{row.key}/second", kind_of(row.measure), digits=digits),
            cell(finding, row.difference, row.key, gap, digits=digits),
            p_cell(finding, row.adjusted, row.difference, row.key),
        )
        names = (basis(row.basis), head(row.measure), over(row))
        lines.setdefault(row.sources, []).append(Line(finding.runs[0], row.condition, names, cells))
    return [
        named(
            PartTable(
                f"source/{first}~{second}", f"{first} against {second}".capitalize(), HINT, ("Cues", "Measure", "Over"),
                (first, second, "Difference", "p, Holm"), tuple(rows),
            )
        )
        for (first, second), rows in lines.items()
    ]  # fmt: skip
