"""The tables outside a benchmark's headline, for the terminal and the page: false cues, conflicts, dialogues,
controls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, TypeVar

from overtone.display.columns import ARROWS, declared_in, error_rate_of
from overtone.display.table_data import BASES, Cell, Line, PartTable, chance_note, text_cell
from overtone.report.case_links import NONE, where
from overtone.results.side_measures import CONFLICT_CLIPS, READINGS, UNREAD, ConflictRow, Detection
from overtone.results.summary import ConditionSummary
from overtone.scores import undeclared
from overtone.text import by_kind

R = TypeVar("R")
HINTS = {
    "wrong": (
        "Wrong answers to reasoning questions, in percent of all wrong answers, by the reading under which the chosen "
        "option would have been right. On a target clip the reading under the target’s cue is right, on a neutral "
        "clip that of the words alone."
    ),
    "false-cue": (
        "The same question with the same options about a clip with a cue and about a neutral one. A hit names "
        "any cue on a clip with a cue, a false alarm names one on a neutral clip. d′ measures how well the model "
        "distinguishes the two (0 is guessing), the criterion how readily it names a cue (below 0: readily). An "
        "unreadable reply is wrong on both."
    ),
    "conflict": (
        "Clips whose words and voice contradict each other, beside congruent twins in which both "
        "agree. Text-dominance is the share of questions about the voice that were answered with what "
        "the words state."
    ),
    "dialogue": (
        "Two turns of one speaker. In a changed dialogue the second turn carries another cue than the first, "
        "in a steady one the same; the words are the same in both. Each reply is measured against the "
        "reference reply to its turn. The last line is the mean difference, dialogue by dialogue, in "
        "percentage points."
    ),
    "control": (
        "How often one question got the same answer on two clips of a script: on a clip and on its second "
        "rendering in another voice of the same sex, where the answer should stay; and on that clip and one "
        "with another cue, where it should change."
    ),
    "fixed": (
        "Reasoning questions with the same right answer in every style. A model that only reads the words may get all "
        "of them right, so they do not count in a headline."
    ),
}


Pairs = list[tuple[int, ConditionSummary]]


def apart(pairs: Pairs) -> list[PartTable]:
    """Return every table with data."""
    made = (_false_cues(pairs), _conflicts(pairs), _dialogues(pairs), _controls(pairs), _fixed(pairs))
    return [table for table in made if table.lines]


def bases(pairs: list[tuple[str, ConditionSummary]]) -> list[str]:
    """Return sentences on which cues the headline covers: one sentence if it is the same for all runs, otherwise one
    for each run."""
    names_of: dict[str, list[str]] = {}
    for name, c in pairs:
        if c.basis:
            names_of.setdefault(c.basis, []).append(name)
    if len(names_of) < 2:
        return list(names_of)
    return [f"{', '.join(dict.fromkeys(names))}: {sentence}" for sentence, names in names_of.items()]


def wrong_answers(pairs: Pairs) -> PartTable:
    """Return the table of wrong answers to reasoning questions, by the reading under which they would be right."""
    used = [r for r in READINGS if any(r in row.readings for _, c in pairs for row in c.wrong)]
    labels = {
        "target": "Target’s cue",
        "alternative": "Alternative’s cue",
        "words": "Words alone",
        "harmful": "Harmful",
        "nothing": "Nothing there",
        "": "Other",
        UNREAD: "Not readable",
    }
    lines = []
    for run, c in pairs:
        for row in c.wrong:
            key = partial(where, run, "wrong", condition=c.condition, style=row.style)
            shares = [text_cell(_percent(row.wrong, row.answered), key(), f"{row.wrong:,} of {row.answered:,}")]
            for reading in used:
                n = row.readings.get(reading, 0)
                shares.append(text_cell(_percent(n, row.wrong), key(reading=reading or NONE), f"{n:,}"))
            lines.append(Line(run, c.condition, (row.style,), tuple(shares)))
    heads = ("Wrong", *(labels.get(r, r) for r in used))
    return PartTable("wrong", "Wrong answers", HINTS["wrong"], ("Clips",), heads, tuple(lines) if used else ())


def _percent(n: int, of: int) -> str:
    return by_kind(n / of if of else None, "percent")


def _rows(pairs: Pairs, read: Callable[[ConditionSummary], list[R]]) -> Iterator[tuple[int, ConditionSummary, R]]:
    for run, c in pairs:
        for row in read(c):
            yield run, c, row


def _false_cues(pairs: Pairs) -> PartTable:
    def cells(run: int, c: ConditionSummary, d: Detection) -> tuple[Cell, ...]:
        key = partial(where, run, "false-cue", condition=c.condition, over=d.basis)
        return (
            Cell(d.hit, key=key(clips="cued")),
            Cell(d.false_alarm, key=key(clips="neutral")),
            Cell(d.d_prime, "number", key=key()),
            Cell(d.criterion, "number", key=key()),
            Cell(d.identification, small=chance_note(d.chance), key=key(clips="cued")),
            text_cell(f"{d.unread:,}", key(read="unparsed")),
        )

    heads = ("Hits ↑", "False alarms ↓", "d′ ↑", "Criterion", "Right cue named ↑", "Not readable")
    rows = _rows(pairs, lambda c: c.detection)
    lines = tuple(Line(run, c.condition, (BASES[d.basis],), cells(run, c, d)) for run, c, d in rows)
    return PartTable("false-cue", "False cues", HINTS["false-cue"], ("Cues",), heads, lines)


def _conflicts(pairs: Pairs) -> PartTable:
    columns = {
        "words": "About the words ↑",
        "voice": "About the voice ↑",
        "agreement": "Do they agree ↑",
        "dominance": "Text-dominance ↓",
        **_usual_columns([c for _, c in pairs]),
    }
    rows = list(_rows(pairs, lambda c: c.conflict))
    used = [m for m in columns if any(m in row.measures for _, _, row in rows)]

    styles = {clip: style for style, clip in CONFLICT_CLIPS.items()}

    def cell(run: int, c: ConditionSummary, row: ConflictRow, measure: str) -> Cell:
        if row.clip == "congruent" and measure == "dominance":
            return Cell()  # on a congruent twin the words' answer is the right one: no dominance to speak of
        about = {"condition": c.condition, "over": row.basis, "style": styles[row.clip], "score": measure}
        return Cell(row.measures.get(measure), key=where(run, "conflict", **about))

    lines = tuple(
        Line(run, c.condition, (BASES[row.basis], row.clip), tuple(cell(run, c, row, m) for m in used))
        for run, c, row in rows
    )
    heads = tuple(columns[m] for m in used)
    return PartTable("conflict", "Words against voice", HINTS["conflict"], ("Cues", "Clips"), heads, lines)


def _usual_columns(conditions: Sequence[ConditionSummary]) -> dict[str, str]:
    """Return measure → column heading, for the usual measures that are also computed on conflicting clips."""
    declared = [(m, i) for s, i in declared_in(conditions).items() for m in i.read_as(s) if m.conflict]
    declared.sort(key=lambda row: row[0].order)
    rate = error_rate_of(conditions)
    return {m.name: f"{m.conflict.replace('WER', rate)} {ARROWS.get(i.better, '')}".strip() for m, i in declared}


def _dialogues(pairs: Pairs) -> PartTable:
    rows = list(_rows(pairs, lambda c: c.dialogue))
    measured = {m for _, _, row in rows for m in row.measures}
    declared = declared_in(c for _, c in pairs)
    infos = {m: declared.get(m) or undeclared(m) for m in measured}
    metrics = sorted((m for m, info in infos.items() if info.dialogue), key=lambda m: (infos[m].order, m))
    columns = [(m, turn) for m in metrics for turn in sorted({row.turn for _, _, row in rows})]
    lines: dict[tuple[int, str, str, str], dict[tuple[str, int], Cell]] = {}
    for run, c, row in rows:
        cells = lines.setdefault((run, c.condition, BASES[row.basis], row.variant), {})
        for metric, e in row.measures.items():
            kind: Literal["percent", "number", "points"] = infos[metric].shown
            if kind == "percent" and "−" in row.variant:
                kind = "points"
            about = {"condition": c.condition, "over": row.basis, "score": metric, "turn": str(row.turn)}
            key = where(run, "dialogue", **about, style="" if "−" in row.variant else row.variant)
            cells[metric, row.turn] = Cell(e, kind, key=key)
    labels = {
        m: next((read.label for read in info.measures if read.task == "converse"), info.label)
        for m, info in infos.items()
    }
    heads = tuple(f"{labels[m]}, turn {turn}" for m, turn in columns)
    made = tuple(
        Line(run, condition, (basis, variant), tuple(cells.get(column, Cell()) for column in columns))
        for (run, condition, basis, variant), cells in lines.items()
    )
    return PartTable("dialogue", "Dialogues", HINTS["dialogue"], ("Cues", "Dialogue"), heads, made)


def _controls(pairs: Pairs) -> PartTable:
    lines = []
    for run, c in pairs:
        if c.control is not None:
            sides = (("same", c.control.same), ("moved", c.control.moved))
            cells = [Cell(e, key=where(run, "control", condition=c.condition, read=how)) for how, e in sides]
            lines.append(Line(run, c.condition, (), tuple(cells)))
    heads = ("Same answer, other voice ↑", "Same answer, other cue ↓")
    return PartTable("control", "Controls", HINTS["control"], (), heads, tuple(lines))


def _fixed(pairs: Pairs) -> PartTable:
    lines = []
    for run, c in pairs:
        if c.fixed is not None:
            key = where(run, "fixed", condition=c.condition)
            cells = (Cell(c.fixed.questions, key=key), text_cell(by_kind(c.fixed.chance, "percent"), key))
            lines.append(Line(run, c.condition, (), cells))
    heads = ("Right ÷ answered ↑", "Chance")
    return PartTable("fixed", "Fixed answers", HINTS["fixed"], (), heads, tuple(lines))
