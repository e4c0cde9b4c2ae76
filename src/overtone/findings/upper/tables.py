"""The table of the upper bound: replies without a cue, with the true cue, with a wrong cue, and the differences."""

from __future__ import annotations

from functools import partial

from overtone.display.table_data import Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import (
    ALL,
    DEFAULT,
    HOLM,
    basis,
    cell,
    chosen,
    head,
    measure_cell,
    named,
    over,
    p_cell,
)
from overtone.findings.upper.compute import Upper

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
        value = partial(measure_cell, result, row.measure, key=row.key)
        cells = [value(row.base), value(row.right), value(row.gain, difference=True)]
        cells.append(p_cell(result, row.gain_test.adjusted, row.gain, row.key))
        if wrong:
            cells += [value(row.wrong), value(row.survives, difference=True), value(row.beyond, difference=True)]
            cells.append(p_cell(result, row.beyond_test.adjusted, row.beyond or row.gain, row.key))
        if wrong and share:
            cells.append(cell(result, row.share, row.key))
        lines.append(Line(result.runs[0], "", (basis(row.basis), head(row.measure), over(row)), tuple(cells)))
    heads = (*HEADS, *(WRONG if wrong else ()), *((SHARE,) if wrong and share else ()))
    return [named(PartTable("upper", "With the cue stated", HINT, ("Cues", "Measure", "Over"), heads, tuple(lines)))]
