"""Where would this model rank among the models of EchoMind's paper?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.leaderboard.compute import Leaderboard, cases_by_key, leaderboard, sentences
from overtone.findings.leaderboard.figure import draw
from overtone.findings.leaderboard.tables import BREAKDOWNS, make_tables
from overtone.stats.minimums import RATE

SUPPLIES = {"lb1": "run with --levels 1,2"}  # board that needs no judge → advice


def advice(data: Leaderboard) -> list[str]:
    """Return one command for each board on which no run has a place. The command's results put a run on the board."""
    lines = []
    has_runs = any(entrant.run is not None for entrant in data.entrants)
    for board in data.boards if has_runs else ():
        if all(place.entrant.run is None for place in board.places):
            supply = SUPPLIES.get(board.key, "have the replies judged: overtone score RUN --judge SPEC")
            lines.append(f"to rank on the board “{board.title}”: {supply}")
    return lines


FINDING = Finding(
    title="Among published models",
    question="Where would this model rank among the models of the paper?",
    order=80,
    takes="all",
    compute=lambda inputs: leaderboard(inputs.runs, prompt=inputs.settings.prompt, input=inputs.settings.input),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.runs, prompt=inputs.settings.prompt, input=inputs.settings.input),
    tables=make_tables,
    advice=advice,
    minimums=(RATE,),
    breakdowns=BREAKDOWNS,
    draw=draw,
    figures=("radar",),
    needs_runs=False,
)
