"""Where between hearing and a fitting reply is the voice lost?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.funnel.compute import LABELS, Funnel, cases_by_key, funnel
from overtone.findings.funnel.figure import draw
from overtone.findings.funnel.funnel_sentences import sentences
from overtone.findings.funnel.funnel_stages import DEFAULT, NAMES
from overtone.findings.funnel.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import DIFFERENCE, LARGEST_LOSS, RATE

JUDGE = "overtone score RUN --judge SPEC"
MISSING = {
    "words": "run with --levels 1, which asks for transcripts",
    "cue": "run with --levels 1, which asks about the cue",
    "reasoned": "run with --levels 2",
    "used": f"run with --levels 3, and have the replies judged: {JUDGE}",
    "sounded": f"have spoken replies judged by a model that hears: {JUDGE}",
}


def advice(data: Funnel) -> list[str]:
    """Return the command that supplies data for each stage without any case."""
    measured = {row.stage for row in data.rows if row.by == "overall" and row.reached.scored}
    return [f"to measure who {LABELS[stage]}: {how}" for stage, how in MISSING.items() if stage not in measured]


FINDING = Finding(
    title="The funnel",
    question="Where between hearing and a fitting reply is the voice lost?",
    order=10,
    takes="run",
    compute=lambda inputs: funnel(inputs.run, inputs.options),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.run, inputs.options),
    tables=make_tables,
    advice=advice,
    minimums=(RATE, DIFFERENCE, LARGEST_LOSS),
    breakdowns=BREAKDOWNS,
    draw=draw,
    figures=("cues",),
    options=DEFAULT,
    keys={name: {"cue": cue} for cue, name in NAMES.items()},
)
