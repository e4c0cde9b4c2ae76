"""The tables of runs' scores by name: headline, replies, sub-tasks, cues, and published results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from overtone.display.columns import Column, declared_in, hearing_columns, heat_columns
from overtone.display.table_data import (
    NOT_VALIDATED,
    Cell,
    Line,
    PartTable,
    text_cell,
    without_column,
    without_unmarked_cues,
)
from overtone.report.case_links import read as read_where
from overtone.report.case_links import where
from overtone.report.headline_tables import headlines, published
from overtone.report.reply_tables import agreement, alignment, following, judged_tables, spoken
from overtone.report.side_tables import Pairs, apart, wrong_answers
from overtone.report.template_tables import TalkColumn, conversations, hearing, talk_columns
from overtone.results.headline_condition import clips_note
from overtone.results.load import Reading
from overtone.results.measures import Estimate, choice_measure
from overtone.results.reader_share import reader_shares, sentences
from overtone.results.summary import ConditionSummary, Conversation, Summary, TaskRow, summarise_reading
from overtone.results.timings import TimingRow, timing_rows
from overtone.scores import CHOICE, Declared, score_of
from overtone.text import by_kind, number, seconds

HINTS = {
    "hearing": "Percent; in brackets the 95 % interval by script; n scored of n asked; bounds if replies are missing.",
    "conversation": (
        "The words of the replies compared with the references, in percent; words and characters per reply; latency of "
        "the replies."
    ),
    "timings": (
        "When the parts of a streamed reply came, in seconds; the real-time factor is seconds per second of sound. "
        "Below each value: its 95 % interval, and bounds if replies are missing."
    ),
    "tasks": (
        "Multiple choice by sub-task: right ÷ answered, the same with the strict extractor, and corrected for blind "
        "guessing."
    ),
    "cues": "Every measure by the cue of the clip, including cues that are not validated.",
}
LEVELS = {1: "understanding", 2: "reasoning"}


def hearing_table(pairs: Pairs) -> PartTable:
    """Return the headline table of hearing and reasoning."""
    columns = hearing_columns([c for _, c in pairs])
    lines = [
        Line(run, c.condition, (over,), _measured(run, c, measures, columns, over=_basis(over)))
        for run, c in pairs
        for over, measures in hearing(c)
    ]
    heads = tuple(column.head for column in columns)
    title = "Hearing and reasoning"
    return _over(PartTable("hearing", title, HINTS["hearing"], ("Cues",), heads, tuple(lines)))


def conversation_table(pairs: Pairs, *, brief: bool = False) -> PartTable:
    """Return the table of the replies' words. `brief` leaves out the columns that a report shows in a second table."""
    rows = [(run, c, over, t) for run, c in pairs for over, t in conversations(c)]
    measured = [
        m for m in talk_columns((t for *_, t in rows), declared_in(c for _, c in pairs)) if not brief or not m.more
    ]
    counted = not any(m.unit == "words" for m in measured)  # else the metric's column has them
    words = ("Words",) if counted else ()
    heads = ("Replies", *(m.label for m in measured), *words, "Spoken", "Latency, median", "95 %")
    lines = []
    for run, c, over, t in rows:
        key = partial(where, run, "replies", condition=c.condition, over=_basis(over))
        lines.append(Line(run, c.condition, (over,), _talk(t, measured, key, counted)))
    return _over(PartTable("conversation", "Conversation", HINTS["conversation"], ("Cues",), heads, tuple(lines)))


def _talk(t: Conversation, measured: Sequence[TalkColumn], key: Callable[..., str], counted: bool) -> tuple[Cell, ...]:
    return (
        text_cell(f"{t.replies:,} of {t.asked:,}", key()),
        *(Cell(t.measures.get(m.name), m.kind, digits=m.digits, key=key(score=m.name)) for m in measured),
        *((text_cell(_mean_words(t), key()),) if counted else ()),
        text_cell(f"{t.with_audio:,}", key(read="spoken")),
        text_cell(seconds(t.latency_median), key()),
        text_cell(seconds(t.latency_p95), key()),
    )


def timings_table(readings: Sequence[Reading]) -> PartTable:
    """Return the table of the timings of streamed replies; without lines if no reply streamed."""
    lines = tuple(
        Line(n, row.condition, (row.label, row.measured_from), _percentiles(n, row))
        for n, reading in enumerate(readings)
        for row in timing_rows(reading)
    )
    heads = ("Median ↓ · s", "95 % within ↓ · s")
    return PartTable("timings", "Timings", HINTS["timings"], ("Timing", "Measured from"), heads, lines)


def _percentiles(run: int, row: TimingRow) -> tuple[Cell, ...]:
    key = where(run, "timings", condition=row.condition, score=row.name)
    return tuple(Cell(estimate, "number", digits=3, key=key) for estimate in row.percentiles)


def _mean_words(t: Conversation) -> str:
    """Return the mean number of words as text. If some replies are in a language without spaces, the number of
    counted replies is added."""
    some = t.words is not None and t.counted < t.texts
    return number(t.words, 1) + (f" (of {t.counted:,} replies)" if some else "")


def _basis(over: str) -> str:
    return "unvalidated" if over else ""


def _over(table: PartTable) -> PartTable:
    return without_column(table, "Cues", lambda bases: NOT_VALIDATED in bases)


def _results(pairs: Pairs) -> list[PartTable]:
    return [hearing_table(pairs), conversation_table(pairs)]


def _voice(pairs: Pairs) -> list[PartTable]:
    return [without_unmarked_cues(table) for table in spoken(pairs)]


def _tasks(pairs: Pairs) -> list[PartTable]:
    def cells(run: int, c: ConditionSummary, t: TaskRow) -> tuple[Cell, ...]:
        accuracy = t.accuracy
        key = partial(where, run, choice_measure(c.declared, t.level), condition=c.condition, category=t.key)
        read = (Cell(accuracy.questions, key=key()), Cell(accuracy.strict, key=key(read="strict")))
        return (*read, Cell(accuracy.corrected, key=key()), text_cell(by_kind(accuracy.chance, "percent"), key()))

    lines = [
        Line(run, c.condition, (LEVELS.get(t.level, str(t.level)), t.label), cells(run, c, t))
        for run, c in pairs
        for t in c.tasks
    ]
    heads = ("Right ↑ · %", "Strict reading ↑ · %", "Corrected for guessing ↑ · %", "Chance · %")
    return [PartTable("tasks", "Sub-tasks", HINTS["tasks"], ("Level", "Task"), heads, tuple(lines))]


def _cues(pairs: Pairs) -> list[PartTable]:
    columns = heat_columns([c for _, c in pairs])
    used = [m for m in columns if any(row.measures.get(m.measure) for _, c in pairs for row in c.cues)]

    def name(c: ConditionSummary, key: str, label: str) -> str:
        return f"{label} (not validated)" if key in c.unvalidated_cues else label

    lines = [
        Line(
            run, c.condition, (row.parent, name(c, row.key, row.label)),
            _measured(run, c, row.measures, used, over="core", cue=row.key),
        )
        for run, c in pairs
        for row in c.cues
    ]  # fmt: skip
    heads = tuple(column.head for column in used)
    return [PartTable("cues", "Cues", HINTS["cues"], ("Category", "Cue"), heads, tuple(lines))]


def _measured(
    run: int, c: ConditionSummary, measures: dict[str, Estimate], used: Sequence[Column], **more: str
) -> tuple[Cell, ...]:
    return tuple(
        _cell(e, column, where(run, column.measure, condition=c.condition, **more))
        for column in used
        for e in [measures.get(column.measure)]
    )


def _cell(e: Estimate | None, column: Column, key: str) -> Cell:
    return Cell() if e is None else Cell(e, column.kind, digits=column.digits, key=key)


class Results(Struct, frozen=True):
    """The tables of one name: a one-line description, and the functions that make them from summaries or from runs."""

    about: str
    make: Callable[[Sequence[Summary]], list[PartTable]] = lambda summaries: []
    of_runs: Callable[[Sequence[Reading]], list[PartTable]] | None = None
    needs_runs: bool = True


def _of_pairs(make: Callable[[Pairs], list[PartTable]]) -> Callable[[Sequence[Summary]], list[PartTable]]:
    def made(summaries: Sequence[Summary]) -> list[PartTable]:
        return make([(number, c) for number, summary in enumerate(summaries) for c in summary.conditions])

    return made


RESULTS = {
    "headline": Results("The benchmark's own table, as its authors would print it.", of_runs=headlines),
    "results": Results("The headline: hearing, reasoning, and the words of the replies.", _of_pairs(_results)),
    "timings": Results(
        "When replies came: first text, first sound, voice to voice, whole reply.",
        of_runs=lambda readings: [timings_table(readings)],
    ),
    "judged": Results(
        "The judges' scores of the replies.",
        _of_pairs(lambda pairs: [without_unmarked_cues(t) for t in judged_tables(pairs)]),
    ),
    "voice": Results(
        "How spoken replies sound: delivery, predicted quality, emotion.",
        lambda summaries: [*_of_pairs(_voice)(summaries), *alignment(summaries)],
    ),
    "following": Results(
        "Whether replies follow the voice, computed offline.",
        _of_pairs(lambda pairs: [without_unmarked_cues(following(pairs))]),
    ),
    "tasks": Results("Multiple choice by sub-task.", _of_pairs(_tasks)),
    "cues": Results("Every measure by cue.", _of_pairs(_cues)),
    "wrong": Results("Wrong answers by the reading that they follow.", _of_pairs(lambda pairs: [wrong_answers(pairs)])),
    "apart": Results("Parts outside the headline: false cues, conflicts, dialogues, controls.", _of_pairs(apart)),
    "agreement": Results("Agreement of judges, and missing verdicts.", agreement),
    "published": Results(
        "The results that benchmarks' authors published: of the runs' benchmarks, or of all.",
        of_runs=published,
        needs_runs=False,
    ),
}


def result_tables(name: str, readings: Sequence[Reading]) -> list[PartTable]:
    """Return the tables with this name that have data. If a run holds several measurements of a metric, a footnote
    says which one is shown."""
    results = RESULTS[name]
    made = (
        results.make([summarise_reading(r) for r in readings]) if results.of_runs is None else results.of_runs(readings)
    )
    notes = list(dict.fromkeys(note for reading in readings if (note := clips_note(reading))))
    return [_annotated(_with_hint(table, notes), readings) for table in made if table.lines]


def _with_hint(table: PartTable, notes: Sequence[str]) -> PartTable:
    return replace(table, hint=" ".join([table.hint, *notes])) if notes and table.of_runs else table


def _annotated(table: PartTable, readings: Sequence[Reading]) -> PartTable:
    if not any(reading.measured_twice or reading.language_note for reading in readings):
        return table
    read = [" ".join(sentences(reader_shares(reading))) for reading in readings]  # what a model read, by run
    if table.key.startswith("suite-"):  # a benchmark's own columns do not say which metric they read
        runs = dict.fromkeys(line.run for line in table.lines if line.run is not None)
        run_notes = dict.fromkeys(note for run in runs for note in (read[run], readings[run].language_note))
        return replace(table, hint=" ".join(filter(None, (table.hint, *run_notes))))
    lines = []
    for line in table.lines:
        notes = dict(readings[line.run].measured_twice) if line.run is not None else {}
        if line.run is not None and (languages := readings[line.run].language_note):
            counted = [name for name, info in readings[line.run].declared.items() if info.characters]
            notes |= {name: f"{languages} {notes.get(name, '')}".strip() for name in counted}
        if line.run is not None and read[line.run]:
            notes[CHOICE] = f"{read[line.run]} {notes.get(CHOICE, '')}".strip()
        declared = readings[line.run].declared if line.run is not None else {}
        cells = tuple(replace(c, notes=(*c.notes, *_measurement_notes(c, notes, declared))) for c in line.cells)
        lines.append(replace(line, cells=cells))
    return replace(table, lines=tuple(lines))


def _measurement_notes(cell: Cell, notes: Mapping[str, str], declared: Declared) -> list[str]:
    """Return the notes on the metrics behind a cell: the metrics that its key names, or the judges' scores of its
    dimension."""
    if cell.estimate is None or not cell.key.startswith("where="):
        return []
    fields = read_where(cell.key)
    metric = fields.get("score") or score_of(declared, fields["measure"])
    rubric, judge = fields.get("rubric", ""), fields.get("judge", "")
    judged = [n for n in notes if rubric and n.partition("@")[0] == rubric and judge in ("", n.partition("@")[2])]
    return [notes[name] for name in (metric, *judged) if name in notes]
