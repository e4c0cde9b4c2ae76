"""The figure of the funnel: a row for each stage."""

from __future__ import annotations

from overtone.display import axes as axes
from overtone.display.axes import Entry, Spot
from overtone.display.drawing import Drawing, series
from overtone.display.value_rows import Panel, Place, blocks, rows
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import FindingResult
from overtone.findings.funnel.compute import LABELS, Funnel, StageRow, rows_by_stage
from overtone.findings.funnel.funnel_stages import ORDER

TITLE = "Where the voice is lost"
PASSED, AFTER = "Cases that pass ●, corrected for guessing ○", "Passed the previous stage ●, failed it ○"
PANELS = (
    Panel(PASSED, "percent", "% of cases", 0.0, 1.0, number="%"),
    Panel(AFTER, "percent", "% that pass", 0.0, 1.0, number="difference"),
)
NOTHING = (
    "no case of these runs has a stage of the funnel: ask all three levels about the core ('overtone run … --levels "
    "1,2,3'), then 'overtone score RUN'"
)


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw how many cases pass each stage from hearing to sounding right, and whether a stage matters for the next.

    The second panel shows the pass rate among cases that passed the previous stage and among cases that failed it.
    """
    results = source.results_of("funnel", Funnel)
    chosen = {result.runs[0]: _rows(source, result) for result in results}
    shown = [stage for stage in ORDER if any(stage in rows_of for rows_of in chosen.values())]
    if not shown:
        raise NothingToDraw(NOTHING)
    parts = [
        (
            _capital(LABELS[stage]),
            [
                (f.runs[0], _places(source, f, row))
                for f in results
                if (row := chosen[f.runs[0]].get(stage)) is not None
            ],
        )
        for stage in shown
    ]
    conditions = sorted({row.condition for rows_of in chosen.values() for row in rows_of.values()})
    drawing, y = axes.page(
        width,
        TITLE,
        source.with_name(f"replies of {', '.join(conditions)}; lines are 95 % intervals, clustered by script."),
    )
    if any(row.chance is not None for rows_of in chosen.values() for row in rows_of.values()):
        y = axes.legend(drawing, 0, y, width, [Entry("blind guessing", "quiet", "dashed")])
    y = rows(drawing, y, blocks(width, source.labels, parts), PANELS)
    drawing.text = " ".join(s.text for f in results for s in f.sentences)
    signatures = list(dict.fromkeys(f.data.signature for f in results))
    return axes.close(drawing, y, _notes(shown, chosen, len(signatures)), " · ".join(signatures))


def _rows(source: FigureSource, result: FindingResult[Funnel]) -> dict[str, StageRow]:
    """Return stage → headline row, under the condition that represents the run."""
    return rows_by_stage(result.data, source.conditions[result.runs[0]], source.settings.input)


def _places(source: FigureSource, result: FindingResult[Funnel], row: StageRow) -> tuple[Place, Place | None]:
    number = result.runs[0]
    ink, shape = series(number)
    key = result.prefix + row.key
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
    gap = Spot(row.step.difference, f"{name}, given that it {before}: difference", f"{key}/step", kind="points")
    return reached, Place((given, otherwise), gap)


def _notes(shown: list[str], chosen: dict[int, dict[str, StageRow]], ways: int) -> list[str]:
    notes = []
    missing = [stage for stage in ORDER if stage not in shown]
    if missing:
        named = ", ".join(LABELS[stage] for stage in missing)
        notes.append(f"Not measured: {named}. 'overtone score RUN --judge SPEC' rates replies and voices.")
    skipping = {
        (ORDER.index(row.stage), row.step.after) for rows_of in chosen.values() for row in rows_of.values() if row.step
    }
    for at, after in sorted(skipping):
        if ORDER[at - 1] != after:
            notes.append(f"For “{LABELS[ORDER[at]]}” the previous stage is “{LABELS[after]}”.")
    if ways > 1:
        notes.append("The runs decide a stage in different ways (see the signatures): do not compare them there.")
    return notes


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
