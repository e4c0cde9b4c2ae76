"""Output of `overtone judge`: agreement tables, audit sentences, and results of the hearing test."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from overtone import text
from overtone.errors import EXIT_BUDGET, EXIT_FAILURES, EXIT_OK
from overtone.judge_trust.people_agreement import MEASURES, Measure
from overtone.judge_trust.validation import BAR, Validation
from overtone.paths import shown, write_whole
from overtone.report.table_formats import make_console, safe
from overtone.report.validation_page import NO_CEILING, interval
from overtone.text import number

if TYPE_CHECKING:
    from rich.table import Table

    from overtone.judge_trust.hearing_test import Test
    from overtone.judge_trust.judge_consistency import Consistent
    from overtone.judge_trust.scale_questions import Contrast
    from overtone.judges.judgement import Outcome
    from overtone.judges.rubric import Rubric

_EVERY = 5.0  # seconds between two lines of progress


class Counter:
    """A progress line on stderr every few seconds, with the number of judged subjects."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self._said = time.monotonic()

    def __enter__(self) -> Counter:
        print(f"{shown(self.name)}: {self.total} to judge", file=sys.stderr, flush=True)
        return self

    def update(self, done: int) -> None:
        if time.monotonic() - self._said > _EVERY:
            self._said = time.monotonic()
            print(f"{done}/{self.total}", file=sys.stderr, flush=True)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None


def add_up(total: Outcome, outcome: Outcome) -> None:
    """Add the counts of one outcome to a total."""
    for field in ("asked", "answered", "cached", "unread", "failed", "requests", "cost", "by_rule"):
        setattr(total, field, getattr(total, field) + getattr(outcome, field))
    total.stopped, total.detail = outcome.stopped or total.stopped, outcome.detail or total.detail


def write_json(path: Path, content: object) -> None:
    """Write results as indented JSON, and create the folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.format(msgspec.json.encode(content)))


def finish(outcome: Outcome, written: Path) -> int:
    """Print the path of the results and the missing verdicts. Return the exit code."""
    print(f"Written: {shown(str(written))}")
    if outcome.asked:
        cost = f", ${outcome.cost:.2f}" if outcome.cost else ""
        print(
            f"{outcome.answered} of {outcome.asked} verdicts, {outcome.cached} of them from the cache; "
            f"{outcome.unread} unreadable, {outcome.failed} failed; {outcome.requests} requests{cost}."
        )
    if outcome.stopped == "unreadable":
        print(f"Stopped: {shown(outcome.detail)}. Another model or format=schema in the judge's SPEC may help.")
        return EXIT_FAILURES
    if outcome.stopped:
        print(f"Stopped: {shown(outcome.detail)}; run the same command again to resume.")
    if outcome.stopped == "budget":
        return EXIT_BUDGET
    if outcome.failed:
        print("Run the same command again to retry the failed requests.")
        return EXIT_FAILURES
    return EXIT_FAILURES if outcome.asked and outcome.empty else EXIT_OK


def remember(validation: Validation, rubric: Rubric, identity: str) -> None:
    """Store the validation if a dimension passed; delete the stored one if none did."""
    from overtone.judges import trust_record

    passed = tuple(key for key, good in validation.passed.items() if good)
    if not passed:
        trust_record.forget(identity, rubric, how=trust_record.PEOPLE)
        print(
            f"Not validated: the lower limit of α is below {BAR:g} in every dimension. "
            "The judge's scores stay marked unvalidated."
        )
        return
    worst = min(d.agreement["alpha"].low or 0.0 for d in validation.dimensions if d.passed)
    text = f"α with people at least {worst:.2f} on {validation.labels}, {validation.units} units."
    trust_record.write(identity, rubric, passed, text, how=trust_record.PEOPLE)
    print(f"Validated for {', '.join(passed)} of rubric {rubric.name}.")


def print_validation(validation: Validation) -> None:
    console = make_console()
    about = f"against people · rubric {safe(validation.rubric)} · {safe(validation.labels)}"
    console.print(f"[bold]{safe(validation.judge)}[/bold] {about}")
    console.print(f"{validation.units} units in {validation.groups} groups; in brackets 95 % intervals by group")
    for d in validation.dimensions:
        heads = ["", "judge and people"]
        if d.ceiling:
            heads += ["a person and the others", "the judge and those others", "person − judge"]
        name = d.label if d.label == d.key else f"{d.label} ({d.key})"
        console.print(f"\n[bold]{safe(name)}: {'validated' if d.passed else 'not validated'}[/bold]")
        table = _table("", heads)
        for key, name in MEASURES.items():
            if key in d.agreement:
                cells = [d.agreement[key]]
                if d.ceiling:
                    cells += [part[key] for part in (d.ceiling.people, d.ceiling.judge, d.ceiling.difference)]
                table.add_row(name, *(safe(interval(cell)) for cell in cells))
        console.print(table)
        console.print(_counted(d.units, d.unjudged, d.undecided))
        if d.ceiling is None:
            console.print(NO_CEILING)
    console.print("[bold]Audits[/bold]")
    for finding in validation.findings:
        name = f"{finding.audit}, {finding.dimension}" if finding.dimension else finding.audit
        mark = {None: " ", True: "!", False: "✓"}[finding.off]
        console.print(f"{mark} {safe(name)}: {safe(finding.sentence)}{_limits(finding.low, finding.high)}")
    for note in validation.notes:
        console.print(safe(note) if note.startswith("warning: ") else f"note: {safe(note)}")


def _limits(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else safe(f" [{number(low)} to {number(high)}]")


def _counted(units: int, unjudged: int, undecided: int) -> str:
    more = [f"{n} {what}" for n, what in ((unjudged, "without a verdict"), (undecided, "undecided")) if n]
    return ", ".join([f"{units} units compared", *more])


def print_heard(tests: Sequence[Test], gaps: Mapping[str, Measure]) -> None:
    from overtone.judge_trust import hearing_test

    console = make_console()
    table = _table("Which recording? chance 50 %", ["judge", "test", "right", "verdicts", "missing", "off the menu"])
    for test in tests:
        for part in test.parts:
            row = [test.judge, part.part, _percent(part.accuracy), part.verdicts, part.missing, part.unread]
            table.add_row(*(safe(str(cell)) for cell in row))
            for emotion, accuracy in part.by_emotion.items():
                table.add_row("", f"  {safe(emotion)}", safe(_percent(accuracy)), "", "", "")
    console.print(table)
    for test in tests:
        console.print(f"{safe(test.judge)}: {safe(hearing_test.sentence(test))}")
    for name, gap in gaps.items():
        text = f"{name}: {tests[0].judge} − {tests[1].judge} on the same pairs: {_percent(gap)}"
        console.print(safe(text))


def _percent(share: Measure) -> str:
    ends = text.interval(share)
    return text.percent(share.value, 1) + (f" [{ends}]" if ends else "")


def print_consistency(consistency: Sequence[Consistent]) -> None:
    """Print the agreement of each pair of judges, and of each judge with people, against the threshold."""
    from overtone.judge_trust.judge_consistency import LINE

    console = make_console()
    line = text.percent(LINE)
    sides = {"above": f"above {line}", "below": f"below {line}", "across": f"{line} lies within", "unknown": "–"}
    for d in consistency:
        steps = ", five steps as three" if d.coarse else ""
        table = _table(
            f"Who says the same: {d.label} ({d.key}){steps}", ["", "the same", "units", f"the line of {line}"]
        )
        for couple in (*d.judges, *d.people):
            who = f"{couple.first} and {couple.second}"
            table.add_row(safe(who), safe(_percent(couple.same)), str(couple.same.rows), sides[couple.side])
        console.print(table)
        console.print(safe(f"{d.sentence} Krippendorff's α over all judges: {interval(d.alpha)}."))


def print_answers(answers: Sequence[Contrast], skipped: Sequence[str]) -> None:
    console = make_console()
    for answer in answers:
        heads = ["", answer.first, answer.second, "difference"]
        table = _table(f"{answer.question}, {answer.dimension} ({answer.units} units)", heads)
        for key, name in MEASURES.items():
            if key in answer.compared.difference:
                sides = (answer.compared.first, answer.compared.second, answer.compared.difference)
                table.add_row(name, *(safe(interval(side[key])) for side in sides))
        console.print(table)
        console.print(safe(answer.sentence))
    for line in skipped:
        console.print(f"not asked: {safe(line)}")


def print_rubric(rubric: Rubric) -> None:
    """Print the messages that a judge receives verbatim, with a placeholder for the judged content."""
    from overtone.judges.contract import Contract
    from overtone.judges.judge_input import Subject
    from overtone.judges.judge_messages import build_messages

    print(f"{rubric.identity}: {rubric.title}")
    print(f"Measures: {rubric.measures}\nCannot see: {rubric.cannot_see}\nSource: {rubric.source}\n")
    texts = dict.fromkeys([*rubric.shows, *(f"{key}_{n}" for n in (1, 2) for key in rubric.shows)], "…")
    silent = msgspec.structs.replace(rubric, hears=())
    messages = build_messages(
        silent, rubric.dimensions, Contract(rubric.dimensions), Subject("", "", texts), False, "nothing"
    )
    for message in messages:
        print(f"── {message.role} " + "─" * 40)
        print(message.text)
    if rubric.hears:
        print("\nBefore the form of the answer it hears: " + ", ".join(rubric.heading(key) for key in rubric.hears))


def _table(title: str, columns: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(title=safe(title) or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(columns):
        table.add_column(safe(name), justify="right" if place else "left")
    return table
