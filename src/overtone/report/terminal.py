"""A run's headline in the terminal: tables like the paper's, plain text where nobody looks at colours.

Model text can hold anything; it is escaped for rich's markup and its control characters are written out.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from overtone.analysis.cases import Asked, CaseView, Said
from overtone.analysis.measures import Estimate
from overtone.analysis.reading import open_run
from overtone.analysis.summary import ConditionSummary, Summary, summarise_reading
from overtone.paths import shown
from overtone.report import format as fmt
from overtone.report.apart import apart, bases, wrong_answers
from overtone.report.replies import agreement, alignment, following, judged_tables, plain, spoken
from overtone.report.table import Cell, PartTable
from overtone.report.tables import conversations, hearing, talk_columns


def print_run(folder: Path, file: IO[str] | None = None, *, signatures: bool = False) -> None:
    """Print the headline of a run folder, and on demand what each of its numbers is signed with."""
    reading = open_run(folder, light=True)
    print_summary(summarise_reading(reading), file)
    if signatures:
        console = make_console(file)
        for metric, signature in sorted(reading.signatures.items()):
            console.print(f"{safe(metric)}: {safe(signature)}", soft_wrap=True)


def print_summary(summary: Summary, file: IO[str] | None = None, *, width: int | None = None) -> None:
    """Print one run: its headline tables, what is missing, and its ledger."""
    console = make_console(file, width)
    asked = f"{summary.answered:,} of {summary.asked:,} answered"
    extra = [f"{n:,} {what}" for n, what in ((summary.failed, "failed"), (summary.pending, "pending")) if n]
    console.print(f"[bold]{safe(summary.benchmark)}[/bold] · {safe(summary.model)} · {', '.join([asked, *extra])}")
    _headline(console, summary)
    numbered = [(0, c) for c in summary.conditions]
    replies = (*judged_tables(numbered)[:1], following(numbered), *spoken(numbered, brief=True))
    replies += (*alignment([summary], brief=True), *agreement([summary]))
    for part in (*map(plain, replies), wrong_answers(numbered), *apart(numbered)):
        _part(console, part)
    _ledger(console, summary)


def print_case(view: CaseView, file: IO[str] | None = None) -> None:
    """Print one case: what was heard, what was answered, what was said, level under level."""
    console = make_console(file)
    kind = "dialogue" if view.style in ("changed", "steady") else "style"
    facts = [view.cue or "no cue", f"{view.style} {kind}", view.dimension, view.topic]
    console.print(f"[bold]{safe(view.case)}[/bold] · {safe(' · '.join(f for f in facts if f))}")
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
            _print_asked(console, one)


def _print_asked(console: Console, asked: Asked) -> None:
    item = asked.item
    if item.question:
        console.print(f"{safe(item.category)}: {safe(item.question)}")
    for option in item.options:
        mark = "✓" if option.letter == item.gold else " "
        origin = f"  ({option.provenance} reading)" if option.provenance else ""
        console.print(f"  {mark} {safe(option.letter)}. {safe(option.text + origin)}")
    for reference in item.references:
        console.print(f"  {'reference':<24} {safe(reference)}")
    for number, turn in enumerate(item.turns, 1):
        if turn.reference:
            console.print(f"  {f'turn {number}':<24} “{safe(turn.words)}”")
            console.print(f"  {'reference':<24} {safe(turn.reference)}")
    for said in asked.said:
        name = said.condition + (f" #{said.repeat + 1}" if said.repeat else "")
        console.print(f"  {safe(name):<24} {safe(_verdict(said))}{safe(' / '.join(said.texts) or said.failure)}")
        for metric, why in said.why.items():
            found = said.scores.get(metric)
            console.print(f"  {'':<24} {safe(metric)} {'no value' if found is None else f'{found:g}'}: {safe(why)}")


def _verdict(said: Said) -> str:
    if said.state != "answered":
        return f"{said.state}: "
    if said.right is not None:
        how = said.choice or said.status
        return f"{'right' if said.right else 'wrong'} ({how}): "
    return f"WER {fmt.percent(said.wer)}: " if said.wer is not None else ""


def make_console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """A console that writes no escape codes unless a terminal reads them; a log gets wide, unfolded lines."""
    console = Console(file=file, highlight=False, width=width)
    if not console.is_terminal and width is None:
        console = Console(file=file, highlight=False, width=160, color_system=None)
    return console


def safe(text: str) -> str:
    """Text of others, on one line, without control characters and without markup."""
    return escape(shown(text))


def _headline(console: Console, summary: Summary) -> None:
    table = _table("Hearing and reasoning", ["run", "condition", *(f"{c.label} {c.better}" for c in fmt.HEARING)])
    for c in summary.conditions:
        for over, measures in hearing(c):
            cells = [_cell(measures.get(col.measure)) for col in fmt.HEARING]
            table.add_row(safe(summary.model), _condition(c, over), *cells)
    if table.row_count:
        console.print(table)
        console.print("percent; in brackets the 95 % interval by script; n scored of n asked; bounds if any is missing")
    for sentence in bases([(c.condition, c) for c in summary.conditions]):
        console.print(safe(sentence))
    _conversation(console, summary)


def _condition(c: ConditionSummary, over: str) -> str:
    return safe(c.condition) + (f"\n{safe(over)}" if over else "")


def _conversation(console: Console, summary: Summary) -> None:
    rows = [(c, over, t) for c in summary.conditions for over, t in conversations(c)]
    measured = [m for m in talk_columns(t for *_, t in rows) if not m.more]
    columns = [
        "run",
        "condition",
        "replies",
        *(m.label for m in measured),
        "words",
        "spoken",
        "latency, median",
        "95 %",
    ]
    table = _table("Conversation", columns)
    for c, over, t in rows:
        table.add_row(
            safe(summary.model),
            _condition(c, over),
            f"{t.replies:,} of {t.asked:,}",
            *(_cell(t.measures.get(m.name), m.kind, m.digits) for m in measured),
            fmt.NONE if t.words is None else f"{t.words:.1f}",
            f"{t.with_audio:,}",
            fmt.seconds(t.latency_median),
            fmt.seconds(t.latency_p95),
        )
    if table.row_count:
        console.print(table)


def _part(console: Console, part: PartTable) -> None:
    table = _table(part.title, ["condition", *part.names, *part.heads], left=("condition", *part.names))
    for line in part.lines:
        table.add_row(safe(line.condition), *map(safe, line.names), *map(_any_cell, line.cells))
    if table.row_count:
        console.print(table)


def _any_cell(cell: Cell) -> str:
    if cell.kind == "text":
        return "\n".join(map(safe, filter(None, (cell.text, cell.small))))
    if cell.estimate is None:
        return fmt.NONE
    small = "\n".join(map(safe, cell.small.split(" · "))) if cell.small else ""
    return _cell(cell.estimate, cell.kind, cell.digits) + (f"\n{small}" if small else "")


def _ledger(console: Console, summary: Summary) -> None:
    table = _table("Failures and what else to know", ["kind", "reason", "count"])
    if summary.pending:
        table.add_row("pending", "not asked yet; the same command goes on", f"{summary.pending:,}")
    for row in summary.ledger.rows:
        table.add_row(row.kind, safe(row.reason), f"{row.count:,}")
    if table.row_count:
        console.print(table)
    for note in summary.notes:
        console.print(f"note: {safe(note)}")


def _table(title: str, columns: list[str], left: tuple[str, ...] = ("run", "condition", "kind", "reason")) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", overflow="fold")
    return table


def _cell(e: Estimate | None, kind: str = "percent", digits: int = 2) -> str:
    if e is None:
        return fmt.NONE
    if e.value is None:
        return f"{fmt.NONE}\n{fmt.counted(e)}"
    between = fmt.between(e, kind, digits)
    lines = [fmt.written(e, kind, digits) + (escape(f" [{between}]") if between else ""), fmt.counted(e)]
    if missing := fmt.bounds(e, kind, digits):
        lines.append(f"bounds {missing}")
    return "\n".join(lines)
