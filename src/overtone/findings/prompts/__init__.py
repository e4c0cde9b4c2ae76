"""How much does the prompt matter?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.prompts.compute import Prompts, cases_by_key, prompts, sentences
from overtone.findings.prompts.figure import draw
from overtone.findings.prompts.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import BEST_PROMPT, RATE


def advice(data: Prompts) -> list[str]:
    """Return the command to run if there are fewer than two prompts, or no judged replies."""
    if len({row.prompt for row in data.rows}) < 2:
        return ["to compare prompts: run with --prompt zero,basic,enhance"]
    return [] if data.choices else ["to choose a best prompt: have the replies judged: overtone score RUN --judge SPEC"]


FINDING = Finding(
    title="Prompts",
    question="How much does the prompt matter?",
    order=50,
    takes="run",
    compute=lambda inputs: prompts(inputs.run, input=inputs.settings.input),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.run, input=inputs.settings.input),
    tables=make_tables,
    advice=advice,
    minimums=(BEST_PROMPT, RATE),
    breakdowns=BREAKDOWNS,
    draw=draw,
)
