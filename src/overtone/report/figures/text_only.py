"""What the sound adds to the words: each measure with audio and by transcript alone, and the paired difference."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.analysis import said
from overtone.analysis.findings import Finding
from overtone.analysis.named import about, short
from overtone.analysis.significance import p_value
from overtone.analysis.text_only import TextOnly, TextRow, UnsolvedRow
from overtone.report.drawing import Drawing, series
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _axes as axes
from overtone.report.figures._axes import Entry, Kind, Spot
from overtone.report.figures._rows import Panel, Place, blocks, groups

TITLE = "What the sound adds to the words"
NOTHING = (
    "no item of these runs was answered both with audio and by transcript: run with --input audio,transcript, or give "
    "a run of the same model with --input transcript beside it"
)
BOTH, LESS = "With the sound ●, with the words alone ○", "Sound less words"
SCALES: tuple[tuple[tuple[str, ...], Panel, Panel], ...] = (  # measures that share their axes
    (
        ("voice_accuracy", "reasoning_accuracy"),
        Panel(BOTH, "percent", "%", 0.0, 1.0, weight=1.3, number="with sound, %"),
        Panel(LESS, "points", "points", zero=0.0, number="points"),
    ),
    (
        ("cspeechrel", "ves"),
        Panel(BOTH, "number", "rating", 1.0, 5.0, weight=1.3, number="with sound"),
        Panel(LESS, "number", "difference", zero=0.0),
    ),
    (
        ("style_margin",),  # where no judge rated the replies
        Panel(BOTH, "number", "style margin", zero=0.0, weight=1.3, number="with sound"),
        Panel(LESS, "number", "difference", zero=0.0),
    ),
)
LEFT = (
    Panel(
        "Questions no text-only run gets right", "percent", "% right with the sound", 0.0, 1.0, weight=1.3, number="%"
    ),
    Panel("Corrected for guessing", "percent", "%", zero=0.0, number="%"),
)

Parts = list[tuple[str, list[tuple[int, tuple[Place | None, ...]]]]]


def draw(source: Source, width: float) -> Drawing:
    found = source.findings("text-only")
    shown = [(_parts(source, found, names), panels) for names, *panels in SCALES]
    if shown[1][0]:
        del shown[2]
    unsolved = _unsolved(source, found)
    shown.append((unsolved, list(LEFT)))
    if not any(parts for parts, _ in shown):
        raise NothingToDraw(NOTHING)
    drawing, y = axes.page(
        width, TITLE, source.told("the same items and model both ways; lines are 95 % intervals, clustered by script.")
    )
    chances = [place.chance for _, of_runs in unsolved for _, places in of_runs for place in places if place]
    if any(chance is not None for chance in chances):
        y = axes.legend(drawing, 0, y, width, [Entry("blind guessing", "quiet", "dashed")])
    y = groups(drawing, y, [(blocks(width, source.labels, parts), panels) for parts, panels in shown])
    drawing.text = " ".join(s.text for f in found for s in f.sentences)
    signatures = dict.fromkeys(_alone(f).signature for f in found)
    lacking = [source.labels[f.runs[0]] for f in found if not _alone(f).rows]
    notes = [f"Without answers by transcript: {', '.join(lacking)}."] if lacking else []
    return axes.close(drawing, y, notes, " · ".join(signatures))


def _alone(finding: Finding) -> TextOnly:
    assert isinstance(finding.found, TextOnly)
    return finding.found


def _parts(source: Source, found: Sequence[Finding], names: Sequence[str]) -> Parts:
    parts: Parts = []
    for name in names:
        of_runs: list[tuple[int, tuple[Place | None, ...]]] = []
        label = ""
        for finding in found:
            number = finding.runs[0]
            prompt = source.conditions[number].partition("/")[0]
            mine = [
                row
                for row in _alone(finding).rows
                if row.measure == name and row.prompt in ("task", prompt) and row.difference.scored
            ]
            for row in said.headline(mine)[:1]:
                of_runs.append((number, _places(source, finding, row)))
                label = label or row.label
        if of_runs:
            parts.append((label, of_runs))
    return parts


def _places(source: Source, finding: Finding, row: TextRow) -> tuple[Place, Place]:
    number = finding.runs[0]
    ink, shape = series(number)
    key, name = finding.prefix + row.key, f"{source.labels[number]}, {row.label}"
    kind, digits = about(row.measure).shown, about(row.measure).digits
    audio = Spot(row.audio, f"{name}, with the sound", key, ink, shape, kind=kind, digits=digits)
    text = Spot(row.text, f"{name}, words alone", key, ink, shape, hollow=True, kind=kind, digits=digits)
    apart: Kind = "points" if kind == "percent" else "number"
    p = f"{p_value(row.adjusted)} after Holm correction over {row.tests:,}"
    gain = Spot(row.difference, f"{name}, sound less words, {p}", key, ink, shape, kind=apart, digits=digits)
    return Place((audio, text)), Place((gain,))


def _unsolved(source: Source, found: Sequence[Finding]) -> Parts:
    parts: Parts = []
    for name in ("voice_accuracy", "reasoning_accuracy"):
        of_runs: list[tuple[int, tuple[Place | None, ...]]] = []
        for finding in found:
            mine = [row for row in _alone(finding).unsolved if row.measure == name and row.accuracy.scored]
            for row in said.headline(mine)[:1]:
                of_runs.append((finding.runs[0], _left(source, finding, row)))
        if of_runs:
            parts.append((short(name), of_runs))
    return parts


def _left(source: Source, finding: Finding, row: UnsolvedRow) -> tuple[Place, Place]:
    number = finding.runs[0]
    ink, shape = series(number)
    name = f"{source.labels[number]}, {row.label}, {row.unsolved} of {row.questions} questions no text-only run gets"
    key = finding.prefix + row.key
    corrected = Spot(row.corrected, f"{name}, corrected for guessing", key, ink, shape, hollow=True)
    return Place((Spot(row.accuracy, name, key, ink, shape),), chance=row.chance), Place((corrected,))
