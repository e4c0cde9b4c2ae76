"""The summary that `overtone run` prints at the end, about twelve lines: the run, its headline numbers, losses, and
next steps.

`overtone table` and `overtone run -v` print the tables in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from overtone.display.table_data import PartTable
from overtone.paths import shown
from overtone.report.headline_tables import first_screen, wants_judge
from overtone.report.side_tables import bases
from overtone.results.headline import has_own_tables
from overtone.results.headline_condition import by_condition, headline, talk_condition
from overtone.results.load import Reading, open_run
from overtone.results.measure_names import headline as headline_measures
from overtone.results.measures import Estimate
from overtone.results.reader_share import sentences
from overtone.results.summary import Summary, summarise_reading
from overtone.text import count, interval, value_of

NUMBERS = 6  # lines of numbers
REASONS = 2  # reasons named for each kind of loss
NOTES = 2  # warnings in full
ARROWS = {"higher": " ↑", "lower": " ↓"}
LOST = {"failure": "failed", "refusal": "refused", "extraction": "unreadable", "unscored": "not scored"}


class Number(NamedTuple):
    """A headline number: its name, its value, and its text."""

    name: str
    estimate: Estimate
    kind: str
    digits: int


def brief(folder: Path) -> list[str]:
    """Return a summary of a run folder in a few lines: headline numbers with their intervals, losses and warnings."""
    reading = open_run(folder, light=True)
    summary = summarise_reading(reading)
    head = f"{summary.benchmark} · {summary.model} · {summary.answered:,} of {summary.asked:,} answered"
    table = f"tables: overtone table {'headline' if has_own_tables(reading) else 'results'} {folder}"
    numbers = _number_lines(reading, folder)
    return [shown(line) for line in (head, *numbers, *_basis(summary), *_losses(summary), *_notes(summary), table)]


def _number_lines(reading: Reading, folder: Path) -> Iterator[str]:
    if wants_judge(reading, first_screen(reading)[0]):
        yield f"no number yet: its replies must be judged first (overtone score {shown(str(folder))} --judge SPEC)"
        return
    numbers = headline_numbers(reading)
    names = [number.name for number in numbers[:NUMBERS]]
    wide = max(map(len, names), default=0)
    for name, e, kind, digits in numbers[:NUMBERS]:
        unit = " %" if kind == "percent" else ""
        ends = interval(e, kind, digits)
        cells = (f"{value_of(e, kind, digits)}{unit}", f"[{ends}]" if ends else "no interval")
        yield f"  {name:<{wide}}  {cells[0]:>8}  {cells[1]:<16}  {e.scored:,} of {e.asked:,}"
    if len(numbers) > NUMBERS:
        yield f"  and {count(len(numbers) - NUMBERS, 'more number')} in the tables"


def headline_numbers(reading: Reading) -> list[Number]:
    """Return the numbers of a run that its headline shows: the benchmark's own, else the headline measures."""
    own, _ = first_screen(reading)
    return list(_own_numbers(own) if own else _measures(reading))


def _own_numbers(tables: list[PartTable]) -> Iterator[Number]:
    """Yield the numbers of a benchmark's own tables, row by row."""
    for table in tables:
        for line in table.lines:
            for head, cell in zip(table.heads, line.cells, strict=True):
                if cell.estimate is not None and cell.estimate.scored:
                    name = " · ".join(filter(None, (head, *line.names, line.condition)))
                    yield Number(name.replace("\N{NO-BREAK SPACE}", " "), cell.estimate, cell.kind, cell.digits)


def _measures(reading: Reading) -> Iterator[Number]:
    """Yield the headline measures. Measures of replies are read under the condition that represents the run, other
    measures under each condition."""
    talk = talk_condition([reading])[0]
    rows = by_condition(reading)
    for measure in headline_measures([reading]):
        asked = {}
        for condition, answers in rows.items():
            e = measure.estimate(headline(answers))
            if e.asked and (measure.task != "converse" or not talk or condition == talk):
                asked[condition] = e
        for condition, e in asked.items():
            where = f" · {condition}" if len(asked) > 1 or measure.task == "converse" else ""
            name = f"{measure.label}{ARROWS.get(measure.about.better, '')}{where}"
            yield Number(name, e, measure.about.shown, measure.about.digits)


def _basis(summary: Summary) -> Iterator[str]:
    lines = (summary.clips_note, *bases([(c.condition, c) for c in summary.conditions]), *sentences(summary.readers))
    yield from (line.replace(" The others are under “cues not validated”.", "") for line in lines if line)


def _losses(summary: Summary) -> Iterator[str]:
    """Yield one line for each kind of loss, with the most common reasons, or one line that says that nothing was
    lost."""
    lost = False
    if summary.pending:
        lost = True
        yield f"lost: {count(summary.pending, 'request')} not sent yet; the same command resumes"
    for kind, word in LOST.items():
        reasons = Counter({row.reason: row.count for row in summary.ledger.of(kind)})
        if reasons:
            lost = True
            named = ", ".join(f"{reason} ({n:,})" for reason, n in reasons.most_common(REASONS))
            more = f", {count(len(reasons) - REASONS, 'more reason')}" if len(reasons) > REASONS else ""
            yield f"lost: {sum(reasons.values()):,} {word}: {named}{more}"
    if not lost:
        yield "lost: nothing; every request was answered, read and scored"


def _notes(summary: Summary) -> Iterator[str]:
    for note in summary.notes[:NOTES]:
        yield f"note: {note}"
    if len(summary.notes) > NOTES:
        yield f"note: {count(len(summary.notes) - NOTES, 'more note')}; -v prints them"
