"""The figure of people's answers: means per run and question, and leads in votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from overtone.display import value_rows as grid
from overtone.display.axes import Kind, Spot, close, page
from overtone.display.drawing import Drawing, series
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import FindingResult
from overtone.findings.finding_cells import representing
from overtone.findings.people.compute import SIGNATURE, MeanRow, PairRow, People

R = TypeVar("R", MeanRow, PairRow)
NOTHING = (
    "no person has rated or compared replies of these runs; ask people with overtone studio new STUDY.toml --from RUN, "
    "then bring their answers into the runs with overtone studio sync STUDY.toml"
)


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw people's mean rating of each run per question, and the lead of one run over another in votes."""
    results = source.results_of("people", People)
    means = [(result, row) for result in results for row in _shown(source, result.data.means)]
    pairs = [(result, row) for result in results for row in _shown(source, result.data.pairs)]
    if not means and not pairs:
        raise NothingToDraw(NOTHING)
    drawing, y = page(
        width, "What people say", source.with_name("lines are 95 % intervals for other people and other scripts.")
    )
    groups = [*_ratings(source, width, means), *_leads(pairs)]
    y = grid.groups(drawing, y, groups)
    drawing.text = " ".join(sentence.text for result in results for sentence in result.sentences)
    return close(drawing, y, ["n: replies or pairs that people answered about."], SIGNATURE)


def _shown(source: FigureSource, rows: Sequence[R]) -> list[R]:
    """Return the rows of the conditions that stand for the runs."""
    wanted = representing([row.condition for row in rows], "overall", source.settings)
    return [row for row in rows if row.condition in wanted]


def _ratings(
    source: FigureSource, width: float, rows: Sequence[tuple[FindingResult[People], MeanRow]]
) -> Iterator[grid.Group]:
    """Yield a group for each scale: questions of one scale share an axis."""
    scales = dict.fromkeys((row.dimension.low, row.dimension.high) for _, row in rows)
    for low, high in scales:
        of_scale = [(r, row) for r, row in rows if (row.dimension.low, row.dimension.high) == (low, high)]
        questions = dict.fromkeys((row.study, row.dimension.key, row.dimension.label) for _, row in of_scale)
        kind: Kind = "percent" if (low, high) == (0, 1) else "number"
        parts = [
            (
                label,
                [
                    (row.run, (_place(source, result, row, kind),))
                    for result, row in of_scale
                    if (row.study, row.dimension.key) == (study, key)
                ],
            )
            for study, key, label in questions
        ]
        name = "percent" if kind == "percent" else "rating"
        yield (
            grid.blocks(width, source.labels, parts),
            [grid.Panel("Mean rating", kind, name, low, high, number="mean")],
        )


def _place(source: FigureSource, result: FindingResult[People], row: MeanRow, kind: Kind) -> grid.Place:
    ink, shape = series(row.run)
    name = f"{source.labels[row.run]}, {row.dimension.label}"
    return grid.Place((Spot(row.mean, name, result.prefix + row.key, ink, shape, kind=kind, digits=2),))


def _leads(rows: Sequence[tuple[FindingResult[People], PairRow]]) -> Iterator[grid.Group]:
    """Yield a group for votes, and one for comparisons on the scale from −3 to 3."""
    kinds: tuple[tuple[bool, str, Kind], ...] = (
        (False, "Lead in votes", "points"),
        (True, "Mean comparison, −3 to 3", "number"),
    )
    for graded, title, kind in kinds:
        of_kind = [(result, row) for result, row in rows if row.graded == graded]
        if not of_kind:
            continue
        lines = tuple(
            grid.Row(f"{row.runs[0]} over {row.runs[1]}", (grid.Place((_lead(result, row, kind),)),))
            for result, row in of_kind
        )
        yield [grid.Block("", lines)], [grid.Panel(title, kind, kind, zero=0.0, number="lead")]


def _lead(result: FindingResult[People], row: PairRow, kind: Kind) -> Spot:
    ink, shape = series(0)
    name = f"{row.runs[0]} over {row.runs[1]}, {row.dimension}"
    return Spot(row.lead, name, result.prefix + row.key, ink, shape, kind=kind, digits=2)
