"""What do people say, and does the judge agree with them?"""

from __future__ import annotations

from overtone.findings.finding import Finding
from overtone.findings.people.compute import People, cases_by_key, people, sentences
from overtone.findings.people.figure import draw
from overtone.findings.people.tables import make_tables
from overtone.stats.minimums import DIFFERENCE, PEOPLE


def advice(data: People) -> list[str]:
    """Return the commands that bring people's labels into a run."""
    if data.means or data.pairs or data.heard:
        return []
    return [
        "no person has labelled these replies: ask people with overtone studio new STUDY.toml --from RUN, then bring "
        "their answers into the runs with overtone studio sync STUDY.toml"
    ]


FINDING = Finding(
    title="People",
    question="What do people say of the replies, and does the judge agree with them?",
    order=85,
    takes="all",
    compute=lambda inputs: people(inputs.runs),
    sentences=sentences,
    cases=lambda inputs: cases_by_key(inputs.runs),
    tables=make_tables,
    advice=advice,
    minimums=(PEOPLE, DIFFERENCE),
    draw=draw,
)
