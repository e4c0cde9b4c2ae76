"""Does a human voice make a difference?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.source.compute import Sources, cases_by_key, sentences, source
from overtone.findings.source.figure import draw
from overtone.findings.source.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import DIFFERENCE


def advice(data: Sources) -> list[str]:
    """Return the command to run if no script was asked in clips of two sources."""
    return [] if data.rows else ["to compare sources: run the same model on clips of two, e.g. synthesis and human"]


FINDING = Finding(
    title="Sources",
    question="Does a human voice make a difference?",
    order=60,
    takes="model",
    compute=lambda inputs: source(inputs.runs),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.runs),
    tables=make_tables,
    advice=advice,
    minimums=(DIFFERENCE,),
    breakdowns=BREAKDOWNS,
    draw=draw,
    clips="all",
)
