"""Recompute the scores of a run from its stored replies, or add metrics and judges. Never asks the tested model."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._run_flags import add_ray_flags, add_score_flags
from overtone.errors import EXIT_OK, UsageError

EXAMPLES = ("overtone score runs/monday --metric nisqa", "overtone score runs/monday --judge openai:gpt-4o")


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("runs", metavar="RUN", nargs="+", type=Path, help="folder of a run; repeatable")
    add_score_flags(parser)
    flag(
        "--forget",
        metavar="JUDGE",
        action="append",
        default=[],
        help="judge or reader (label or SPEC) whose scores and verdicts are removed first; repeatable",
    )
    add_ray_flags(parser, "compute slow metrics")
    flag("--signatures", action="store_true", help="print the signature of each score")
    flag("-q", "--quiet", action="store_true", help="print no tables")


def main(args: argparse.Namespace) -> int:
    from overtone.cluster.ray_tasks import jobs_on_ray

    if args.forget:
        _forget(args.runs, args.forget)
    with jobs_on_ray(args.ray, args.ray_address, args.runs):
        return _score_all(args)


def _score_all(args: argparse.Namespace) -> int:
    from overtone.cli._judges import Judging
    from overtone.cli._progress import Display
    from overtone.paths import shown
    from overtone.runs.store import Store
    from overtone.scoring import score_run
    from overtone.spec import parse_spec

    worst = EXIT_OK
    for folder in args.runs:
        reader = parse_spec(args.reader) if args.reader else None
        judging = Judging([parse_spec(text) for text in args.judge or ()], reader)
        given = {}
        if not args.forget or args.judge or args.metric or args.reader:
            with Display(quiet=args.quiet) as display:
                given = score_run(
                    folder,
                    metrics=args.metric or (),
                    judges=judging.judges,
                    reader=judging.reader,
                    on_progress=display.scoring,
                    on_judge=judging.add_outcome,
                    on_reader=judging.add_readout,
                )
            with Store.read(folder) as store:
                judging.no_reply = next(store.answered(), None) is None
        if args.quiet:
            judging.warn()
        else:
            from overtone.report.terminal import print_run

            print_run(folder, signatures=args.signatures)
            counts = ", ".join(f"{n} {c}" for n, c in given.items() if c) or "no reply was scored"
            print("\n".join([*judging.lines(), *([f"{shown(str(folder))}: {counts}"] if given else [])]))
        worst = max(worst, judging.exit_code)
    return worst


def _forget(runs: list[Path], judges: list[str]) -> None:
    """Remove the scores and verdicts of judges from runs, and print the counts. Raises UsageError for an unknown
    judge."""
    from overtone.judges.forget import forget
    from overtone.paths import shown

    for judge in judges:
        removed = {folder: forget(folder, judge) for folder in runs}
        if not any(one.scores or one.verdicts for one in removed.values()):
            known = sorted({label for one in removed.values() for label in one.known})
            held = f"; judges here: {', '.join(map(shown, known))}" if known else "; no judge has scored these replies"
            raise UsageError(f"--forget {judge}: no run has scores or verdicts of this judge{held}")
        for folder, one in removed.items():
            print(f"{shown(str(folder))}: {one.sentence}")
