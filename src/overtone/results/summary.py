"""A run in numbers: the headline measures per condition, their tables, and the ledger of problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from overtone import cues
from overtone.languages import error_rate, is_unspaced, words
from overtone.results import corpus_scores
from overtone.results.emotion_alignment import Alignment, alignment
from overtone.results.extremes import Extremes, extremes
from overtone.results.failure_ledger import Ledger, make_ledger
from overtone.results.headline_condition import by_condition, clips_note
from overtone.results.judge_agreement import AgreementRow, agreements
from overtone.results.judge_scores import (
    Difference,
    Dimension,
    JudgedRow,
    Trouble,
    differences,
    judged,
    read_dimensions,
    replies_of,
    troubles,
)
from overtone.results.load import Answer, Reading, last_text, read
from overtone.results.measures import Accuracy, Estimate, Measure, accuracy, is_choice, table_measures
from overtone.results.people_scores import PeopleRow, people_rows
from overtone.results.reader_share import ReaderShare, reader_shares
from overtone.results.side_measures import (
    ConflictRow,
    Control,
    Detection,
    DialogueRow,
    WrongRow,
    conflict,
    control,
    detection,
    dialogue,
    wrong,
)
from overtone.results.style_following import StyleRow, style_rows
from overtone.results.voice_scores import VoiceRow, spoken
from overtone.runs.store import Store
from overtone.schema import STYLES, remarks
from overtone.scores import Declared, in_table, undeclared

CUES = cues.CUES  # for tables that also list cues without data

LABELS = {  # order of the sub-tasks
    "asr": "Transcription",
    "conversation": "Conversation",
    "dialogue": "Dialogue",
    "false-cue": "False cue",
    "conflict-words": "Conflict, the words",
    "conflict-voice": "Conflict, the voice",
    "conflict-agreement": "Conflict, agreement",
    **cues.VOICE_TASKS,
    **cues.REASONING,
}


class Row(Struct, frozen=True):
    """One line of a table: a cue, a dimension or a style, with all measures that have replies there."""

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
    """The open replies of one condition. `measures` maps each metric of these replies to its mean, or to its corpus
    score if a mean would be misleading."""

    asked: int
    replies: int
    words: float | None  # mean of `reply_words`, over replies in languages with spaces between words
    counted: int  # number of texts in this mean
    texts: int  # over all replies; a dialogue has several
    with_audio: int
    latency_median: float | None
    latency_p95: float | None
    measures: dict[str, Estimate]
    notes: dict[str, int]


class ConditionSummary(Struct, frozen=True):
    """One condition of a run: measures by name (those of `table_measures`, and `wer_corpus`), and the tables. If a
    run has clips of several sources, sources outside the headline are separate conditions: `task/audio (human)`.

    The headline (measures, voice, reasoning, conversation) and its breakdowns cover the benchmark's core, without clips
    whose cue is not validated. If no cue is validated, there is no headline, and the breakdowns cover the whole core.
    `cues` always covers the whole core. The fields after `wrong` hold the parts of the benchmark that are reported
    separately.
    """

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
    unvalidated: dict[str, Estimate] = {}  # the same measures over clips whose cue is not validated
    unvalidated_conversation: Conversation | None = None
    validated_cues: tuple[str, ...] = ()  # slugs of the cues in the core's clips
    unvalidated_cues: tuple[str, ...] = ()
    wrong: list[WrongRow] = []
    detection: list[Detection] = []
    conflict: list[ConflictRow] = []
    dialogue: list[DialogueRow] = []
    control: Control | None = None
    fixed: Accuracy | None = None  # reasoning questions whose right answer does not depend on the voice
    judged: list[JudgedRow] = []
    people: list[PeopleRow] = []  # what people said of the same replies
    differences: list[Difference] = []  # between two ways of judging the same replies
    following: list[StyleRow] = []  # whether replies follow the voice
    spoken: list[VoiceRow] = []
    extremes: Extremes | None = None
    error_rate: str = "WER"  # name of the transcripts' error rate: "CER" if characters are counted, "WER/CER" for both
    declared: Declared = {}  # what each metric's score is

    @property
    def basis(self) -> str:
        """A phrase that names the headline's cues; "" if the benchmark does not mark cues as validated."""
        sure, unsure = len(self.validated_cues), len(self.unvalidated_cues)
        if not unsure:
            return ("The cue is validated." if sure == 1 else f"All {sure} cues are validated.") if sure else ""
        if not sure:
            none = "the cue is not" if unsure == 1 else f"none of the {unsure} cues is"
            return f"No headline: {none} validated. See “cues not validated”."
        asked = f"{sure + unsure}" if sure + unsure == len(CUES) else f"{sure + unsure} that were asked about"
        return f"Over the {sure} validated cues of {asked}. The others are under “cues not validated”."


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
    agreement: list[AgreementRow] = []  # of judges
    troubles: list[Trouble] = []  # of judges
    alignment: list[Alignment] = []  # agreement between the emotions heard in replies and the wanted emotions
    clips_note: str = ""  # a note on the headline's clips, if the run has several sources
    readers: list[ReaderShare] = []  # one for each condition, if a model read answers
    declared: Declared = {}  # what each metric's score is


def summarise(store: Store) -> Summary:
    """Return the summary of an open run."""
    return summarise_reading(read(store, light=True))


def summarise_reading(reading: Reading) -> Summary:
    answers = reading.answers
    rows = by_condition(reading)
    warnings = [detail for _, kind, detail in reading.events if kind == "warning"]
    answered, failed = sum(a.answered for a in answers), sum(a.failed for a in answers)
    dimensions = read_dimensions(reading.meta, reading.signatures)
    talks = {name: replies_of(own) for name, own in rows.items()}
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
        conditions=[_condition(name, own, dimensions, reading) for name, own in rows.items()],
        ledger=make_ledger(answers, reading.declared, lambda answer: last_text(reading, answer)),
        signatures=reading.signatures,
        notes=[*reading.notes, *warnings],
        agreement=agreements(answers, dimensions),
        troubles=troubles(answers, read_dimensions(reading.meta, {*reading.signatures, *reading.silent})),
        alignment=[own for m in in_table(reading.declared, "emotion") if (own := alignment(talks, m)) is not None],
        clips_note=clips_note(reading),
        readers=reader_shares(reading),
        declared=reading.declared,
    )


def _condition(
    name: str, answers: list[Answer], dimensions: dict[str, Dimension], reading: Reading
) -> ConditionSummary:
    signatures, declared = reading.signatures, reading.declared
    measures = table_measures(declared)
    core = [a for a in answers if not a.item.part]
    unsure = [a for a in core if a.item.status == "unvalidated"]
    sure = [a for a in core if a.item.status != "unvalidated"]
    validated = _slugs(a for a in core if a.item.status == "validated")
    unvalidated = _slugs(unsure)
    headline = sure if validated or not unvalidated else []
    shown = headline or core
    return ConditionSummary(
        condition=name,
        asked=len(answers),
        answered=sum(a.answered for a in answers),
        measures=_measures(headline, measures),
        voice=accuracy(headline, is_choice(1)),
        reasoning=accuracy(headline, is_choice(2)),
        conversation=_conversation([a for a in headline if a.item.task == "converse"], declared),
        tasks=_tasks(shown),
        cues=_table(core, measures, lambda a: a.item.cue or "neutral", [*cues.slugs(), "neutral"], of_cues=True),
        dimensions=_table(shown, measures, lambda a: a.item.dimension, cues.DIMENSIONS),
        styles=_table(shown, measures, lambda a: a.item.style, STYLES),
        unvalidated=_measures(unsure, measures),
        unvalidated_conversation=_conversation([a for a in unsure if a.item.task == "converse"], declared),
        validated_cues=validated,
        unvalidated_cues=unvalidated,
        wrong=wrong(shown),
        detection=detection(answers),
        conflict=conflict(answers, declared),
        dialogue=dialogue(answers, declared),
        control=control(answers),
        fixed=accuracy((a for a in answers if a.item.part == "fixed"), is_choice(2)),
        judged=judged(answers, dimensions, signatures),
        people=people_rows(answers, reading.studies),
        differences=differences(answers, dimensions, signatures),
        following=style_rows(answers),
        spoken=spoken(answers, declared),
        extremes=extremes(answers, dimensions, declared),
        error_rate=error_rate(a.language for a in answers if a.item.task == "transcribe"),
        declared=declared,
    )


def _slugs(answers: Iterable[Answer]) -> tuple[str, ...]:
    present = {a.item.cue for a in answers if a.item.cue}
    return tuple(slug for slug in cues.slugs() if slug in present)


def _measures(answers: list[Answer], measures: Sequence[Measure]) -> dict[str, Estimate]:
    estimates = {m.name: m.estimate(answers) for m in measures}
    estimates[corpus_scores.WER_CORPUS] = corpus_scores.corpus_wer(answers)
    return {name: e for name, e in estimates.items() if e.asked}


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
            result = accuracy(parts[category], belongs)
            if result is not None:
                rows.append(TaskRow(category, LABELS.get(category, category), level, result))
    return rows


def _table(
    answers: list[Answer],
    measures: Sequence[Measure],
    key: Callable[[Answer], str],
    order: Iterable[str],
    *,
    of_cues: bool = False,
) -> list[Row]:
    """Return a row for each key with answers: first the keys in `order`, then all other keys."""
    parts: dict[str, list[Answer]] = {}
    for answer in answers:
        parts.setdefault(key(answer), []).append(answer)
    known = list(order)
    keys = [k for k in known if k in parts] + sorted(k for k in parts if k and k not in known)
    return [
        Row(k, _cue_label(k) if of_cues else k, _cue_parent(k) if of_cues else "", _measures(parts[k], measures))
        for k in keys
    ]


def _cue_label(slug: str) -> str:
    return "no cue (neutral)" if slug == "neutral" else slug


def _cue_parent(slug: str) -> str:
    cue = cues.BY_SLUG.get(slug)
    return cue.category if cue else ""


def _conversation(answers: list[Answer], declared: Declared) -> Conversation | None:
    if not answers:
        return None
    replies = [reply for a in answers if a.answered for reply in a.replies]
    counts = [
        len(words(reply.text, a.language))
        for a in answers
        if a.answered and not is_unspaced(a.language)
        for reply in a.replies
    ]
    latencies = np.array([reply.latency for reply in replies])
    notes: dict[str, int] = {}
    for reply in replies:
        for note in remarks(reply.notes):
            notes[note] = notes.get(note, 0) + 1
    measures: dict[str, Estimate] = {}
    for metric in sorted({m for a in answers for m in a.scores}):
        measures[metric] = corpus_scores.over(metric, answers, declared.get(metric) or undeclared(metric))
    return Conversation(
        asked=len(answers),
        replies=sum(a.answered for a in answers),
        words=float(np.mean(counts)) if counts else None,
        counted=len(counts),
        texts=len(replies),
        with_audio=sum(a.answered and any(reply.audio for reply in a.replies) for a in answers),
        latency_median=float(np.median(latencies)) if replies else None,
        latency_p95=float(np.percentile(latencies, 95)) if replies else None,
        measures=measures,
        notes=notes,
    )
