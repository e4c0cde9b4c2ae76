"""Do models that hear better also reason and reply better?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.levels.compute import Levels, cases_by_key, levels, sentences
from overtone.findings.levels.figure import draw
from overtone.findings.levels.tables import BREAKDOWNS, make_tables
from overtone.results.measure_names import C4, VES
from overtone.stats.minimums import CORRELATION


def advice(data: Levels) -> list[str]:
    """Return advice if there are too few models, or no judged replies."""
    models = {row.models for row in data.rows if row.level == "model"}
    lines = []
    if max(models, default=0) < 3:
        lines.append("to compare models: give runs of at least three models (eight for an interval)")
    if not any(measure in data.measures for measure in (C4, VES)):
        lines.append("to include replies: have them judged: overtone score RUN --judge SPEC")
    return lines


FINDING = Finding(
    title="Levels together",
    question="Do models that hear better also reason and reply better?",
    order=40,
    takes="all",
    compute=lambda inputs: levels(inputs.runs, prompt=inputs.settings.prompt, input=inputs.settings.input),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.runs, prompt=inputs.settings.prompt, input=inputs.settings.input),
    tables=make_tables,
    advice=advice,
    minimums=(CORRELATION,),
    breakdowns=BREAKDOWNS,
    draw=draw,
    clips="shared",
    one_benchmark=True,
)
