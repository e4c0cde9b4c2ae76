"""The funnel: how many cases pass each stage from hearing to sounding right, and whether a stage matters for the next.

Beside the share that passes stands the share among the cases that passed the stage before, against those that did not.
"""

from __future__ import annotations

from overtone.analysis import said
from overtone.analysis.findings import Finding
from overtone.analysis.funnel import LABELS, Funnel, StageRow
from overtone.analysis.funnel_stages import ORDER
from overtone.report.drawing import Drawing, series
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _axes as axes
from overtone.report.figures._axes import Entry, Spot
from overtone.report.figures._rows import Panel, Place, blocks, rows

TITLE = "Where the voice is lost"
PASSED, AFTER = "Cases that pass ●, corrected for guessing ○", "Passed the stage before ●, failed it ○"
PANELS = (
    Panel(PASSED, "percent", "% of cases", 0.0, 1.0, number="%"),
    Panel(AFTER, "percent", "% that pass", 0.0, 1.0, number="difference"),
)
NOTHING = (
    "no case of these runs has a stage of the funnel: ask all three levels about the core ('overtone run … --levels "
    "1,2,3'), then 'overtone score RUN'"
)


def draw(source: Source, width: float) -> Drawing:
    found = source.findings("funnel")
    chosen = {finding.runs[0]: _rows(source, finding) for finding in found}
    shown = [stage for stage in ORDER if any(stage in of for of in chosen.values())]
    if not shown:
        raise NothingToDraw(NOTHING)
    parts = [
        (
            _capital(LABELS[stage]),
            [(f.runs[0], _places(source, f, row)) for f in found if (row := chosen[f.runs[0]].get(stage)) is not None],
        )
        for stage in shown
    ]
    told = sorted({row.condition for of in chosen.values() for row in of.values()})
    drawing, y = axes.page(
        width, TITLE, source.told(f"replies of {', '.join(told)}; lines are 95 % intervals, clustered by script.")
    )
    if any(row.chance is not None for of in chosen.values() for row in of.values()):
        y = axes.legend(drawing, 0, y, width, [Entry("blind guessing", "quiet", "dashed")])
    y = rows(drawing, y, blocks(width, source.labels, parts), PANELS)
    drawing.text = " ".join(s.text for f in found for s in f.sentences)
    signatures = list(dict.fromkeys(_funnel(f).signature for f in found))
    return axes.close(drawing, y, _notes(shown, chosen, len(signatures)), " · ".join(signatures))


def _funnel(finding: Finding) -> Funnel:
    assert isinstance(finding.found, Funnel)
    return finding.found


def _rows(source: Source, finding: Finding) -> dict[str, StageRow]:
    """The headline's rows under the condition that stands for the run, of the stages it has."""
    condition = source.conditions[finding.runs[0]]
    every = _funnel(finding).rows
    told = condition or next((r.condition for r in every if r.condition.endswith(f"/{source.settings.input}")), "")
    rows = said.headline([row for row in every if row.condition == told])
    return {row.stage: row for row in reversed(rows) if row.reached.scored}


def _places(source: Source, finding: Finding, row: StageRow) -> tuple[Place, Place | None]:
    number = finding.runs[0]
    ink, shape = series(number)
    key = finding.prefix + row.key
    name = f"{source.labels[number]}, {LABELS[row.stage]}"
    spots = [Spot(row.reached, name, key, ink, shape)]
    if row.corrected is not None:
        spots.append(Spot(row.corrected, f"{name}, corrected for guessing", key, ink, shape, hollow=True))
    reached = Place(tuple(spots), chance=row.chance)
    if row.step is None:
        return reached, None
    before = LABELS[row.step.after]
    given = Spot(row.step.given, f"{name}, of cases that {before}", f"{key}/given", ink, shape)
    otherwise = Spot(row.step.otherwise, f"{name}, of cases that did not", f"{key}/otherwise", ink, shape, hollow=True)
    apart = Spot(row.step.difference, f"{name}, given that it {before}: difference", f"{key}/step", kind="points")
    return reached, Place((given, otherwise), apart)


def _notes(shown: list[str], chosen: dict[int, dict[str, StageRow]], ways: int) -> list[str]:
    notes = []
    lacking = [stage for stage in ORDER if stage not in shown]
    if lacking:
        absent = ", ".join(LABELS[stage] for stage in lacking)
        notes.append(f"Not measured: {absent}. 'overtone score RUN --judge SPEC' rates replies and voices.")
    skipping = {(ORDER.index(row.stage), row.step.after) for of in chosen.values() for row in of.values() if row.step}
    for at, after in sorted(skipping):
        if ORDER[at - 1] != after:
            notes.append(f"For “{LABELS[ORDER[at]]}” the stage before is “{LABELS[after]}”.")
    if ways > 1:
        notes.append("The runs differ in how a stage is told (see the signatures): there they do not compare.")
    return notes


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
