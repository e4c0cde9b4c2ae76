"""Recompute a run's scores from its stored replies; the model under test is never asked."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="a run's folder")
    parser.add_argument("-q", "--quiet", action="store_true", help="no tables")


def main(args: argparse.Namespace) -> int:
    from overtone.paths import shown
    from overtone.scoring import score_run

    for folder in args.runs:
        given = score_run(folder)
        if not args.quiet:
            from overtone.report.terminal import print_run

            print_run(folder)
            print(f"{shown(str(folder))}: {', '.join(f'{name} {count}' for name, count in given.items())}")
    return EXIT_OK
