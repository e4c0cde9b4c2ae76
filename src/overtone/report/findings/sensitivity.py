"""Same words, another voice, as tables: do answers move rightly, and stay when nothing changed?"""

from __future__ import annotations

from overtone.analysis.counterfactual import NOTHING, Counterfactual
from overtone.analysis.findings import Finding, Settings
from overtone.report.findings._cells import (
    DEFAULT,
    HOLM,
    basis,
    cell,
    chance,
    chosen,
    named,
    over,
    p_cell,
    standing,
    text,
)
from overtone.report.table import Line, PartTable

BYS = ("overall", "dimension", "style")  # by style: pairs of styles
HINTS = {
    "sensitivity": (
        "Pairs of clips of one script, one question, right answers that differ. Right on both: the answers follow the "
        "voice; wrong way round: each clip got the other’s answer. Who does not hear gets both equally often, so that "
        "the difference is 0. " + HOLM
    ),
    "specificity": (
        "The same clip asked again, or rendered again in another voice: answers should stay. Excess: how much more "
        "often answers to the same questions change where the voice does. " + HOLM
    ),
    "false-cue": (
        "A hit names any cue on a clip with one, a false alarm names one on a neutral clip; d′ is how well the two are "
        "told apart (0 is guessing), the criterion how readily a cue is named (below 0: readily)."
    ),
    "replies": (
        "Each script’s replies against the references of its styles: how much nearer to their own, and how often the "
        "true pairing is the nearest. A model that does not listen is at 0 and at chance."
    ),
}


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Counterfactual)
    asked = [row.condition for rows in (found.sensitivity, found.false_cues, found.replies) for row in rows]
    shown = standing([*asked, *(row.condition for row in found.specificity)], by, settings)
    found = Counterfactual(
        found.run,
        found.signature,
        [row for row in found.sensitivity if row.condition in shown],
        [row for row in found.specificity if row.condition in shown],
        [row for row in found.false_cues if row.condition in shown],
        [row for row in found.replies if row.condition in shown],
        found.notes,
    )
    wanted = {"style": "pair"}.get(by, by)
    made = (_moved(finding, found, wanted), _still(finding, found, wanted))
    return [*made, _false(finding, found), _replies(finding, found)]


def _moved(finding: Finding, found: Counterfactual, by: str) -> PartTable:
    lines = [
        Line(
            finding.runs[0], row.condition, (basis(row.basis), row.level, over(row)),
            (
                cell(finding, row.changed, row.key),
                cell(finding, row.sensitivity, row.key, small=chance(row.chance)),
                cell(finding, row.swapped, row.key),
                cell(finding, row.direction, row.key, "points"),
                p_cell(finding, row.p, row.direction, row.key),
                p_cell(finding, row.adjusted, row.direction, row.key),
            ),
        )
        for row in chosen(found.sensitivity, by)
    ]  # fmt: skip
    heads = (
        "Changed · %", "Right on both ↑ · %", "Wrong way round ↓ · %", "Difference ↑ · points", "p", "p, Holm",
    )  # fmt: skip
    title = "Where the voice moves the right answer"
    return named(PartTable("sensitivity", title, HINTS["sensitivity"], ("Cues", "Level", "Over"), heads, tuple(lines)))


def _still(finding: Finding, found: Counterfactual, by: str) -> PartTable:
    lines = [
        Line(
            finding.runs[0], row.condition, (basis(row.basis), row.level, NOTHING[row.nothing], over(row)),
            (
                cell(finding, row.stays, row.key),
                cell(finding, row.excess, f"{row.key}/excess", "points"),
                p_cell(finding, row.p, row.excess, f"{row.key}/excess"),
                p_cell(finding, row.adjusted, row.excess, f"{row.key}/excess"),
            ),
        )
        for row in chosen(found.specificity, by)
    ]  # fmt: skip
    heads = ("Stays ↑ · %", "Excess ↑ · points", "p", "p, Holm")
    names = ("Cues", "Level", "Nothing changed", "Over")
    return named(PartTable("specificity", "Where nothing changed", HINTS["specificity"], names, heads, tuple(lines)))


def _false(finding: Finding, found: Counterfactual) -> PartTable:
    lines = [
        Line(
            finding.runs[0], row.condition, (basis(told.basis),),
            (
                cell(finding, told.hit, f"{row.key}/hit"),
                cell(finding, told.false_alarm, f"{row.key}/false-alarm"),
                cell(finding, told.d_prime, row.key, "number"),
                cell(finding, told.criterion, row.key, "number"),
                cell(finding, told.identification, f"{row.key}/hit", small=chance(told.chance)),
                text(finding, f"{told.unread:,}", f"{row.key}/unread"),
            ),
        )
        for row in found.false_cues
        for told in [row.detection]
    ]  # fmt: skip
    heads = (
        "Hits ↑ · %", "False alarms ↓ · %", "d′ ↑", "Criterion", "Right cue named ↑ · %", "Not readable",
    )  # fmt: skip
    return named(PartTable("false-cue", "Cues that are not there", HINTS["false-cue"], ("Cues",), heads, tuple(lines)))


def _replies(finding: Finding, found: Counterfactual) -> PartTable:
    lines = [
        Line(
            finding.runs[0], row.condition, (basis(style.basis), str(style.styles)),
            (
                cell(finding, style.sensitivity, row.key, "number", digits=3),
                cell(finding, style.assignment, row.key, small=chance(style.chance)),
                text(finding, f"{style.left_out:,}", f"{row.key}/left-out"),
            ),
        )
        for row in found.replies
        for style in [row.style]
    ]  # fmt: skip
    heads = ("Style sensitivity ↑", "True pairing found ↑ · %", "Scripts left out")
    title = "Do replies follow the voice?"
    return named(PartTable("replies", title, HINTS["replies"], ("Cues", "Styles"), heads, tuple(lines)))
