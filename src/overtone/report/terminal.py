"""A run's headline in the terminal: tables like the paper's, plain text where nobody looks at colours.

Model text can hold anything; it is escaped for rich's markup and its control characters are written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from rich.console import Console

from overtone.display.table import Line, PartTable, text_cell, without_unmarked_cues
from overtone.paths import shown
from overtone.report.headline_tables import first_screen, wants_judge
from overtone.report.reply_tables import agreement, alignment, following, judged_tables, spoken
from overtone.report.score_tables import conversation_table, hearing_table
from overtone.report.side_tables import apart, bases, wrong_answers
from overtone.report.table_formats import make_console, safe, to_terminal
from overtone.results.cases import Asked, CaseView, Said
from overtone.results.load import open_run
from overtone.results.reader_share import sentences
from overtone.results.summary import Summary, summarise_reading
from overtone.schema import Item
from overtone.text import by_kind, cut

MOST_TEXT = 2_000  # characters of one reply in the terminal


def print_run(folder: Path, file: IO[str] | None = None, *, signatures: bool = False) -> None:
    """Print the headline of a run folder, and on demand what each of its numbers is signed with."""
    reading = open_run(folder, light=True)
    own, others = first_screen(reading)
    place = shown(str(folder))
    more = f"{len(others)} more: {'; '.join(others)} (overtone table headline {place})" if others else ""
    if wants_judge(reading, own):
        more = f"no number yet: its replies have to be judged (overtone score {place} --judge SPEC)"
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
    """Print one run: its benchmark's own tables and where `more` of them are, its headline tables, what is missing, and
    its ledger."""
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
    """Print one case: what was heard, what was answered, what was said, level under level. Long replies are cut, unless
    they are wanted in full."""
    console = make_console(file)
    kind = "dialogue" if view.style in ("changed", "steady") else "style"
    facts = [view.cue or "no cue", f"{view.style} {kind}" if view.style else "", view.dimension, view.topic]
    console.print(f"[bold]{safe(view.case)}[/bold] · {safe(' · '.join(f for f in facts if f))}")
    context = next((one.item.context for one in view.all() if one.item.context), "")
    if context:
        console.print(f"before it: {safe(context)}")
    console.print(f"“{safe(view.words)}”")
    for title, asked in (
        ("the words", view.transcripts),
        ("the voice", view.voice),
        ("what was made of it", view.reasoning),
        ("the reply", view.replies),
    ):
        if asked:
            console.print(f"\n[bold]{title}[/bold]")
        for one in asked:
            _print_asked(console, one, full)


def _print_asked(console: Console, asked: Asked, full: bool) -> None:
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
    for said in asked.said:
        name = said.condition + (f" #{said.repeat + 1}" if said.repeat else "")
        texts = said.texts if full else [cut(text, MOST_TEXT, "; --full shows all") for text in said.texts]
        console.print(f"  {safe(name):<24} {safe(_verdict(said))}{safe(' / '.join(texts) or said.failure)}")
        for metric, why in said.why.items():
            found = said.scores.get(metric)
            console.print(f"  {'':<24} {safe(metric)} {'no value' if found is None else f'{found:g}'}: {safe(why)}")


def _print_turns(console: Console, item: Item) -> None:
    """What was said turn by turn, with the replies that the benchmark gives and those it would like to hear."""
    several = len(item.turns) > 1
    for number, turn in enumerate(item.turns, 1):
        told = (("recognised as", turn.heard), ("given reply", turn.given), ("reference", turn.reference))
        if several or turn.reference:
            console.print(f"  {f'turn {number}':<24} {f'“{safe(turn.words)}”' if turn.words else '(words not told)'}")
        for what, text in told:
            if text:
                console.print(f"  {what:<24} {safe(text)}")


def _verdict(said: Said) -> str:
    if said.state != "answered":
        return f"{said.state}: "
    if said.right is not None:
        how = said.choice or said.status
        return f"{'right' if said.right else 'wrong'} ({how}): "
    return f"{said.rate} {by_kind(said.wer, 'percent')}: " if said.wer is not None else ""


def _headline(console: Console, summary: Summary) -> None:
    pairs = [(0, c) for c in summary.conditions]
    to_terminal(console, [hearing_table(pairs)], hints=True)
    notes = (summary.source_note, *bases([(c.condition, c) for c in summary.conditions]), *sentences(summary.readers))
    for sentence in filter(None, notes):
        console.print(safe(sentence))
    to_terminal(console, [conversation_table(pairs, brief=True)])


def _ledger(console: Console, summary: Summary) -> None:
    rows = [("pending", "not asked yet; the same command goes on", summary.pending)] if summary.pending else []
    rows += [(row.kind, row.reason, row.count) for row in summary.ledger.rows]
    lines = [Line(None, "", (kind, reason), (text_cell(f"{n:,}"),)) for kind, reason, n in rows]
    title = "Failures and what else to know"
    to_terminal(console, [PartTable("ledger", title, "", ("kind", "reason"), ("count",), tuple(lines))])
    for note in summary.notes:
        console.print(f"note: {safe(note)}")
