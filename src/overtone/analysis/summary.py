"""What a run says in numbers: the headline measures per condition, their tables, and the ledger of what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from msgspec import Struct

from overtone import cues
from overtone.analysis.ledger import Ledger, make_ledger
from overtone.analysis.measures import (
    MEASURES,
    Accuracy,
    Estimate,
    accuracy,
    corpus_wer,
    estimate,
    is_choice,
)
from overtone.analysis.reading import Answer, Reading, read
from overtone.runs.store import Store
from overtone.schema import STYLES

CUES = cues.CUES  # all there are, for tables that also show the cues without data

LABELS = {  # of sub-tasks
    "asr": "Transcription",
    "conversation": "Conversation",
    "coarse": "Coarse-grained",
    "gender": "Gender",
    "age": "Age group",
    "style": "Voice style",
    "emotion": "Emotion",
    "pace": "Speaking pace",
    "nonverbal": "Non-verbal sound",
    "background": "Background sound",
    **cues.REASONING,
}


class Row(Struct, frozen=True):
    """One line of a table: a cue, a dimension or a style, with every measure that has replies for it."""

    key: str
    label: str
    parent: str
    measures: dict[str, Estimate]


class TaskRow(Struct, frozen=True):
    """One sub-task of multiple choice."""

    key: str
    label: str
    level: int
    accuracy: Accuracy


class Conversation(Struct, frozen=True):
    """The open replies of one condition. `measures` holds the mean of every metric that was run on them."""

    asked: int
    replies: int
    words: float | None
    with_audio: int
    latency_median: float | None
    latency_p95: float | None
    measures: dict[str, Estimate]
    notes: dict[str, int]


class ConditionSummary(Struct, frozen=True):
    """One condition of a run: measures by name (those of `measures.MEASURES`, and `wer_corpus`), and the tables."""

    condition: str
    asked: int
    answered: int
    measures: dict[str, Estimate]
    voice: Accuracy | None
    reasoning: Accuracy | None
    conversation: Conversation | None
    tasks: list[TaskRow]
    cues: list[Row]
    dimensions: list[Row]
    styles: list[Row]


class Summary(Struct, frozen=True):
    """A whole run."""

    name: str
    folder: str
    benchmark: str
    model: str
    meta: dict[str, str]
    items: int
    cases: int
    asked: int
    answered: int
    failed: int
    pending: int
    conditions: list[ConditionSummary]
    ledger: Ledger
    signatures: dict[str, str]
    notes: list[str]


def summarise(store: Store) -> Summary:
    """The summary of an open run."""
    return summarise_reading(read(store, light=True))


def summarise_reading(reading: Reading) -> Summary:
    answers = reading.answers
    by_condition: dict[str, list[Answer]] = {}
    for answer in answers:
        by_condition.setdefault(answer.condition, []).append(answer)
    warnings = [detail for _, kind, detail in reading.events if kind == "warning"]
    answered, failed = sum(a.answered for a in answers), sum(a.failed for a in answers)
    return Summary(
        name=reading.name,
        folder=str(reading.folder),
        benchmark=reading.benchmark,
        model=reading.meta.get("model", "") or reading.meta.get("spec", ""),
        meta=reading.meta,
        items=reading.items,
        cases=len({a.item.case for a in answers}),
        asked=len(answers),
        answered=answered,
        failed=failed,
        pending=len(answers) - answered - failed,
        conditions=[_condition(name, found) for name, found in by_condition.items()],
        ledger=make_ledger(answers),
        signatures=reading.signatures,
        notes=[*reading.notes, *warnings],
    )


def _condition(name: str, answers: list[Answer]) -> ConditionSummary:
    return ConditionSummary(
        condition=name,
        asked=len(answers),
        answered=sum(a.answered for a in answers),
        measures=_measures(answers),
        voice=accuracy(answers, is_choice(1)),
        reasoning=accuracy(answers, is_choice(2)),
        conversation=_conversation([a for a in answers if a.item.task == "converse"]),
        tasks=_tasks(answers),
        cues=_table(answers, lambda a: a.item.cue or "neutral", [*cues.slugs(), "neutral"], _cue_label, _cue_parent),
        dimensions=_table(answers, lambda a: a.item.dimension, cues.DIMENSIONS),
        styles=_table(answers, lambda a: a.item.style, STYLES),
    )


def _measures(answers: list[Answer]) -> dict[str, Estimate]:
    found = {m.name: m.estimate(answers) for m in MEASURES}
    found["wer_corpus"] = corpus_wer(answers)
    return {name: e for name, e in found.items() if e.asked}


def _tasks(answers: list[Answer]) -> list[TaskRow]:
    order = [*cues.UNDERSTANDING, *cues.REASONING]
    rows: list[TaskRow] = []
    for level in (1, 2):
        belongs = is_choice(level)
        parts: dict[str, list[Answer]] = {}
        for answer in answers:
            if belongs(answer.item):
                parts.setdefault(answer.item.category, []).append(answer)
        for category in sorted(parts, key=lambda c: (order.index(c) if c in order else len(order), c)):
            found = accuracy(parts[category], belongs)
            if found is not None:
                rows.append(TaskRow(category, LABELS.get(category, category), level, found))
    return rows


def _table(
    answers: list[Answer],
    key: Callable[[Answer], str],
    order: Iterable[str],
    label: Callable[[str], str] = lambda k: k,
    parent: Callable[[str], str] = lambda _: "",
) -> list[Row]:
    """A row for each key there are answers of: the known ones in order, then any others."""
    parts: dict[str, list[Answer]] = {}
    for answer in answers:
        parts.setdefault(key(answer), []).append(answer)
    known = list(order)
    keys = [k for k in known if k in parts] + sorted(k for k in parts if k and k not in known)
    return [Row(k, label(k), parent(k), _measures(parts[k])) for k in keys]


def _cue_label(slug: str) -> str:
    return "no cue (neutral)" if slug == "neutral" else slug


def _cue_parent(slug: str) -> str:
    cue = cues.BY_SLUG.get(slug)
    return cue.category if cue else ""


def _conversation(answers: list[Answer]) -> Conversation | None:
    if not answers:
        return None
    replies = [reply for a in answers if a.answered for reply in a.replies]
    latencies = np.array([reply.latency for reply in replies])
    notes: dict[str, int] = {}
    for reply in replies:
        for note in reply.notes:
            notes[note] = notes.get(note, 0) + 1
    measures: dict[str, Estimate] = {}
    for metric in sorted({m for a in answers for m in a.scores}):
        bounds = (1.0, 0.0) if metric == "semsim" else (None, None)
        measures[metric] = estimate([(a.value(metric), a.item.group) for a in answers], good=bounds[0], bad=bounds[1])
    return Conversation(
        asked=len(answers),
        replies=sum(a.answered for a in answers),
        words=float(np.mean([len(reply.text.split()) for reply in replies])) if replies else None,
        with_audio=sum(a.answered and any(reply.audio for reply in a.replies) for a in answers),
        latency_median=float(np.median(latencies)) if replies else None,
        latency_p95=float(np.percentile(latencies, 95)) if replies else None,
        measures=measures,
        notes=notes,
    )
