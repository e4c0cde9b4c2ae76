"""Synthesised against human voices: each measure on the same scripts from both, and the paired difference."""

from __future__ import annotations

from overtone.analysis import named
from overtone.analysis.findings import Finding
from overtone.analysis.source import SIGNATURE, SourceRow, Sources
from overtone.report.drawing import Drawing, series
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _rows as grid
from overtone.report.figures._axes import Entry, Kind, Spot, close, legend, page

RATED = (named.C1, named.C4, named.VES, "nisqa_mos", "utmos")
MANY = 3  # models from which only the measures that matter most are shown
LEAD = ("wer_raw", "voice_accuracy", "reasoning_accuracy", named.C4, named.VES)


def draw(source: Source, width: float) -> Drawing:
    """Percentages, ratings and other measures on axes of their own; one run's measures together, else run by run."""
    found = source.findings("source")
    shown = [(finding, row) for finding in found for row in _overall(finding, source)]
    if not shown:
        why = "; ".join(dict.fromkeys(note.rstrip(".") for f in found for note in f.notes))
        raise NothingToDraw(
            f"no script was asked in two sources ({why}): run the synthesised and the human clips of a benchmark, into "
            "one run or into two of the same model"
        )
    if len({f.runs for f, _ in shown}) > MANY:
        lead = [(f, row) for f, row in shown if row.measure in LEAD]
        shown = lead or shown
    drawing, y = page(
        width,
        "The same scripts in another voice",
        "Each measure on the scripts that both sources have, and the paired difference, case by case, with its 95 % "
        "interval by script.",
    )
    sources = list(dict.fromkeys(name for _, row in shown for name in row.sources))
    looks = {name: series(number) for number, name in enumerate(sources)}
    y = legend(drawing, 0, y, width, [Entry(name, *looks[name], hollow=n > 0) for n, name in enumerate(sources)])
    y = grid.groups(drawing, y, _groups(shown, source, looks))
    drawing.text = " ".join(s.text for f in found for s in f.sentences[:2])
    scripts = max(f.found.scripts for f in found if isinstance(f.found, Sources))
    notes = [f"At most {scripts:,} scripts are in both sources. n: cases. People's recordings differ in more than the "
             "voice: microphone, room, accent."]  # fmt: skip
    notes += [note for f in found for note in f.notes]
    if any(row.basis == "unvalidated" for _, row in shown):
        notes.append("Over cues that are not validated, where there are no others.")
    return close(drawing, y, notes, SIGNATURE)


def _groups(
    shown: list[tuple[Finding, SourceRow]], source: Source, looks: dict[str, tuple[str, str]]
) -> list[grid.Group]:
    pairs = list(dict.fromkeys(row.sources for _, row in shown))
    first, second = pairs[0][0], pairs[0][1] if len(pairs) == 1 else "the other"
    alone = len({f.runs for f, _ in shown}) == 1
    made: list[grid.Group] = []
    for kind, gap, unit, measures in _kinds(shown):
        blocks = []
        for heads in [measures] if alone else [[measure] for measure in measures]:
            rows = []
            for f, row in ((f, row) for f, row in shown if row.measure in heads):
                name = _measure(row.measure) if alone else _who(f, source)
                name = name if len(pairs) == 1 else f"{name}, {row.sources[1]}"
                rows.append(_row(name, f, row, source, looks, kind, gap))
            blocks.append(grid.Block("" if alone else _measure(heads[0]), tuple(rows)))
        panels = [
            grid.Panel("Both sources", kind, unit, number=first),
            grid.Panel(f"{first} less {second}", gap, "points" if gap == "points" else "difference", zero=0.0),
        ]
        made.append((blocks, panels))
    return made


def _overall(finding: Finding, source: Source) -> list[SourceRow]:
    """One row for each measure: under the condition that stands for the runs, of validated cues where there are any."""
    assert isinstance(finding.found, Sources)
    wanted = {f"task/{source.settings.input}", *(source.conditions[n] for n in finding.runs)}
    rows = [row for row in finding.found.rows if row.by == "overall" and row.condition in wanted]
    rows = [row for row in rows if row.difference.value is not None]
    return [row for row in rows if row.basis != "unvalidated"] or rows


def _kinds(shown: list[tuple[Finding, SourceRow]]) -> list[tuple[Kind, Kind, str, list[str]]]:
    """(kind, kind of a difference, unit, measures) of each axis."""
    names = list(dict.fromkeys(row.measure for _, row in shown))
    percent = [n for n in names if named.is_percent(n)]
    rated = [n for n in names if n in RATED]
    found: list[tuple[Kind, Kind, str, list[str]]] = []
    if percent:
        found.append(("percent", "points", "percent", percent))
    if rated:
        found.append(("number", "number", "rating, 1 to 5", rated))
    found += [("number", "number", named.short(n), [n]) for n in names if n not in percent and n not in rated]
    return found


def _measure(name: str) -> str:
    return named.short(name) + (" ↓" if named.about(name).better == "lower" else "")


def _who(finding: Finding, source: Source) -> str:
    return " + ".join(dict.fromkeys(source.labels[n] for n in finding.runs))


def _row(
    label: str, finding: Finding, row: SourceRow, source: Source, looks: dict[str, tuple[str, str]], kind: Kind,
    gap: Kind,
) -> grid.Row:  # fmt: skip
    key = finding.prefix + row.key
    who = f"{_who(finding, source)}, {named.short(row.measure)}"
    spots = []
    for side, e, end in ((row.sources[0], row.first, "first"), (row.sources[1], row.second, "second")):
        ink, shape = looks[side]
        spots.append(Spot(e, f"{who}, {side}", f"{key}/{end}", ink, shape, end == "second", kind))
    difference = Spot(row.difference, f"{who}, {row.sources[0]} less {row.sources[1]}", key, "ink", kind=gap)
    return grid.Row(label, (grid.Place(tuple(spots), joined=True), grid.Place((difference,))))
