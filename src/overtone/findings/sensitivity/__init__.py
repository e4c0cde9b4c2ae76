"""Does the answer move with the voice, and stay when nothing changed?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.sensitivity.compute import Counterfactual, cases_by_key, counterfactual, sentences
from overtone.findings.sensitivity.figure import draw
from overtone.findings.sensitivity.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import DIFFERENCE, RATE


def advice(data: Counterfactual) -> list[str]:
    """Return the command that supplies data for each of the four parts without data."""
    lines = []
    if not any(row.sensitivity.scored for row in data.sensitivity):
        lines.append("to measure whether answers move: run --levels 1,2 with all styles")
    if not any(row.stays.scored for row in data.specificity):
        lines.append("to measure whether answers stay: run with --repeats 2, or with a benchmark’s control clips")
    if not any(row.detection.hit.scored for row in data.false_cues):
        lines.append("to measure detection of cues: run a benchmark with false-cue questions (--parts false-cue)")
    if not any(row.style.squares for row in data.replies):
        lines.append("to measure whether replies follow the voice: run --levels 3 with all styles")
    return lines


FINDING = Finding(
    title="Same words, another voice",
    question="Does the answer move with the voice, and stay when nothing changed?",
    order=20,
    takes="run",
    compute=lambda inputs: counterfactual(inputs.run),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.run),
    tables=make_tables,
    advice=advice,
    minimums=(RATE, DIFFERENCE),
    breakdowns=BREAKDOWNS,
    draw=draw,
)
