"""A run in the terminal: its headline tables, and single cases.

Model text can hold anything; it is escaped for rich's markup and its control characters are written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from rich.console import Console

from overtone.display.table_data import Line, PartTable, text_cell, without_unmarked_cues
from overtone.languages import error_rate
from overtone.paths import shown
from overtone.report.headline_tables import first_screen, wants_judge
from overtone.report.reply_tables import agreement, alignment, following, judged_tables, spoken
from overtone.report.score_tables import conversation_table, hearing_table
from overtone.report.side_tables import apart, bases, wrong_answers
from overtone.report.table_formats import make_console, safe, to_terminal
from overtone.results.cases import Asked, CaseView, failure, how_read, reasons, right, state
from overtone.results.corpus_scores import TRANSCRIPTS
from overtone.results.load import Answer, open_run
from overtone.results.measures import chosen
from overtone.results.people_scores import said
from overtone.results.reader_share import sentences
from overtone.results.summary import Summary, summarise_reading
from overtone.runs.people_labels import LabelStudy
from overtone.schema import Item
from overtone.text import by_kind, cut

MOST_TEXT = 2_000  # characters of one reply in the terminal


def print_run(folder: Path, file: IO[str] | None = None, *, signatures: bool = False) -> None:
    """Print the headline of a run folder and, on request, the signature of each score."""
    reading = open_run(folder, light=True)
    own, others = first_screen(reading)
    place = shown(str(folder))
    more = f"{len(others)} more: {'; '.join(others)} (overtone table headline {place})" if others else ""
    if wants_judge(reading, own):
        more = f"no number yet: its replies must be judged first (overtone score {place} --judge SPEC)"
    print_summary(summarise_reading(reading), file, own=own, more=more)
    if signatures:
        console = make_console(file)
        for metric, signature in sorted(reading.signatures.items()):
            console.print(f"{safe(metric)}: {safe(signature)}", soft_wrap=True)


def print_summary(
    summary: Summary,
    file: IO[str] | None = None,
    *,
    width: int | None = None,
    own: Sequence[PartTable] = (),
    more: str = "",
) -> None:
    """Print one run: the tables that its benchmark defines and how to show `more` of them, its headline tables,
    missing replies, and the ledger of problems."""
    console = make_console(file, width)
    asked = f"{summary.answered:,} of {summary.asked:,} answered"
    extra = [f"{n:,} {what}" for n, what in ((summary.failed, "failed"), (summary.pending, "pending")) if n]
    console.print(f"[bold]{safe(summary.benchmark)}[/bold] · {safe(summary.model)} · {', '.join([asked, *extra])}")
    to_terminal(console, own)
    if more:
        console.print(safe(more), soft_wrap=True)
    _headline(console, summary)
    numbered = [(0, c) for c in summary.conditions]
    replies = (*judged_tables(numbered)[:1], following(numbered), *spoken(numbered, brief=True))
    replies += (*alignment([summary], brief=True), *agreement([summary]))
    to_terminal(console, (*map(without_unmarked_cues, replies), wrong_answers(numbered), *apart(numbered)))
    _ledger(console, summary)


def print_case(view: CaseView, file: IO[str] | None = None, *, full: bool = False) -> None:
    """Print one case level by level: transcript, answers and reply. Long replies are cut unless `full` is true."""
    console = make_console(file)
    kind = "dialogue" if view.style in ("changed", "steady") else "style"
    marks = (f"{answer.heard} heard in training" for one in view.all() for answer in one.answers if answer.heard)
    facts = [view.cue or "no cue", f"{view.style} {kind}" if view.style else "", view.dimension, view.topic]
    facts.append(next(marks, ""))
    console.print(f"[bold]{safe(view.case)}[/bold] · {safe(' · '.join(f for f in facts if f))}")
    context = next((one.item.context for one in view.all() if one.item.context), "")
    if context:
        console.print(f"context: {safe(context)}")
    console.print(f"“{safe(view.words)}”")
    for title, asked in (
        ("the words", view.transcripts),
        ("the voice", view.voice),
        ("the reasoning", view.reasoning),
        ("the reply", view.replies),
    ):
        if asked:
            console.print(f"\n[bold]{title}[/bold]")
        for one in asked:
            _print_asked(console, one, view.studies, full)


def _print_asked(console: Console, asked: Asked, studies: Mapping[str, LabelStudy], full: bool) -> None:
    item = asked.item
    if item.question:
        console.print(f"{safe(item.category)}: {safe(item.question)}")
    for option in item.options:
        mark = "✓" if option.letter == item.gold else " "
        origin = f"  ({option.provenance} reading)" if option.provenance else ""
        words = option.text or (f"the recording {option.clip.path}" if option.clip else "")
        console.print(f"  {mark} {safe(option.letter)}. {safe(words + origin)}")
    for reference in item.references:
        console.print(f"  {'reference':<24} {safe(reference)}")
    _print_turns(console, item)
    for answer in asked.answers:
        name = answer.condition + (f" #{answer.repeat + 1}" if answer.repeat else "")
        texts = [reply.text for reply in answer.replies]
        texts = texts if full else [cut(text, MOST_TEXT, "; --full shows all") for text in texts]
        console.print(f"  {safe(name):<24} {safe(_verdict(answer))}{safe(' / '.join(texts) or failure(answer))}")
        for one in said(answer, studies):
            counts = ", ".join(f"{value} × {number}" for value, number in one.counts.items()) or "no usable answer"
            mean = "" if one.mean is None else f" {one.mean:.2f}"
            against = f" against {one.against}" if one.against else ""
            more = f"; {one.unusable} more in unusable sessions" if one.unusable else ""
            console.print(f"  {'':<24} people, {safe(one.label + against)}{mean}: {safe(counts + more)}")
        for metric, why in reasons(answer).items():
            value = answer.scores[metric].value
            console.print(f"  {'':<24} {safe(metric)} {'no value' if value is None else f'{value:g}'}: {safe(why)}")


def _print_turns(console: Console, item: Item) -> None:
    """Print the turns of an item, with the replies that the benchmark supplies and its reference replies."""
    several = len(item.turns) > 1
    for number, turn in enumerate(item.turns, 1):
        texts = (("recognised as", turn.heard), ("given reply", turn.given), ("reference", turn.reference))
        if several or turn.reference:
            console.print(f"  {f'turn {number}':<24} {f'“{safe(turn.words)}”' if turn.words else '(words unknown)'}")
        for what, text in texts:
            if text:
                console.print(f"  {what:<24} {safe(text)}")


def _verdict(answer: Answer) -> str:
    if not answer.answered:
        return f"{state(answer)}: "
    if (is_right := right(answer)) is not None:
        return f"{'right' if is_right else 'wrong'} ({chosen(answer) or how_read(answer)}): "
    wer = answer.value(TRANSCRIPTS)
    return f"{error_rate([answer.language])} {by_kind(wer, 'percent')}: " if wer is not None else ""


def _headline(console: Console, summary: Summary) -> None:
    pairs = [(0, c) for c in summary.conditions]
    to_terminal(console, [hearing_table(pairs)], hints=True)
    notes = (summary.clips_note, *bases([(c.condition, c) for c in summary.conditions]), *sentences(summary.readers))
    for sentence in filter(None, notes):
        console.print(safe(sentence))
    to_terminal(console, [conversation_table(pairs, brief=True)])


def _ledger(console: Console, summary: Summary) -> None:
    rows = [("pending", "not asked yet; the same command resumes", summary.pending)] if summary.pending else []
    rows += [(row.kind, row.reason, row.count) for row in summary.ledger.rows]
    lines = [Line(None, "", (kind, reason), (text_cell(f"{n:,}"),)) for kind, reason, n in rows]
    title = "Failures and notes"
    to_terminal(console, [PartTable("ledger", title, "", ("kind", "reason"), ("count",), tuple(lines))])
    for note in summary.notes:
        console.print(f"note: {safe(note)}")
