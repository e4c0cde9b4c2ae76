"""Run a model on a benchmark: ask every item, store and score the replies, print the headline."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._run_flags import add_run_flags, asked_of
from overtone.errors import EXIT_BUDGET, EXIT_FAILURES, EXIT_INTERRUPTED, EXIT_OK, OvertoneError
from overtone.paths import shown, shown_lines

if TYPE_CHECKING:
    from overtone.cli._runs_at_once import Asked
    from overtone.runs.asker import Outcome
    from overtone.runs.limiter import Limiters
    from overtone.runs.settings import Settings

EXAMPLES = (
    "overtone run echomind --data data/echomind --model openai:gpt-4o-audio-preview",
    "overtone run open --data clips --model cascade --limit 50 --out runs/trial",
)


def add(parser: argparse.ArgumentParser) -> None:
    add_run_flags(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="runs of a run file asked at the same time (default: 1)")
    flag = parser.add_argument_group("output").add_argument
    flag("--report", metavar="FILE.html", help="file for one report of all runs, written at the end")
    flag("-v", "--verbose", action="store_true", help="show each retry and failure, and all tables")
    flag("-q", "--quiet", action="store_true", help="print no progress and no summary")


def main(args: argparse.Namespace) -> int:
    """Execute all requested runs. If one of several fails, report the error and continue with the others."""
    from overtone.runs.limiter import Limiters

    worst = EXIT_OK
    runs, page, jobs = asked_of(args)
    if page:
        from overtone.report.page import check_writable

        check_writable(page)
    limiters = Limiters()
    missing: dict[Path, str] = {}
    asked: dict[Path, Asked] = {}
    if jobs > 1 and len(runs) > 1:
        from overtone.cli._runs_at_once import ask_together

        asked = ask_together(runs, jobs, limiters, verbose=args.verbose, quiet=args.quiet)
    for settings in runs:
        try:
            before = asked.get(settings.folder)
            if before is not None and before.outcome is None and before.error is None:
                return max(worst, EXIT_INTERRUPTED)  # it was not begun
            code = _one(settings, limiters, before, verbose=args.verbose, quiet=args.quiet)
        except OvertoneError as error:
            if len(runs) == 1:
                raise
            missing[settings.folder] = str(error)
            print(f"overtone: {settings.folder}: {shown(str(error))}", file=sys.stderr)
            code = error.exit_code
        worst = max(worst, code)
        if code == EXIT_INTERRUPTED:
            return worst
    if page:
        worst = max(worst, _report([run.folder for run in runs], page, missing, quiet=args.quiet))
    return worst


def _report(folders: list[Path], page: Path, missing: dict[Path, str], *, quiet: bool) -> int:
    """Write one report of all runs. Failed runs are named, but their folders are not read, because they may hold other
    runs."""
    from overtone.report.page import write_report

    done = [folder for folder in folders if folder not in missing]
    if not done:
        print("overtone: no report written, because all runs failed", file=sys.stderr)
        return EXIT_OK  # the runs' own exit codes are worse
    try:
        write_report(done, page, missing=[f"{folder} is not in this report: {why}" for folder, why in missing.items()])
    except OvertoneError as error:
        print(f"overtone: {shown(str(error))}", file=sys.stderr)
        return error.exit_code
    if not quiet:
        print(f"report of {len(done)} of {len(folders)} runs → {shown(str(page))}")
    return EXIT_OK


def _one(settings: Settings, limiters: Limiters, asked: Asked | None, *, verbose: bool, quiet: bool) -> int:
    """Ask and score a run, or only score one that was asked together with others. Return the exit code."""
    import asyncio

    from overtone.cli._judges import Judging
    from overtone.cli._progress import Display
    from overtone.report.run_summary import brief
    from overtone.runs.asker import Policy
    from overtone.runs.session import Hooks, execute
    from overtone.scoring import score_run

    if asked is not None and asked.error is not None:
        raise asked.error
    judging = asked.judging if asked else Judging(settings.judges, settings.reader)
    judging.check_keys()
    with Display(verbose=verbose, quiet=quiet) as display:
        outcome = asked.outcome if asked else None
        if outcome is None:
            beside = judging.beside(limiters, Policy(wait=settings.wait, patience=settings.patience))
            hooks = Hooks(display.start, display.update, signals=True, limiters=limiters, beside=beside)
            outcome = asyncio.run(execute(settings, hooks))
        judges = judging.unstopped if outcome.stopped != "interrupted" else ()
        score_run(
            settings.folder,
            again=False,
            metrics=settings.metrics,
            judges=judges,
            reader=judging.reader if outcome.stopped != "interrupted" else None,
            limiters=limiters,
            on_progress=display.scoring,
            on_judge=judging.add_outcome,
            on_reader=judging.add_readout,
        )
        display.phase("reading the results")
        lines = [] if quiet or verbose else brief(settings.folder)
    if quiet:
        judging.warn()
        return _exit_code(outcome) or judging.exit_code
    if verbose:
        from overtone.report.terminal import print_run

        print_run(settings.folder)
    print("\n".join([*lines, *judging.lines(), _closing(settings, outcome)]))
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
            f"stopped ({outcome.stopped}): {shown_lines(outcome.detail)}; run the same command again to resume"
        )
    elif outcome.failed:
        lines.append("run the same command again to retry the failed requests")
    if outcome.warning:
        lines.append(f"warning: {outcome.warning}")
    if settings.part is None:
        lines.append(f"next: overtone report {folder}")
    else:
        lines.append(f"when all shards are done: overtone merge {shown_lines(str(settings.whole_folder))}-shard-*")
    return "\n".join(lines)
