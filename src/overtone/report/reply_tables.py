"""The tables of replies, for terminal and page: judges' scores, sound, whether they follow the voice, and agreement
of judges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from overtone.display.columns import declared_in
from overtone.display.table_data import BASES, Cell, Line, PartTable, chance_note, text_cell
from overtone.judge_trust.calibration import Calibrated
from overtone.report.case_links import where
from overtone.report.side_tables import Pairs
from overtone.results.emotion_alignment import Aligned
from overtone.results.judge_agreement import AgreementRow
from overtone.results.judge_scores import PANEL, Dimension, JudgedRow, Trouble
from overtone.results.measures import Estimate, from_interval, within
from overtone.results.people_scores import PeopleRow
from overtone.results.style_following import StyleRow
from overtone.results.summary import ConditionSummary, Summary
from overtone.results.voice_scores import Measured, VoiceRow, voice_columns
from overtone.text import as_given, by_kind, count, number, value_of

ARROWS = {"higher": "\u00a0↑", "lower": "\u00a0↓"}  # no line ends before an arrow
UNVALIDATED = "unvalidated"
HINTS = {
    "judged": (
        "The judge models’ scores of the replies, on each rubric’s own scale. Dimensions about the cue are over target "
        "and alternative clips, with the mean over target clips alone below. A false cue is a claim to have heard "
        "something on a neutral clip, in percent. The panel is the mean over judges, over replies that all of them "
        "scored. A judge is marked unvalidated until it has agreed with people or passed the test with known answers. "
        "People are the raters of a study: the mean over usable sessions, with an interval that holds for other people "
        "and other scripts."
    ),
    "judged-styles": "The same scores by the style of the clip.",
    "differences": (
        "Two ways of judging the same replies, reply by reply: speech relevance with and without implicit use of the "
        "cue, and a judge that hears the audio minus the same judge with a measured description."
    ),
    "agreement": (
        "Over all conditions. Krippendorff’s α for ordinal data: 1 is full agreement, 0 is chance; its interval is a "
        "bootstrap over scripts; n counts replies that at least two judges (or repeats) rated. The shares and "
        "Spearman’s ρ are means over pairs of judges, or of repeats."
    ),
    "troubles": (
        "Replies without a score by a judge. Unread: a verdict came but lacked the form that the rubric asks for. "
        "Missing: no verdict came, because the judge failed or was stopped. Not asked: there was nothing to judge, "
        "e.g. a reply without audio."
    ),
    "following": (
        "Computed offline from meaning alone: each script’s replies are compared with the references of its styles by "
        "sentence embeddings. Style sensitivity is how much closer replies are to their own style’s reference than to "
        "the others, after subtracting what is common to all. The true pairing is found if no other pairing of "
        "replies and references is more similar. A model that does not listen scores 0 and chance. "
        "Not comparable with a judge’s speech relevance."
    ),
    "spoken": (
        "Measured on the audio of the replies. Pitch, pace, pauses and level describe a delivery; higher is neither "
        "better nor worse. A reply is flat if its pitch, level and rhythm together vary less than 0.7 times as much as "
        "in neutral acting."
    ),
    "quality": "Scores of listening tests on a scale of 1 to 5, as predicted by models.",
    "emoalign": (
        "How often the emotion that a model hears in the reply’s voice is the wanted one: that of the reference’s "
        "voice, or of the style’s profile. Chance is the agreement expected from the label shares of both sides; κ "
        "is 0 at chance and 1 at full agreement. Other and unknown never match."
    ),
    "calibrated": (
        "Judges’ means corrected by replies that people labelled (prediction-powered inference): the judge’s mean over "
        "all replies, corrected by its error on the labelled ones."
    ),
}


def judged_tables(pairs: Pairs) -> list[PartTable]:
    """Return the tables of judged replies: the headline, the styles and the differences."""
    made = (_headline(pairs), _styles(pairs), _differences(pairs))
    return [table for table in made if table.lines]


def _dimensions(rows: Iterable[JudgedRow | PeopleRow]) -> dict[str, Dimension]:
    return {row.dimension.key: row.dimension for row in rows}


def _head(d: Dimension) -> str:
    scale = "%" if d.share else "" if d.low is None or d.high is None else f"{as_given(d.low)}–{as_given(d.high)}"
    return f"{d.label}{ARROWS.get(d.better, '')}" + (f" · {scale}" if scale else "")


def _cell(d: Dimension, e: Estimate | None, small: str = "", title: str = "", key: str = "") -> Cell:
    return Cell(e, "percent" if d.share else "number", small=small, title=title, key=key)


def _judge(label: str, rows: Sequence[JudgedRow]) -> str:
    return label or f"panel of {max(len({r.judge for r in rows if r.judge}), 2)}"


def _basis(basis: str) -> str:
    return BASES[basis]


def _grouped(rows: Sequence[JudgedRow]) -> dict[tuple[str, str], dict[str, JudgedRow]]:
    """Return (basis, judge) → dimension → row; the panel first."""
    groups: dict[tuple[str, str], dict[str, JudgedRow]] = {}
    for row in sorted(rows, key=lambda r: (r.basis == "unvalidated", r.judge != PANEL, r.judge)):
        groups.setdefault((row.basis, row.judge), {})[row.dimension.key] = row
    return groups


def _by_people(run: int, c: ConditionSummary, dimensions: dict[str, Dimension]) -> list[Line]:
    """Return a line for each study whose raters rated these replies."""
    grouped: dict[tuple[str, str], dict[str, PeopleRow]] = {}
    for row in c.people:
        grouped.setdefault((row.basis, row.study), {})[row.dimension.key] = row
    several = len({study for _, study in grouped}) > 1
    lines = []
    for (basis, study), rows in grouped.items():
        title = next(iter(rows.values())).title
        about = {"condition": c.condition, "over": basis, "study": study}
        cells = []
        for name, d in dimensions.items():
            found = rows.get(name)
            key = where(run, "people", rubric=name, **about)
            cells.append(Cell() if found is None else _cell(d, found.headline, _raters(found), _everyone(found), key))
        names = _basis(basis), f"people ({title})" if several else "people"
        lines.append(Line(run, c.condition, names, tuple(cells)))
    return lines


def _raters(row: PeopleRow) -> str:
    return f"{row.raters} {'rater' if row.raters == 1 else 'raters'}, {count(row.votes, 'answer')}"


def _everyone(row: PeopleRow) -> str:
    """Return the same mean with unusable sessions, if there are any."""
    e = row.everyone
    if e.value is None or e == row.headline:
        return ""
    return f"with unusable sessions: {value_of(e, 'percent' if row.dimension.share else 'number')}"


def _headline(pairs: Pairs) -> PartTable:
    dimensions = _dimensions(row for _, c in pairs for row in c.judged)
    dimensions = {**_dimensions(row for _, c in pairs for row in c.people), **dimensions}
    lines = []
    for run, c in pairs:
        lines += _by_people(run, c, dimensions)
        for (basis, judge), by_dimension in _grouped(c.judged).items():
            cells = []
            for key, d in dimensions.items():
                row = by_dimension.get(key)
                if row is None:
                    cells.append(Cell())
                    continue
                small = []
                if row.target is not None and row.target.value is not None:
                    small.append(f"target alone {number(row.target.value)}")
                if row.unvalidated:
                    small.append(UNVALIDATED)
                about = {"condition": c.condition, "over": basis, "rubric": key, "judge": judge}
                cells.append(_cell(d, row.headline, " · ".join(small), row.signature, where(run, "judged", **about)))
            lines.append(Line(run, c.condition, (_basis(basis), _judge(judge, c.judged)), tuple(cells)))
    return PartTable(
        "judged", "Replies: judged", HINTS["judged"], ("Cues", "Judge"), tuple(map(_head, dimensions.values())),
        tuple(lines),
    )  # fmt: skip


def _styles(pairs: Pairs) -> PartTable:
    dimensions = _dimensions(row for _, c in pairs for row in c.judged)
    lines = []
    for run, c in pairs:
        groups = _grouped(c.judged)
        shown = {key: by_dimension for key, by_dimension in groups.items() if key[1] == PANEL} or groups
        for (basis, judge), by_dimension in shown.items():
            styles = dict.fromkeys(style for row in by_dimension.values() for style in row.styles)
            for style in styles:
                about = {"condition": c.condition, "over": basis, "judge": judge, "style": style}
                cells = tuple(
                    _cell(d, by_dimension[key].styles.get(style), key=where(run, "judged", rubric=key, **about))
                    if key in by_dimension
                    else Cell()
                    for key, d in dimensions.items()
                )
                lines.append(Line(run, c.condition, (_basis(basis), _judge(judge, c.judged), style), cells))
    return PartTable(
        "judged-styles", "Judged, by style", HINTS["judged-styles"], ("Cues", "Judge", "Clips"),
        tuple(map(_head, dimensions.values())), tuple(lines) if len({line.names[2] for line in lines}) > 1 else (),
    )  # fmt: skip


def _differences(pairs: Pairs) -> PartTable:
    lines = [
        Line(
            run, c.condition, (_basis(d.basis), d.dimension.label, f"{d.first} − {d.second}", d.judge or "panel"),
            (Cell(d.by, "points" if d.dimension.share else "number", key=where(
                run, "differences", condition=c.condition, over=d.basis, kind=d.kind, rubric=d.dimension.key,
                judge=d.judge,
            )),),
        )
        for run, c in pairs
        for d in c.differences
    ]  # fmt: skip
    return PartTable(
        "differences", "Two ways of judging", HINTS["differences"], ("Cues", "Dimension", "Compared", "Judge"),
        ("Difference",), tuple(lines),
    )  # fmt: skip


def following(pairs: Pairs) -> PartTable:
    """Return the table of style sensitivity and assignment, computed offline."""
    lines = [
        Line(
            run, c.condition, (BASES[row.basis], str(row.styles)),
            (
                Cell(row.sensitivity, "number", digits=3, key=_square(run, c, row)),
                Cell(row.assignment, small=chance_note(row.chance, 1), key=_square(run, c, row)),
                text_cell(f"{row.left_out:,}", _square(run, c, row, "left-out")),
            ),
        )
        for run, c in pairs
        for row in c.following
    ]  # fmt: skip
    return PartTable(
        "following", "Does the reply follow the voice?", HINTS["following"], ("Cues", "Styles"),
        ("Style sensitivity ↑", "True pairing found ↑ · %", "Scripts left out"), tuple(lines),
    )  # fmt: skip


def _square(run: int, c: ConditionSummary, row: StyleRow, read: str = "") -> str:
    about = {"condition": c.condition, "over": row.basis, "styles": str(row.styles), "read": read}
    return where(run, "following", **about)


def spoken(pairs: Pairs, *, brief: bool = False) -> list[PartTable]:
    """Return the tables of how replies sound: delivery, then predicted quality. `brief` leaves out the rows of
    single styles and empty columns."""
    rows: list[tuple[int, ConditionSummary, VoiceRow]] = [
        (run, c, row) for run, c in pairs for row in c.spoken if not brief or not row.style
    ]
    keys = {key for *_, row in rows for key, e in row.measures.items() if not brief or e.value is not None}

    def head(m: Measured) -> str:
        return f"{m.label}{ARROWS.get(m.better, '')}" + (f" · {m.unit}" if m.unit else "")

    def table(key: str, title: str, columns: Sequence[Measured]) -> PartTable:
        used = [m for m in columns if m.key in keys]
        lines = []
        for run, c, row in rows:
            about = {"condition": c.condition, "over": row.basis, "style": row.style}
            cells = tuple(
                Cell(
                    row.measures.get(m.key), m.kind, digits=m.digits,
                    key=where(run, "voice", **about, score=m.key),
                )
                for m in used
            )  # fmt: skip
            if any(cell.estimate for cell in cells):
                lines.append(Line(run, c.condition, (BASES[row.basis], row.style or "all"), cells))
        return PartTable(key, title, HINTS[key], ("Cues", "Clips"), tuple(map(head, used)), tuple(lines))

    columns = voice_columns(declared_in(c for _, c in pairs))
    made = (
        table("spoken", "Replies: voice", columns["delivery"]),
        table("quality", "Predicted quality", columns["quality"]),
    )
    return [t for t in made if t.lines]


def agreement(summaries: Sequence[Summary]) -> list[PartTable]:
    """Return the tables of the judges' agreement and of missing verdicts."""

    def cells(run: int, row: AgreementRow) -> tuple[Cell, ...]:
        judge = row.who[0] if row.kind == "repeats" else ""
        key = where(run, "agreement", rubric=row.dimension.key, judge=judge)
        shares = (by_kind(x, "percent") for x in (row.exact, row.within_one))
        return (Cell(row.alpha, "number", key=key), *(text_cell(x, key) for x in (*shares, number(row.spearman))))

    def trouble(run: int, t: Trouble, read: str) -> str:
        return where(run, "troubles", rubric=t.dimension.key, judge=t.judge, read=read)

    agreed = [
        Line(
            run,
            "",
            (row.dimension.label, " and ".join(row.who) + (", again" if row.kind == "repeats" else "")),
            cells(run, row),
        )
        for run, summary in enumerate(summaries)
        for row in summary.agreement
    ]
    left = [
        Line(
            run, "", (t.dimension.label, t.judge),
            (
                text_cell(f"{t.unscored:,}", trouble(run, t, "unscored"), f"of {t.asked:,}"),
                text_cell(f"{t.unread:,}", trouble(run, t, "unread")),
                text_cell(f"{t.missing:,}", trouble(run, t, "missing")),
                text_cell(f"{t.skipped:,}", trouble(run, t, "skipped")),
                text_cell("", small="; ".join(f"{n} × {why}" for why, n in t.reasons.items())),
            ),
        )
        for run, summary in enumerate(summaries)
        for t in summary.troubles
    ]  # fmt: skip
    heads = ("Krippendorff’s α ↑", "Equal · %", "Within one · %", "Spearman’s ρ ↑")
    tables = (
        PartTable("agreement", "Agreement of judges", HINTS["agreement"], ("Dimension", "Who"), heads, tuple(agreed)),
        PartTable(
            "troubles", "Missing verdicts", HINTS["troubles"], ("Dimension", "Judge"),
            ("No value", "Unread verdicts", "Missing verdicts", "Not asked", "Most often"), tuple(left),
        ),
    )  # fmt: skip
    return [table for table in tables if table.lines]


def alignment(summaries: Sequence[Summary], *, brief: bool = False) -> list[PartTable]:
    """Return the table of EmoAlign with chance agreement, κ and unknown emotions. `brief` leaves out the rows of
    single styles."""

    def cells(run: int, metric: str, row: Aligned) -> tuple[Cell, ...]:
        key = where(run, "emoalign", condition=row.condition, style=row.style, score=metric)
        kinds: tuple[Literal["percent", "number"], ...] = ("percent", "percent", "number", "percent", "percent")
        intervals = (row.rate, row.chance, row.kappa, row.reply_unknown, row.wanted_unknown)
        asked = row.rate.rows + row.unscored
        return tuple(
            Cell(from_interval(interval, interval.low, interval.high, asked), kind, key=key)
            for interval, kind in zip(intervals, kinds, strict=True)
        )

    lines = [
        Line(
            run,
            row.condition,
            (summary.declared[aligned.metric].label.removeprefix("EmoAlign "), row.style or "all"),
            cells(run, aligned.metric, row),
        )
        for run, summary in enumerate(summaries)
        for aligned in summary.alignment
        for row in aligned.rows
        if not brief or not row.style
    ]
    heads = ("Agreement\u00a0↑ · %", "Chance · %", "κ\u00a0↑", "Unknown in replies · %", "Unknown wanted · %")
    table = PartTable("emoalign", "EmoAlign", HINTS["emoalign"], ("Compared", "Clips"), heads, tuple(lines))
    return [table] if lines else []


def calibrated(corrected_rows: Sequence[Sequence[Calibrated]], summaries: Sequence[Summary]) -> PartTable:
    """Return the table of judges' means corrected by people's labels, for each run."""
    lines = []
    for run, rows in enumerate(corrected_rows):
        known = {r.dimension.key: r.dimension for c in summaries[run].conditions for r in c.judged}
        for row in rows:
            d = known.get(row.dimension, Dimension(row.dimension, row.dimension))
            c = row.corrected
            about = {"condition": row.condition, "score": row.metric}
            scale = (-math.inf if d.low is None else d.low, math.inf if d.high is None else d.high)
            ends = (min(scale[0], c.value), max(scale[1], c.value))  # a corrected mean may lie beyond its scale
            corrected = within(Estimate(c.value, c.low, c.high, c.labelled, c.rows), *ends)
            judge, people = (
                within(from_interval(part, part.low, part.high, part.rows), *ends)
                for part in (c.judge_only, c.human_only)
            )
            lines.append(
                Line(
                    run,
                    row.condition,
                    (d.label, row.judge),
                    (
                        _cell(d, corrected, row.note, key=where(run, "calibrated", **about)),
                        _cell(d, judge, key=where(run, "calibrated", **about, read="judge")),
                        _cell(d, people, key=where(run, "calibrated", **about)),
                    ),
                )
            )
    return PartTable(
        "calibrated", "Calibrated by people", HINTS["calibrated"], ("Dimension", "Judge"),
        ("Corrected", "Judge alone", "People alone"), tuple(lines),
    )  # fmt: skip
