"""The tables of text-only: each measure with audio and with the transcript, and questions that text cannot solve."""

from __future__ import annotations

from overtone.display.table_data import Line, PartTable, chance_note
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import (
    DEFAULT,
    HOLM,
    basis,
    cell,
    chosen,
    measure_cell,
    named,
    over,
    p_cell,
    representing,
    text,
)
from overtone.findings.text_only.compute import TextOnly
from overtone.text import number

BREAKDOWNS = ("overall", "dimension", "style", "category", "cue")
HINTS = {
    "text-only": (
        "The same items and model with audio and with the transcript alone, item by item. Shares are in percent, their "
        "differences in points, other measures on their own scale. " + HOLM
    ),
    "unsolved": (
        "Questions that no text-only answer gets right, asked with audio. A model that does not hear scores no better "
        "than guessing on them. Tries: text-only answers per question; with more, more questions are solved by chance."
    ),
}


def make_tables(result: FindingResult[TextOnly], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make the table of the measures and the table of the unsolved questions."""
    return [_pairs(result, by, settings), _unsolved(result, by)]


def _pairs(result: FindingResult[TextOnly], by: str, settings: Settings) -> PartTable:
    lines = []
    shown = representing([f"{row.prompt}/{settings.input}" for row in result.data.rows], by, settings)
    for row in chosen(result.data.rows, by):
        if f"{row.prompt}/{settings.input}" not in shown:
            continue
        cells = (
            measure_cell(result, row.measure, row.audio, row.key),
            measure_cell(result, row.measure, row.text, row.key),
            measure_cell(result, row.measure, row.difference, row.key, difference=True),
            p_cell(result, row.p, row.difference, row.key),
            p_cell(result, row.adjusted, row.difference, row.key),
        )
        lines.append(Line(result.runs[0], row.prompt, (basis(row.basis), row.label, over(row)), cells))
    heads = ("With audio", "Transcript alone", "Difference", "p", "p, Holm")
    title = "What the audio adds to the words"
    return named(PartTable("text-only", title, HINTS["text-only"], ("Cues", "Measure", "Over"), heads, tuple(lines)))


def _unsolved(result: FindingResult[TextOnly], by: str) -> PartTable:
    lines = [
        Line(
            result.runs[0], "", (basis(row.basis), row.label, over(row)),
            (
                text(result, f"{row.unsolved:,} of {row.questions:,}", f"{row.key}/unsolved"),
                text(result, number(row.tries, 1), f"{row.key}/questions"),
                cell(result, row.accuracy, row.key, small=chance_note(row.chance)),
                cell(result, row.corrected, row.key),
            ),
        )
        for row in chosen(result.data.unsolved, by)
    ]  # fmt: skip
    heads = ("Unsolved", "Tries", "Correct with audio ↑ · %", "Corrected for guessing · %")
    title = "Questions that the words do not solve"
    return named(PartTable("unsolved", title, HINTS["unsolved"], ("Cues", "Measure", "Over"), heads, tuple(lines)))
