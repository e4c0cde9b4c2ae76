"""The tables of people's answers: means, differences, votes, and judges against people."""

from __future__ import annotations

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import DEFAULT, Kind, cell, p_cell, representing, text
from overtone.findings.people.compute import SAME, GapRow, HeardRow, MeanRow, PairRow, People
from overtone.results import significance
from overtone.results.judge_scores import Dimension
from overtone.stats.votes_needed import Decision
from overtone.text import by_kind, number

SHOWN = 6  # cues that are named in a row
HOLM = (
    "p by a t test clustered by rater and by script, corrected by Holm’s method over the differences of a study under "
    "one condition. Significant: at most 0.05 after correction. Intervals apply to each row alone."
)
HINTS = {
    "means": (
        "The raters’ mean per run over usable sessions, adjusted for severe raters and hard scripts. The interval "
        "holds for other people and other scripts: it adds up what ratings of one rater, and of one script, share."
    ),
    "gaps": (
        "One run minus another, from the same fit as the means: raters and scripts that both share cancel. More: how "
        "many further votes on the same scripts, or further scripts, would decide if the estimate is right. " + HOLM
    ),
    "votes": (
        "Votes on pairs. Both good and both bad count as ties in the lead; cannot tell is missing. A reply is "
        "acceptable if it was chosen, or both were good. " + HOLM
    ),
    "graded": "Comparisons on a scale from −3 to 3 (CMOS); above 0, A is better. " + HOLM,
    "heard": (
        "The cues that people marked, by the cue that the clip carries, most frequent first; a person can mark "
        "several. Right: the share of answers with the intended cue."
    ),
    "judges": (
        "The judge’s score of a reply against the mean of people’s. Between people: Krippendorff’s α of the raters "
        "with each other, one by one; a judge that follows the mean of several can exceed it. Bias: the judge’s mean "
        "minus people’s. Intervals respect scripts, not raters: they hold for these people."
    ),
}


def make_tables(result: FindingResult[People], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make the tables that have rows."""
    data = result.data
    rows: tuple[MeanRow | GapRow | PairRow, ...] = (*data.means, *data.gaps, *data.pairs)
    conditions = [row.condition for row in rows]
    shown = representing(conditions, by, settings)
    means = [_mean(result, row) for row in data.means if row.condition in shown]
    gaps = [_gap(result, row) for row in data.gaps if row.condition in shown]
    votes = [_votes(result, row) for row in data.pairs if row.condition in shown and not row.graded]
    graded = [_graded(result, row) for row in data.pairs if row.condition in shown and row.graded]
    judges = [_judge(result, at) for at in range(len(data.judges))]
    heads = ("Mean", "With unusable sessions", "Raters", "Answers")
    tables = [
        PartTable("people", "What people say", HINTS["means"], ("Question",), heads, tuple(means)),
        PartTable(
            "people-gaps", "People: differences between runs", HINTS["gaps"], ("Question", "Runs"),
            ("Difference", "p", "More"), tuple(gaps),
        ),
        PartTable(
            "people-votes", "People: votes", HINTS["votes"], ("Question", "A", "B"),
            ("A · %", "B · %", "Both good · %", "Both bad · %", "Cannot tell", "Lead of A", "p", "A acceptable · %",
             "B acceptable · %", "With unusable sessions", "More"), tuple(votes),
        ),
        PartTable(
            "people-cmos", "People: comparisons", HINTS["graded"], ("Question", "A", "B"),
            ("A · %", "B · %", "Same · %", "A minus B", "p", "With unusable sessions", "More"), tuple(graded),
        ),
        PartTable(
            "people-judges", "Judges against people", HINTS["judges"], ("Question", "Judge"),
            ("Krippendorff’s α ↑", "Between people", "Equal · %", "Spearman’s ρ ↑", "Bias"), tuple(judges),
        ),
    ]  # fmt: skip
    tables.append(
        PartTable(
            "people-heard", "What people heard", HINTS["heard"], ("In", "Intended"), ("Heard", "Right · %", "Answers"),
            tuple(_heard(result, row) for row in data.heard),
        )
    )  # fmt: skip
    return [table for table in tables if table.lines]


def _kind(d: Dimension, *, difference: bool = False) -> Kind:
    return "number" if not d.share else "points" if difference else "percent"


def _mean(result: FindingResult[People], row: MeanRow) -> Line:
    kind = _kind(row.dimension)
    cells = (
        cell(result, row.mean, row.key, kind),
        text(result, by_kind(row.everyone.value, kind), row.key),
        text(result, f"{row.raters:,}", row.key),
        text(result, f"{row.votes:,}", row.key),
    )
    return Line(row.run, row.condition, (row.dimension.label,), cells)


def _gap(result: FindingResult[People], row: GapRow) -> Line:
    cells = (
        cell(result, row.gap, row.key, _kind(row.dimension, difference=True)),
        p_cell(result, row.adjusted, row.gap, row.key),
        text(result, _more(row.decision, row.adjusted), row.key),
    )
    return Line(None, row.condition, (row.dimension.label, " − ".join(row.runs)), cells)


def _votes(result: FindingResult[People], row: PairRow) -> Line:
    def share(value: float) -> Cell:
        return text(result, by_kind(value, "percent"), row.key)

    cells = (
        *(share(row.shares[name]) for name in ("A", "B", "both_good", "both_bad")),
        text(result, f"{row.cannot_tell:,}", row.key),
        cell(result, row.lead, row.key, "points"),
        p_cell(result, row.adjusted, row.lead, row.key),
        *map(share, row.acceptable or ()),
        text(result, by_kind(row.everyone, "points"), row.key),
        text(result, _more(row.decision, row.adjusted), row.key),
    )
    return Line(None, row.condition, (row.dimension, *row.runs), cells)


def _graded(result: FindingResult[People], row: PairRow) -> Line:
    cells = (
        *(text(result, by_kind(row.shares[name], "percent"), row.key) for name in ("A", "B", SAME)),
        cell(result, row.lead, row.key, "number"),
        p_cell(result, row.adjusted, row.lead, row.key),
        text(result, number(row.everyone), row.key),
        text(result, _more(row.decision, row.adjusted), row.key),
    )
    return Line(None, row.condition, (row.dimension, *row.runs), cells)


def _heard(result: FindingResult[People], row: HeardRow) -> Line:
    named = ", ".join(f"{cue} {n}" for cue, n in list(row.heard.items())[:SHOWN])
    right = row.heard.get(row.intended, 0) / row.answers
    cells = (
        text(result, named + (" …" if len(row.heard) > SHOWN else ""), row.key),
        text(result, by_kind(right, "percent"), row.key),
        text(result, f"{row.answers:,}", row.key),
    )
    return Line(row.run, "", ({"clip": "clips"}.get(row.of, "replies"), row.intended), cells)


def _judge(result: FindingResult[People], at: int) -> Line:
    judged = result.data.judges[at]
    row, key = judged.row, judged.key
    equal = by_kind(row.exact, "percent")
    cells = (
        cell(result, row.alpha, key, "number"),
        text(result, number(row.ceiling), key),
        text(result, equal, key),
        text(result, number(row.spearman), key),
        cell(result, row.bias, key, _kind(row.dimension, difference=True)),
    )
    return Line(judged.run, "", (row.dimension.label, row.judge), cells)


def _more(decision: Decision, adjusted: float | None) -> str:
    """Write what would decide: `about 120 votes`."""
    if decision.verdict in ("votes", "scripts"):
        return f"about {decision.more:,} {decision.verdict}"
    if decision.verdict == "decided":
        return "decided" if adjusted is None or significance.significant(adjusted) else "only before correction"
    return {"people": "more people", "close": "too close", "few": "too few scripts"}[decision.verdict]
