"""Recompute a run's scores from its stored replies, or add metrics and judges; the model under test is never asked."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._options import add_score_flags
from overtone.errors import EXIT_OK


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="a run's folder")
    add_score_flags(parser)
    parser.add_argument("--signatures", action="store_true", help="say what each number is signed with")
    parser.add_argument("-q", "--quiet", action="store_true", help="no tables")


def main(args: argparse.Namespace) -> int:
    from overtone.cli._judges import Judging
    from overtone.paths import shown
    from overtone.scoring import score_run
    from overtone.spec import parse_spec

    worst = EXIT_OK
    for folder in args.runs:
        judging = Judging([parse_spec(text) for text in args.judge or ()])
        given = score_run(folder, metrics=args.metric or (), judges=judging.judges, on_judge=judging.told)
        if not args.quiet:
            from overtone.report.terminal import print_run

            print_run(folder, signatures=args.signatures)
            print(
                "\n".join(
                    [*judging.lines(), f"{shown(str(folder))}: {', '.join(f'{n} {c}' for n, c in given.items())}"]
                )
            )
        worst = max(worst, judging.exit_code)
    return worst
