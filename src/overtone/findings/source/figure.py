"""The figure of sources: synthesised beside human voices."""

from __future__ import annotations

from overtone.display import value_rows as grid
from overtone.display.axes import Entry, Kind, Spot, close, legend, page
from overtone.display.drawing import Drawing, series
from overtone.findings.figure_source import FigureSource, NothingToDraw, axes_by_scale
from overtone.findings.finding import FindingResult
from overtone.findings.source.compute import SIGNATURE, SourceRow, Sources
from overtone.results import measure_names

RATED = (measure_names.C1, measure_names.C4, measure_names.VES, "nisqa_mos", "utmos")
MANY = 3  # with more models, only the measures of LEAD are shown
LEAD = ("wer_raw", "voice_accuracy", "reasoning_accuracy", measure_names.C4, measure_names.VES)


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw each measure on the same scripts from two sources, and the paired difference.

    Percentages, ratings and other measures have separate axes. With a single run, all measures are drawn together; with
    several runs, each measure has its own panel.
    """
    results = source.results_of("source", Sources)
    shown = [(result, row) for result in results for row in _overall(result, source)]
    if not shown:
        why = "; ".join(dict.fromkeys(note.rstrip(".") for f in results for note in f.data.notes))
        raise NothingToDraw(
            f"no script was asked in two sources ({why}): run the synthesised and the human clips of a benchmark, in "
            "one run or in two runs of the same model"
        )
    if len({f.runs for f, _ in shown}) > MANY:
        lead = [(f, row) for f, row in shown if row.measure in LEAD]
        shown = lead or shown
    drawing, y = page(
        width,
        "The same scripts from two sources",
        "Each measure on the scripts that both sources have, and the paired difference by case. Lines are 95 % "
        "intervals, clustered by script.",
    )
    sources = list(dict.fromkeys(name for _, row in shown for name in row.sources))
    looks = {name: series(number) for number, name in enumerate(sources)}
    y = legend(drawing, 0, y, width, [Entry(name, *looks[name], hollow=n > 0) for n, name in enumerate(sources)])
    y = grid.groups(drawing, y, _groups(shown, source, looks))
    drawing.text = " ".join(s.text for f in results for s in f.sentences[:2])
    scripts = max(f.data.scripts for f in results)
    notes = [
        f"At most {scripts:,} scripts are in both sources. n: cases. Recordings of people differ in more than the "
        "voice: microphone, room, accent."
    ]
    notes += [note for f in results for note in f.data.notes]
    if any(row.basis == "unvalidated" for _, row in shown):
        notes.append("Over unvalidated cues if a run has no others.")
    return close(drawing, y, notes, SIGNATURE)


def _groups(
    shown: list[tuple[FindingResult[Sources], SourceRow]], source: FigureSource, looks: dict[str, tuple[str, str]]
) -> list[grid.Group]:
    pairs = list(dict.fromkeys(row.sources for _, row in shown))
    first, second = pairs[0][0], pairs[0][1] if len(pairs) == 1 else "the other"
    alone = len({f.runs for f, _ in shown}) == 1
    made: list[grid.Group] = []
    for kind, gap, unit, measures in axes_by_scale(list(dict.fromkeys(row.measure for _, row in shown)), RATED):
        blocks = []
        for heads in [measures] if alone else [[measure] for measure in measures]:
            rows = []
            for f, row in ((f, row) for f, row in shown if row.measure in heads):
                name = _measure(row.measure) if alone else source.label(f)
                name = name if len(pairs) == 1 else f"{name}, {row.sources[1]}"
                rows.append(_row(name, f, row, source, looks, kind, gap))
            blocks.append(grid.Block("" if alone else _measure(heads[0]), tuple(rows)))
        panels = [
            grid.Panel("Both sources", kind, unit, number=first),
            grid.Panel(f"{first} minus {second}", gap, "points" if gap == "points" else "difference", zero=0.0),
        ]
        made.append((blocks, panels))
    return made


def _overall(result: FindingResult[Sources], source: FigureSource) -> list[SourceRow]:
    """Return one overall row for each measure, under the condition that represents the runs. Rows over unvalidated
    cues are used only if there are no other rows."""
    wanted = {f"task/{source.settings.input}", *(source.conditions[n] for n in result.runs)}
    rows = [row for row in result.data.rows if row.by == "overall" and row.condition in wanted]
    rows = [row for row in rows if row.difference.value is not None]
    return [row for row in rows if row.basis != "unvalidated"] or rows


def _measure(name: str) -> str:
    return measure_names.short(name) + (" ↓" if measure_names.about(name).better == "lower" else "")


def _row(
    label: str, result: FindingResult[Sources], row: SourceRow, source: FigureSource, looks: dict[str, tuple[str, str]],
    kind: Kind, gap: Kind,
) -> grid.Row:  # fmt: skip
    key = result.prefix + row.key
    who = f"{source.label(result)}, {measure_names.short(row.measure)}"
    spots = []
    for side, e, end in ((row.sources[0], row.first, "first"), (row.sources[1], row.second, "second")):
        ink, shape = looks[side]
        spots.append(Spot(e, f"{who}, {side}", f"{key}/{end}", ink, shape, end == "second", kind))
    difference = Spot(row.difference, f"{who}, {row.sources[0]} minus {row.sources[1]}", key, "ink", kind=gap)
    return grid.Row(label, (grid.Place(tuple(spots), joined=True), grid.Place((difference,))))
