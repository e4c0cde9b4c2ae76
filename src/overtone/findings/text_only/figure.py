"""The figure of text-only: audio beside transcripts."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.display import axes as axes
from overtone.display.axes import Entry, Kind, Spot
from overtone.display.drawing import Drawing, series
from overtone.display.value_rows import Panel, Place, blocks, groups
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import FindingResult
from overtone.findings.text_only.compute import TextOnly, TextRow, UnsolvedRow
from overtone.results.measure_names import about, short
from overtone.results.significance import p_value
from overtone.results.wording import headline

TITLE = "What the audio adds to the words"
NOTHING = (
    "no item of these runs was answered with audio and with its transcript: run with --input audio,transcript, or "
    "add a run of the same model with --input transcript"
)
BOTH, LESS = "With audio ●, with the transcript alone ○", "Audio minus transcript"
SCALES: tuple[tuple[tuple[str, ...], Panel, Panel], ...] = (  # measures that share their axes
    (
        ("voice_accuracy", "reasoning_accuracy"),
        Panel(BOTH, "percent", "%", 0.0, 1.0, weight=1.3, number="with audio, %"),
        Panel(LESS, "points", "points", zero=0.0, number="points"),
    ),
    (
        ("cspeechrel", "ves"),
        Panel(BOTH, "number", "rating", 1.0, 5.0, weight=1.3, number="with audio"),
        Panel(LESS, "number", "difference", zero=0.0),
    ),
    (
        ("style_margin",),  # without a judge
        Panel(BOTH, "number", "style margin", zero=0.0, weight=1.3, number="with audio"),
        Panel(LESS, "number", "difference", zero=0.0),
    ),
)
LEFT = (
    Panel("Questions no text-only run gets right", "percent", "% correct with audio", 0.0, 1.0, weight=1.3, number="%"),
    Panel("Corrected for guessing", "percent", "%", zero=0.0, number="%"),
)

Parts = list[tuple[str, list[tuple[int, tuple[Place | None, ...]]]]]


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw each measure with audio and with the transcript alone, and the paired difference."""
    results = source.results_of("text-only", TextOnly)
    shown = [(_parts(source, results, names), panels) for names, *panels in SCALES]
    if shown[1][0]:
        del shown[2]
    unsolved = _unsolved(source, results)
    shown.append((unsolved, list(LEFT)))
    if not any(parts for parts, _ in shown):
        raise NothingToDraw(NOTHING)
    drawing, y = axes.page(
        width,
        TITLE,
        source.with_name("the same items and model both ways; lines are 95 % intervals, clustered by script."),
    )
    chances = [place.chance for _, of_runs in unsolved for _, places in of_runs for place in places if place]
    if any(chance is not None for chance in chances):
        y = axes.legend(drawing, 0, y, width, [Entry("blind guessing", "quiet", "dashed")])
    y = groups(drawing, y, [(blocks(width, source.labels, parts), panels) for parts, panels in shown])
    drawing.text = " ".join(s.text for f in results for s in f.sentences)
    signatures = dict.fromkeys(f.data.signature for f in results)
    missing = [source.labels[f.runs[0]] for f in results if not f.data.rows]
    notes = [f"Without answers to transcripts: {', '.join(missing)}."] if missing else []
    return axes.close(drawing, y, notes, " · ".join(signatures))


def _parts(source: FigureSource, results: Sequence[FindingResult[TextOnly]], names: Sequence[str]) -> Parts:
    parts: Parts = []
    for name in names:
        of_runs: list[tuple[int, tuple[Place | None, ...]]] = []
        label = ""
        for result in results:
            number = result.runs[0]
            prompt = source.conditions[number].partition("/")[0]
            mine = [
                row
                for row in result.data.rows
                if row.measure == name and row.prompt in ("task", prompt) and row.difference.scored
            ]
            for row in headline(mine)[:1]:
                of_runs.append((number, _places(source, result, row)))
                label = label or row.label
        if of_runs:
            parts.append((label, of_runs))
    return parts


def _places(source: FigureSource, result: FindingResult[TextOnly], row: TextRow) -> tuple[Place, Place]:
    number = result.runs[0]
    ink, shape = series(number)
    key, name = result.prefix + row.key, f"{source.labels[number]}, {row.label}"
    kind, digits = about(row.measure).shown, about(row.measure).digits
    audio = Spot(row.audio, f"{name}, with audio", key, ink, shape, kind=kind, digits=digits)
    text = Spot(row.text, f"{name}, transcript alone", key, ink, shape, hollow=True, kind=kind, digits=digits)
    gap: Kind = "points" if kind == "percent" else "number"
    p = f"{p_value(row.adjusted)} after Holm correction for {row.tests:,} tests"
    gain = Spot(row.difference, f"{name}, audio minus transcript, {p}", key, ink, shape, kind=gap, digits=digits)
    return Place((audio, text)), Place((gain,))


def _unsolved(source: FigureSource, results: Sequence[FindingResult[TextOnly]]) -> Parts:
    parts: Parts = []
    for name in ("voice_accuracy", "reasoning_accuracy"):
        of_runs: list[tuple[int, tuple[Place | None, ...]]] = []
        for result in results:
            mine = [row for row in result.data.unsolved if row.measure == name and row.accuracy.scored]
            for row in headline(mine)[:1]:
                of_runs.append((result.runs[0], _left(source, result, row)))
        if of_runs:
            parts.append((short(name), of_runs))
    return parts


def _left(source: FigureSource, result: FindingResult[TextOnly], row: UnsolvedRow) -> tuple[Place, Place]:
    number = result.runs[0]
    ink, shape = series(number)
    name = f"{source.labels[number]}, {row.label}, {row.unsolved} of {row.questions} questions no text-only run solves"
    key = result.prefix + row.key
    corrected = Spot(row.corrected, f"{name}, corrected for guessing", key, ink, shape, hollow=True)
    return Place((Spot(row.accuracy, name, key, ink, shape),), chance=row.chance), Place((corrected,))
