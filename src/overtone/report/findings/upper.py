"""What perfect hearing would give, as a table: told nothing, told the cue, told a wrong one, and the differences."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.measures import Estimate
from overtone.analysis.upper import Upper, UpperRow
from overtone.report.findings._cells import (
    ALL,
    DEFAULT,
    HOLM,
    Kind,
    basis,
    cell,
    chosen,
    digits_of,
    head,
    kind_of,
    named,
    over,
    p_cell,
)
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall", "dimension", "cue")
HINT = (
    "The same clips with the cue told in words, not told, and with a wrong cue told. What a wrong cue gives too is a "
    "reward for mentioning something; only right less wrong can be due to the cue being right. Percent and points, or "
    "the measure’s own scale. " + HOLM
)
HEADS = ("Not told", "Told the cue", "Gain ↑", "p of the gain, Holm")
WRONG = ("Told a wrong cue", "Gain from it", "Right less wrong ↑", "p of right less wrong, Holm")
SHARE = "Share of the gain that a wrong cue gives · %"


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Upper)
    rows = [row for row in chosen(found.rows, by) if row.gain.scored]
    share = by == ALL
    wrong = any(row.wrong is not None for row in rows)
    lines = []
    for row in rows:
        kind, gap = kind_of(row.measure), kind_of(row.measure, difference=True)
        cells = _cells(finding, row, ((row.base, kind), (row.right, kind), (row.gain, gap)))
        cells.append(p_cell(finding, row.gain_test.adjusted, row.gain, row.key))
        if wrong:
            cells += _cells(finding, row, ((row.wrong, kind), (row.survives, gap), (row.beyond, gap)))
            cells.append(p_cell(finding, row.beyond_test.adjusted, row.beyond or row.gain, row.key))
        if wrong and share:
            cells += _cells(finding, row, ((row.share, "percent"),))
        lines.append(Line(finding.runs[0], "", (basis(row.basis), head(row.measure), over(row)), tuple(cells)))
    heads = (*HEADS, *(WRONG if wrong else ()), *((SHARE,) if wrong and share else ()))
    return [named(PartTable("upper", "Told the cue", HINT, ("Cues", "Measure", "Over"), heads, tuple(lines)))]


def _cells(finding: Finding, row: UpperRow, numbers: Sequence[tuple[Estimate | None, Kind]]) -> list[Cell]:
    return [cell(finding, e, row.key, kind, digits=digits_of(row.measure)) for e, kind in numbers]
