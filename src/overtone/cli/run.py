"""Ask a model a benchmark's items, store every reply, score them and print the tables."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from overtone.cli._options import add_run_flags, settings_of
from overtone.errors import EXIT_BUDGET, EXIT_FAILURES, EXIT_INTERRUPTED, EXIT_OK, OvertoneError
from overtone.paths import shown, shown_lines

if TYPE_CHECKING:
    from overtone.runs.asking import Outcome
    from overtone.runs.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    add_run_flags(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="show each retry and failure")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no tables")


def main(args: argparse.Namespace) -> int:
    """Do every run that is asked for. One of several that cannot be done is told, and the others go on."""
    worst = EXIT_OK
    runs = settings_of(args)
    for settings in runs:
        try:
            code = _one(settings, verbose=args.verbose, quiet=args.quiet)
        except OvertoneError as error:
            if len(runs) == 1:
                raise
            print(f"overtone: {settings.folder}: {shown(str(error))}", file=sys.stderr)
            code = error.exit_code
        worst = max(worst, code)
        if code == EXIT_INTERRUPTED:
            break
    return worst


def _one(settings: Settings, *, verbose: bool, quiet: bool) -> int:
    import asyncio

    from overtone.cli._judges import Judging
    from overtone.cli._progress import Display
    from overtone.runs.session import Hooks, execute
    from overtone.scoring import score_run

    judging = Judging(settings.judges)
    with Display(settings, verbose=verbose, quiet=quiet) as display:
        hooks = Hooks(display.start, display.update, signals=True, beside=judging.beside())
        outcome = asyncio.run(execute(settings, hooks))
    judges = judging.unstopped if outcome.stopped != "interrupted" else ()
    score_run(settings.folder, again=False, metrics=settings.metrics, judges=judges, on_judge=judging.told)
    if not quiet:
        from overtone.report.terminal import print_run

        print_run(settings.folder)
        print("\n".join([*judging.lines(), _closing(settings, outcome)]))
    return _exit_code(outcome) or judging.exit_code


def _exit_code(outcome: Outcome) -> int:
    if outcome.stopped == "interrupted":
        return EXIT_INTERRUPTED
    if outcome.stopped == "budget":
        return EXIT_BUDGET
    return EXIT_FAILURES if outcome.failed or outcome.stopped else EXIT_OK


def _closing(settings: Settings, outcome: Outcome) -> str:
    folder = shown_lines(str(settings.folder))
    lines = [f"{outcome.answered} answered, {outcome.failed} failed, {outcome.requests} requests → {folder}"]
    if outcome.stopped:
        lines.append(
            f"stopped ({outcome.stopped}): {shown_lines(outcome.detail)}; the same command goes on where this ended"
        )
    elif outcome.failed:
        lines.append("the same command again tries only what failed")
    lines.append(f"next: overtone report {folder}")
    return "\n".join(lines)
