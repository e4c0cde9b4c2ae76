"""The tables of sensitivity: answers that change with the voice, answers that stay, false cues, and replies."""

from __future__ import annotations

from overtone.display.table_data import Line, PartTable, chance_note
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import (
    DEFAULT,
    HOLM,
    basis,
    cell,
    chosen,
    named,
    over,
    p_cell,
    representing,
    text,
)
from overtone.findings.sensitivity.compute import NOTHING, Counterfactual

BREAKDOWNS = ("overall", "dimension", "style")  # the breakdown by style shows pairs of styles
HINTS = {
    "sensitivity": (
        "Pairs of clips of one script with one question and different correct answers. Correct on both: the answers "
        "follow the voice. Swapped: each clip got the answer to the other. A model that does not hear gives both "
        "equally "
        "often, so the difference is 0. " + HOLM
    ),
    "specificity": (
        "The same clip asked again, or a second rendering of it in another voice: answers should stay. Excess: how "
        "much "
        "more often answers to the same questions change with the voice. " + HOLM
    ),
    "false-cue": (
        "A hit names any cue on a clip with one, a false alarm names one on a neutral clip. d′ measures how well the "
        "model distinguishes the two (0 is guessing), the criterion how readily it names a cue (below 0: readily)."
    ),
    "replies": (
        "The replies to each script against the references of its styles: how much nearer they are to their own, and "
        "how often the true pairing is the nearest. A model that does not listen scores 0 and chance."
    ),
}


def make_tables(
    result: FindingResult[Counterfactual], by: str = "overall", settings: Settings = DEFAULT
) -> list[PartTable]:
    """Make the four tables for the conditions that represent the run."""
    data = result.data
    asked = [row.condition for rows in (data.sensitivity, data.false_cues, data.replies) for row in rows]
    shown = representing([*asked, *(row.condition for row in data.specificity)], by, settings)
    data = Counterfactual(
        data.run,
        data.signature,
        [row for row in data.sensitivity if row.condition in shown],
        [row for row in data.specificity if row.condition in shown],
        [row for row in data.false_cues if row.condition in shown],
        [row for row in data.replies if row.condition in shown],
        data.notes,
    )
    wanted = {"style": "pair"}.get(by, by)
    made = (_moved(result, data, wanted), _still(result, data, wanted))
    return [*made, _false(result, data), _replies(result, data)]


def _moved(result: FindingResult[Counterfactual], data: Counterfactual, by: str) -> PartTable:
    lines = [
        Line(
            result.runs[0], row.condition, (basis(row.basis), row.level, over(row)),
            (
                cell(result, row.changed, row.key),
                cell(result, row.sensitivity, row.key, small=chance_note(row.chance)),
                cell(result, row.swapped, row.key),
                cell(result, row.direction, row.key, "points"),
                p_cell(result, row.p, row.direction, row.key),
                p_cell(result, row.adjusted, row.direction, row.key),
            ),
        )
        for row in chosen(data.sensitivity, by)
    ]  # fmt: skip
    heads = (
        "Changed · %", "Correct on both ↑ · %", "Swapped ↓ · %", "Difference ↑ · points", "p", "p, Holm",
    )  # fmt: skip
    title = "If the voice changes the correct answer"
    return named(PartTable("sensitivity", title, HINTS["sensitivity"], ("Cues", "Level", "Over"), heads, tuple(lines)))


def _still(result: FindingResult[Counterfactual], data: Counterfactual, by: str) -> PartTable:
    lines = [
        Line(
            result.runs[0], row.condition, (basis(row.basis), row.level, NOTHING[row.nothing], over(row)),
            (
                cell(result, row.stays, row.key),
                cell(result, row.excess, f"{row.key}/excess", "points"),
                p_cell(result, row.p, row.excess, f"{row.key}/excess"),
                p_cell(result, row.adjusted, row.excess, f"{row.key}/excess"),
            ),
        )
        for row in chosen(data.specificity, by)
    ]  # fmt: skip
    heads = ("Stays ↑ · %", "Excess ↑ · points", "p", "p, Holm")
    names = ("Cues", "Level", "Nothing changed", "Over")
    return named(PartTable("specificity", "If nothing changed", HINTS["specificity"], names, heads, tuple(lines)))


def _false(result: FindingResult[Counterfactual], data: Counterfactual) -> PartTable:
    lines = [
        Line(
            result.runs[0], row.condition, (basis(detected.basis),),
            (
                cell(result, detected.hit, f"{row.key}/hit"),
                cell(result, detected.false_alarm, f"{row.key}/false-alarm"),
                cell(result, detected.d_prime, row.key, "number"),
                cell(result, detected.criterion, row.key, "number"),
                cell(result, detected.identification, f"{row.key}/hit", small=chance_note(detected.chance)),
                text(result, f"{detected.unread:,}", f"{row.key}/unread"),
            ),
        )
        for row in data.false_cues
        for detected in [row.detection]
    ]  # fmt: skip
    heads = (
        "Hits ↑ · %", "False alarms ↓ · %", "d′ ↑", "Criterion", "Correct cue named ↑ · %", "Unreadable",
    )  # fmt: skip
    return named(PartTable("false-cue", "False cues", HINTS["false-cue"], ("Cues",), heads, tuple(lines)))


def _replies(result: FindingResult[Counterfactual], data: Counterfactual) -> PartTable:
    lines = [
        Line(
            result.runs[0], row.condition, (basis(style.basis), str(style.styles)),
            (
                cell(result, style.sensitivity, row.key, "number", digits=3),
                cell(result, style.assignment, row.key, small=chance_note(style.chance)),
                text(result, f"{style.left_out:,}", f"{row.key}/left-out"),
            ),
        )
        for row in data.replies
        for style in [row.style]
    ]  # fmt: skip
    heads = ("Style sensitivity ↑", "True pairing found ↑ · %", "Scripts left out")
    title = "Do replies follow the voice?"
    return named(PartTable("replies", title, HINTS["replies"], ("Cues", "Styles"), heads, tuple(lines)))
