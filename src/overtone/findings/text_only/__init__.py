"""What does the audio add to the words?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.text_only.compute import TextOnly, cases_by_key, sentences, text_only
from overtone.findings.text_only.figure import draw
from overtone.findings.text_only.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import DIFFERENCE, RATE


def advice(data: TextOnly) -> list[str]:
    """Return the run to add if no run shows which questions can be answered from the words alone."""
    if data.unsolved:
        return []
    return ["to find the questions that the words give away: add a run that reads them, or a deaf run (--deaf RUN)"]


FINDING = Finding(
    title="The words alone",
    question="What does the audio add to the words?",
    order=30,
    takes="run",
    compute=lambda inputs: text_only(inputs.run, inputs.others, deaf=inputs.deaf),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.run, inputs.others, deaf=inputs.deaf),
    tables=make_tables,
    advice=advice,
    minimums=(DIFFERENCE, RATE),
    breakdowns=BREAKDOWNS,
    draw=draw,
    clips="shared",
    reads_other_runs=True,
)
