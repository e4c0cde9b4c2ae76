"""Judges and the reader of a command: created from their SPECs, run alongside the model, and summarised in a line
each."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from overtone.errors import EXIT_BUDGET, EXIT_FAILURES, EXIT_OK
from overtone.paths import shown

if TYPE_CHECKING:
    from overtone.judges.judgement import Outcome
    from overtone.judges.policy import Judge
    from overtone.judges.read_choices import Readout
    from overtone.runs.asker import Policy
    from overtone.runs.limiter import Limiters
    from overtone.runs.store import Store
    from overtone.spec import Spec


class Judging:
    """The judges and the reader of one command. `add_outcome` and `add_readout` record their outcomes."""

    def __init__(self, specs: Sequence[Spec], reader: Spec | None = None) -> None:
        from overtone.scoring import check, check_reader

        self.judges = check((), specs)
        self.reader = check_reader(reader)
        self.no_reply = False  # whether the run has no reply at all
        self.outcomes: dict[str, Outcome] = {}
        self.readouts: dict[str, Readout] = {}

    def check_keys(self) -> None:
        """Raise UsageError if the key of a judge or of the reader is missing. Call it before the run."""
        from overtone.runs.session import check_key

        for one in (*self.judges, *([self.reader] if self.reader else ())):
            check_key(one.spec)

    def beside(self, limiters: Limiters, retries: Policy) -> Callable[[Store], AbstractAsyncContextManager[Any]] | None:
        """Return a context that judges the replies while the run continues, or None without judges."""
        if not self.judges:
            return None
        from overtone.judges.judge_run import beside

        log = logging.getLogger("overtone").info
        with_judges = functools.partial(beside, judges=self.judges, retries=retries)
        return functools.partial(with_judges, log=log, limiters=limiters, on_judge=self.add_outcome)

    def add_outcome(self, label: str, outcome: Outcome) -> None:
        """Record the outcome of a judge. It replaces an earlier outcome, and adds that one's requests and cost to its
        own."""
        if label in self.outcomes:
            outcome.requests += self.outcomes[label].requests
            outcome.cost += self.outcomes[label].cost
        self.outcomes[label] = outcome

    def add_readout(self, label: str, readout: Readout) -> None:
        """Record the outcome of the reader."""
        self.readouts[label] = readout

    @property
    def unstopped(self) -> list[Judge]:
        """The judges that may be asked again: those that did not stop early because of a budget or an unreachable
        endpoint."""
        return [j for j in self.judges if j.label not in self.outcomes or not self.outcomes[j.label].stopped]

    def lines(self) -> list[str]:
        read = [_reader_line(label, readout) for label, readout in self.readouts.items()]
        return read + [_line(label, outcome, self.no_reply) for label, outcome in self.outcomes.items()]

    def warn(self) -> None:
        """Print to stderr which judges and readers failed, or gave verdicts that are missing or unreadable.

        Commands that print no tables use this.
        """
        for label, readout in self.readouts.items():
            if _reader_failed(readout):
                print(f"overtone: {_reader_line(label, readout)}", file=sys.stderr)
        for label, outcome in self.outcomes.items():
            if outcome.stopped or outcome.failed or outcome.unread or outcome.empty:
                print(f"overtone: {_line(label, outcome, self.no_reply)}", file=sys.stderr)

    @property
    def exit_code(self) -> int:
        outcomes, readouts = self.outcomes.values(), self.readouts.values()
        if any(o.stopped == "budget" for o in (*outcomes, *(r.outcome for r in readouts))):
            return EXIT_BUDGET
        failed = any(o.failed or o.stopped or o.empty for o in outcomes) or any(map(_reader_failed, readouts))
        return EXIT_FAILURES if failed else EXIT_OK


def _reader_failed(readout: Readout) -> bool:
    silent = readout.unparsed > 0 and not (readout.read or readout.none)
    return bool(silent or readout.outcome.failed or readout.outcome.stopped)


def _reader_line(label: str, r: Readout) -> str:
    from overtone.judges.choice_reader import PRECISION, RECALL

    if not r.unparsed:
        return f"reader {label}: not asked, the rules read all {r.replies:,} answers"
    line = f"reader {label}: {r.read:,} of {r.replies:,} answers read, {r.none:,} without a choice, {r.left:,} not read"
    line += f"; {r.outcome.requests:,} requests" + (f", ${r.outcome.cost:.2f}" if r.outcome.cost else "")
    if r.refused and r.checked is not None:
        line += f"; not used: {r.checked.sentence}, at least {PRECISION:.2f} and {RECALL:.2f} are needed"
    elif r.checked is not None:
        line += f"; {r.checked.sentence}"
    elif r.left:
        line += "; its check is incomplete, so it read nothing"
    if r.outcome.stopped:
        line += f"; stopped ({r.outcome.stopped}): {shown(r.outcome.detail)}"
    return line + ("; run the same command again to resume" if r.left and not r.refused else "")


def _line(label: str, o: Outcome, no_reply: bool) -> str:
    line = f"judge {label}: {o.answered} verdicts, {o.unread} unreadable, {o.failed} missing"
    line += f", {o.skipped} with nothing to judge" if o.skipped else ""
    line += f"; {o.requests} requests" + (f", ${o.cost:.2f}" if o.cost else "")
    if o.stopped == "unreadable":
        line += (
            f"; stopped (unreadable): {shown(o.detail)}; try another model, or format=schema in its SPEC; "
            f"'overtone score RUN --forget {label}' removes its scores and verdicts"
        )
    elif o.stopped:
        line += f"; stopped ({o.stopped}): {shown(o.detail)}; 'overtone score RUN --judge …' resumes"
    elif no_reply:
        line += "; no reply to judge: the requests of the run failed or were not sent yet"
    elif not o.asked and o.empty:
        line += "; its rubrics apply to no reply of this run"
    return line
