"""What perfect hearing would give, as a table: told nothing, told the cue, told a wrong one, and the differences."""

from __future__ import annotations

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.measures import Estimate
from overtone.analysis.upper import Upper
from overtone.report.findings._cells import (
    ALL,
    DEFAULT,
    Kind,
    basis,
    cell,
    chosen,
    digits_of,
    head,
    kind_of,
    named,
    over,
)
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall", "dimension", "cue")
HINT = (
    "The same clips with the cue told in words, not told, and with a wrong cue told. What a wrong cue gives too is a "
    "reward for mentioning something; only right less wrong can be due to the cue being right. Percent and points, or "
    "the measure’s own scale."
)
HEADS = ("Not told", "Told the cue", "Gain ↑")
WRONG = ("Told a wrong cue", "Gain from it", "Right less wrong ↑")
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
        digits = digits_of(row.measure)
        told: list[tuple[Estimate | None, Kind]] = [(row.base, kind), (row.right, kind), (row.gain, gap)]
        if wrong:
            told += [(row.wrong, kind), (row.survives, gap), (row.beyond, gap)]
        if wrong and share:
            told.append((row.share, "percent"))
        cells: tuple[Cell, ...] = tuple(cell(finding, e, row.key, k, digits=digits) for e, k in told)
        lines.append(Line(finding.runs[0], "", (basis(row.basis), head(row.measure), over(row)), cells))
    heads = (*HEADS, *(WRONG if wrong else ()), *((SHARE,) if wrong and share else ()))
    return [named(PartTable("upper", "Told the cue", HINT, ("Cues", "Measure", "Over"), heads, tuple(lines)))]
