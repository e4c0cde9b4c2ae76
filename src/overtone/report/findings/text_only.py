"""The words alone, as tables: each measure with the sound and with the transcript, and the questions no reader gets."""

from __future__ import annotations

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.text_only import TextOnly
from overtone.report.findings._cells import (
    DEFAULT,
    HOLM,
    basis,
    cell,
    chance,
    chosen,
    digits_of,
    kind_of,
    named,
    over,
    p_cell,
    standing,
    text,
)
from overtone.report.format import NONE
from overtone.report.table import Line, PartTable

BYS = ("overall", "dimension", "style", "category", "cue")
HINTS = {
    "text-only": (
        "The same items and model with the sound and with the true words alone, item by item. Shares in percent and "
        "their differences in points, other measures on their own scale. " + HOLM
    ),
    "unsolved": (
        "Questions that no text-only answer gets right, asked with the sound. There a model that does not hear is at "
        "the level of guessing or below. Tries: text-only answers a question has; the more, the more are got by luck."
    ),
}


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, TextOnly)
    return [_pairs(finding, found, by, settings), _unsolved(finding, found, by)]


def _pairs(finding: Finding, found: TextOnly, by: str, settings: Settings) -> PartTable:
    lines = []
    shown = standing([f"{row.prompt}/{settings.input}" for row in found.rows], by, settings)
    for row in chosen(found.rows, by):
        if f"{row.prompt}/{settings.input}" not in shown:
            continue
        kind, gap = kind_of(row.measure), kind_of(row.measure, difference=True)
        digits = digits_of(row.measure)
        cells = (
            cell(finding, row.audio, row.key, kind, digits=digits),
            cell(finding, row.text, row.key, kind, digits=digits),
            cell(finding, row.difference, row.key, gap, digits=digits),
            p_cell(finding, row.p, row.difference, row.key),
            p_cell(finding, row.adjusted, row.difference, row.key),
        )
        lines.append(Line(finding.runs[0], row.prompt, (basis(row.basis), row.label, over(row)), cells))
    heads = ("With the sound", "Words alone", "Difference", "p", "p, Holm")
    title = "What the sound adds to the words"
    return named(PartTable("text-only", title, HINTS["text-only"], ("Cues", "Measure", "Over"), heads, tuple(lines)))


def _unsolved(finding: Finding, found: TextOnly, by: str) -> PartTable:
    lines = [
        Line(
            finding.runs[0], "", (basis(row.basis), row.label, over(row)),
            (
                text(finding, f"{row.unsolved:,} of {row.questions:,}", f"{row.key}/unsolved"),
                text(finding, NONE if row.tries is None else f"{row.tries:.1f}", f"{row.key}/questions"),
                cell(finding, row.accuracy, row.key, small=chance(row.chance)),
                cell(finding, row.corrected, row.key),
            ),
        )
        for row in chosen(found.unsolved, by)
    ]  # fmt: skip
    heads = ("Unsolved", "Tries", "Right with the sound ↑ · %", "Less guessing · %")
    title = "Questions that no reader of the words gets"
    return named(PartTable("unsolved", title, HINTS["unsolved"], ("Cues", "Measure", "Over"), heads, tuple(lines)))
