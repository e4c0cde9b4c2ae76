"""The table of the upper bound: replies without the cue, with the cue stated, with a wrong one, and the differences."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import (
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
from overtone.findings.upper.compute import Upper, UpperRow
from overtone.results.measures import Estimate

BREAKDOWNS = ("overall", "dimension", "cue")
HINT = (
    "The same clips without the cue, with the cue stated in words, and with a wrong cue stated. A gain from a wrong "
    "cue rewards its mention; only right minus wrong can be due to the cue being right. Percent and points, or the "
    "measure’s "
    "own scale. " + HOLM
)
HEADS = ("Cue not stated", "Cue stated", "Gain ↑", "p of the gain, Holm")
WRONG = ("Wrong cue stated", "Gain from it", "Right minus wrong ↑", "p of right minus wrong, Holm")
SHARE = "Share of the gain that a wrong cue gives · %"


def make_tables(result: FindingResult[Upper], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make one table: a line for each measure and selection."""
    rows = [row for row in chosen(result.data.rows, by) if row.gain.scored]
    share = by == ALL
    wrong = any(row.wrong is not None for row in rows)
    lines = []
    for row in rows:
        kind, gap = kind_of(row.measure), kind_of(row.measure, difference=True)
        cells = _cells(result, row, ((row.base, kind), (row.right, kind), (row.gain, gap)))
        cells.append(p_cell(result, row.gain_test.adjusted, row.gain, row.key))
        if wrong:
            cells += _cells(result, row, ((row.wrong, kind), (row.survives, gap), (row.beyond, gap)))
            cells.append(p_cell(result, row.beyond_test.adjusted, row.beyond or row.gain, row.key))
        if wrong and share:
            cells += _cells(result, row, ((row.share, "percent"),))
        lines.append(Line(result.runs[0], "", (basis(row.basis), head(row.measure), over(row)), tuple(cells)))
    heads = (*HEADS, *(WRONG if wrong else ()), *((SHARE,) if wrong and share else ()))
    return [named(PartTable("upper", "With the cue stated", HINT, ("Cues", "Measure", "Over"), heads, tuple(lines)))]


def _cells(result: FindingResult[Upper], row: UpperRow, numbers: Sequence[tuple[Estimate | None, Kind]]) -> list[Cell]:
    return [cell(result, e, row.key, kind, digits=digits_of(row.measure)) for e, kind in numbers]
