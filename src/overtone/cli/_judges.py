"""Judges on the command line: made from their SPECs, put beside a run, and what became of each in one line."""

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
    from overtone.judges.panel import Outcome
    from overtone.judges.policy import Judge
    from overtone.runs.limiter import Limiters
    from overtone.runs.store import Store
    from overtone.spec import Spec


class Judging:
    """The judges of one command. `told` hears how each fared."""

    def __init__(self, specs: Sequence[Spec]) -> None:
        from overtone.scoring import check

        self.judges = check((), specs)
        self.outcomes: dict[str, Outcome] = {}

    def beside(self, limiters: Limiters) -> Callable[[Store], AbstractAsyncContextManager[Any]] | None:
        """What a run is given so that its replies are judged as they come."""
        if not self.judges:
            return None
        from overtone.judges.over_run import beside

        log = logging.getLogger("overtone").info
        return functools.partial(beside, judges=self.judges, log=log, limiters=limiters, on_judge=self.told)

    def told(self, label: str, outcome: Outcome) -> None:
        """A judge has gone over the run. The last time counts; what was spent before is added."""
        if label in self.outcomes:
            outcome.requests += self.outcomes[label].requests
            outcome.cost += self.outcomes[label].cost
        self.outcomes[label] = outcome

    @property
    def unstopped(self) -> list[Judge]:
        """Those that may be asked more: no budget is spent twice, and nobody who is gone is called again."""
        return [j for j in self.judges if j.label not in self.outcomes or not self.outcomes[j.label].stopped]

    def lines(self) -> list[str]:
        return [_line(label, outcome) for label, outcome in self.outcomes.items()]

    def warn(self) -> None:
        """Write to stderr which judges failed or gave no verdict: for a command that prints nothing else."""
        for label, outcome in self.outcomes.items():
            if outcome.stopped or outcome.failed or outcome.empty:
                print(f"overtone: {_line(label, outcome)}", file=sys.stderr)

    @property
    def exit_code(self) -> int:
        outcomes = self.outcomes.values()
        if any(o.stopped == "budget" for o in outcomes):
            return EXIT_BUDGET
        return EXIT_FAILURES if any(o.failed or o.stopped or o.empty for o in outcomes) else EXIT_OK


def _line(label: str, o: Outcome) -> str:
    line = f"judge {label}: {o.answered} verdicts, {o.unread} unreadable, {o.failed} missing"
    line += f", {o.skipped} with nothing to judge" if o.skipped else ""
    line += f"; {o.requests} requests" + (f", ${o.cost:.2f}" if o.cost else "")
    if o.stopped == "unreadable":
        line += (
            f"; stopped (unreadable): {shown(o.detail)}; try another model, or format=schema in its SPEC; "
            f"'overtone score RUN --forget {label}' removes what it gave"
        )
    elif o.stopped:
        line += f"; stopped ({o.stopped}): {shown(o.detail)}; 'overtone score RUN --judge …' resumes"
    elif not o.asked and o.empty:
        line += "; no reply of this run is one that its rubrics ask about"
    return line
