"""The tables of a report as plain values for a template: the rows, and the content of each column."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from overtone.display.columns import declared_in, hearing_columns, heat_columns
from overtone.display.table_data import NOT_VALIDATED, without_unmarked_cues
from overtone.report.missing_tables import absent_hearing, absent_talk
from overtone.report.reply_tables import ARROWS, agreement, alignment, following, judged_tables, spoken
from overtone.report.side_tables import apart, bases, wrong_answers
from overtone.results.measures import Estimate, choice_measure
from overtone.results.reader_share import sentences
from overtone.results.summary import CUES, ConditionSummary, Conversation, Row, Summary
from overtone.scores import Declared, undeclared

_FACTS = (
    ("model", "Model"),
    ("benchmark", "Benchmark"),
    ("root", "Data"),
    ("clips", "Clips"),
    ("created", "Date"),
    ("command", "Command"),
    ("seed", "Seed"),
)

Run = dict[str, Any]


class TalkColumn(msgspec.Struct, frozen=True):
    """A measure of the words of replies. If `more` is true, it is shown in the second table."""

    name: str
    label: str
    kind: Literal["percent", "number"]
    digits: int
    more: bool
    unit: str


def tables(runs: list[Run]) -> dict[str, Any]:
    """Return name → values of every table; the names are those that the templates use."""
    pairs: list[tuple[Run, ConditionSummary]] = [(run, c) for run in runs for c in run["summary"].conditions]
    numbered = [(number, c) for number, run in enumerate(runs) for c in run["summary"].conditions]
    talk = [(run, c.condition, over, t) for run, c in pairs for over, t in conversations(c)]
    heard = [(run, c.condition, over, measures) for run, c in pairs for over, measures in hearing(c)]
    no_hearing = absent_hearing([e for *_, measures in heard for e in measures.values()])
    no_talk = absent_talk([t.replies for *_, t in talk])
    summaries: list[Summary] = [run["summary"] for run in runs]
    return {
        "columns": hearing_columns([c for _, c in pairs]),
        "hearing": [] if no_hearing else heard,
        "empty_results": [*no_hearing, *no_talk],
        "bases": [
            *_source_notes(summaries),
            *bases([(run["label"], c) for run, c in pairs]),
            *_read_by_model(runs),
        ],
        "apart": apart(numbered),
        "wrong": wrong_answers(numbered),
        "talk": [] if no_talk else talk,
        "talk_metrics": talk_columns((t for *_, t in talk), declared_in(c for _, c in pairs)),
        "judged": [without_unmarked_cues(t) for t in judged_tables(numbered)],
        "following": without_unmarked_cues(following(numbered)),
        "spoken": [*(without_unmarked_cues(t) for t in spoken(numbered)), *alignment(summaries)],
        "agreement": agreement(summaries),
        "signatures": [(run, _signatures(summary)) for run, summary in zip(runs, summaries, strict=True)],
        "readings_of_accuracy": [
            (run, c.condition, what, choice_measure(c.declared, level), accuracy)
            for run, c in pairs
            for level, what, accuracy in ((1, "voice", c.voice), (2, "reasoning", c.reasoning))
            if accuracy is not None
        ],
        "breakdowns": _breakdowns(pairs),
        "wide_columns": heat_columns([c for _, c in pairs]),
        **_tasks(pairs),
        "maps": [m for run, c in pairs if (m := _map(run, c)) is not None],
    }


def _source_notes(summaries: list[Summary]) -> list[str]:
    return list(dict.fromkeys(summary.clips_note for summary in summaries if summary.clips_note))


def _read_by_model(runs: list[Run]) -> list[str]:
    """Return a sentence on the share of answers that a reader model read, for every run with such answers. If there
    are several runs, the sentences name them."""
    labelled = [(run["label"], sentence) for run in runs for sentence in sentences(run["summary"].readers)]
    return [f"{label}: {sentence}" if len(runs) > 1 else sentence for label, sentence in labelled]


def talk_columns(talks: Iterable[Conversation], declared: Declared) -> list[TalkColumn]:
    """Return the columns of the table of replies in the declared order, then columns without a declared order by
    name."""
    measured = {m: declared.get(m) or undeclared(m) for t in talks for m in t.measures if "@" not in m}
    columns = [
        TalkColumn(
            name,
            info.label + ARROWS.get(info.better, ""),
            info.shown,
            1 if info.scale == "words" else 2,
            info.table == "more",
            info.unit,
        )
        for name, info in measured.items()
        if info.table in ("main", "more")
    ]
    return sorted(columns, key=lambda c: (c.more, measured[c.name].order, c.name))


def _signatures(summary: Summary) -> list[tuple[str, str, str]]:
    """Return every score of a run: its name, its label, and its signature."""
    dimensions = {r.dimension.key: r.dimension.label for c in summary.conditions for r in c.judged}
    rows = []
    for name, signature in sorted(summary.signatures.items()):
        key, at, judge = name.partition("@")
        label = (
            f"{dimensions.get(key, key)}, by {judge}" if at else (summary.declared.get(name) or undeclared(name)).label
        )
        rows.append((name, label, signature))
    return rows


def hearing(c: ConditionSummary) -> list[tuple[str, dict[str, Estimate]]]:
    """Return (cues, measures) for each row of the headline table."""
    names = {column.measure for column in hearing_columns([c])}
    both = (("", c.measures), (NOT_VALIDATED, c.unvalidated))
    return [(over, measures) for over, measures in both if names & measures.keys()]


def conversations(c: ConditionSummary) -> list[tuple[str, Conversation]]:
    """Return the rows of the table of replies."""
    both = (("", c.conversation), (NOT_VALIDATED, c.unvalidated_conversation))
    return [(over, talk) for over, talk in both if talk is not None]


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Return (name, value) for each fact about a run, the most interesting first."""
    meta = summary.meta
    stored = [(name, meta[key]) for key, name in _FACTS if meta.get(key) not in (None, "", "None")]
    stored = [(name, value[:16].replace("T", " ") if name == "Date" else value) for name, value in stored]
    versions = _object(meta.get("versions", ""))
    made_with = ", ".join(f"{name} {versions[name]}" for name in ("overtone", "python") if name in versions)
    answers = ", ".join(f"{k} {_short(v)}" for k, v in _object(meta.get("answers", "")).items() if v not in (None, ""))
    more = [("Made with", made_with), ("Parameters", answers), ("Prompts", meta.get("prompts", "")[:12])]
    return [
        *stored,
        *((name, value) for name, value in more if value),
        ("Folder", summary.folder),
        ("Items", f"{summary.items:,} in {summary.cases:,} cases"),
    ]


def _object(text: str) -> dict[str, Any]:
    """Decode a JSON object that is stored as text; {} if the text is anything else, because runs are untrusted."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b", r"\1…", text)


def _breakdowns(pairs: list[tuple[Run, ConditionSummary]]) -> list[tuple[str, str, list[tuple[Run, str, Row]]]]:
    by_dimension = [(run, c.condition, row) for run, c in pairs for row in c.dimensions]
    by_style = [(run, c.condition, row) for run, c in pairs for row in c.styles]
    both = [("By the dimension of the script’s cue", "dimension", by_dimension), ("By style", "style", by_style)]
    return [table for table in both if table[2]]


def _tasks(pairs: list[tuple[Run, ConditionSummary]]) -> dict[str, Any]:
    with_tasks = [(run, c) for run, c in pairs if c.tasks]
    bands = []
    for level, name in ((1, "Voice understanding"), (2, "Reasoning")):
        labels = dict.fromkeys((t.key, t.label) for _, c in with_tasks for t in c.tasks if t.level == level)
        rows = []
        for key, label in labels:
            accuracies = [
                next((t.accuracy for t in c.tasks if (t.level, t.key) == (level, key)), None) for _, c in with_tasks
            ]
            measure = next((choice_measure(c.declared, level) for _, c in with_tasks), "")
            rows.append((label, measure, key, next((a.chance for a in accuracies if a is not None), None), accuracies))
        if rows:
            bands.append((name, rows))
    return {"task_rows": bands, "task_columns": [(run, c.condition) for run, c in with_tasks]}


def shade(colours: tuple[float, float], value: float) -> int:
    """Return the step of a value on a measure's colour scale, from 0 (poor) to 8 (good)."""
    poor, good = colours
    return round(8 * min(1.0, max(0.0, (value - poor) / (good - poor))))


def _map(run: Run, c: ConditionSummary) -> dict[str, Any] | None:
    """Return the heat map of one condition, with all known cues, including those without data."""
    columns = [col for col in heat_columns([c]) if any(row.measures.get(col.measure) for row in c.cues)]
    if not columns or not c.cues:
        return None
    by_cue = {row.key: row for row in c.cues}
    colours = {m.name: m.colours for score, info in c.declared.items() for m in info.read_as(score) if m.colours}

    def cells(row: Row | None) -> dict[str, tuple[int, Estimate]]:
        measures = row.measures if row is not None else {}
        return {
            col.measure: (shade(colours[col.measure], e.value), e)
            for col in columns
            if (e := measures.get(col.measure)) is not None and e.value is not None
        }

    groups: dict[str, list[tuple[str, str, dict[str, tuple[int, Estimate]]]]] = {}
    for cue in CUES:
        name = f"{cue.category} ({cue.dimension})"
        groups.setdefault(name, []).append((cue.slug, cue.phrase, cells(by_cue.get(cue.slug))))
    covered = sum(bool(measures) for rows in groups.values() for _, _, measures in rows)
    known = {cue.slug for cue in CUES}
    others = [(row.key, row.label, cells(row)) for row in c.cues if row.key not in known]
    if others:
        groups["beside the 39"] = others
    return {
        "run": run,
        "condition": c.condition,
        "columns": columns,
        "groups": list(groups.items()),
        "covered": covered,
        "total": len(CUES),
        "unvalidated": c.unvalidated_cues,
    }
