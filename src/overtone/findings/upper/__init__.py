"""What would perfect hearing give?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.upper.compute import RIGHT, WRONG, Upper, cases_by_key, sentences, upper
from overtone.findings.upper.figure import draw
from overtone.findings.upper.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import DIFFERENCE


def advice(data: Upper) -> list[str]:
    """Return the command to run if no prompt stated the true cue, or none stated a wrong cue."""
    run = f"run with --prompt enhance,{RIGHT},{WRONG}"
    if not data.rows:
        return [f"to measure the effect of a stated cue: {run}"]
    if all(row.wrong is None for row in data.rows):
        return [f"to separate the effect of a correct cue from that of any cue: {run}"]
    return []


FINDING = Finding(
    title="With the cue stated",
    question="What would perfect hearing give?",
    order=70,
    takes="model",
    compute=lambda inputs: upper(inputs.runs, input=inputs.settings.input),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.runs, input=inputs.settings.input),
    tables=make_tables,
    advice=advice,
    minimums=(DIFFERENCE,),
    breakdowns=BREAKDOWNS,
    draw=draw,
    clips="shared",
)
