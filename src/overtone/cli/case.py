"""Show one case of a run: transcript, voice answers, reasoning answers and replies side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument(
        "case",
        metavar="CASE",
        nargs="?",
        help="e.g. synthesis/id_854/target, or an item's id; without it, all are listed",
    )
    parser.add_argument("--full", action="store_true", help="show long replies in full (default: their beginning)")


def main(args: argparse.Namespace) -> int:
    from overtone.analysis.cases import case
    from overtone.paths import shown
    from overtone.runs.store import Store

    with Store.read(args.run) as store:
        if args.case is None:
            for name, cue in store.cases():
                print(f"{shown(name)}  {shown(cue)}")
            return EXIT_OK
        from overtone.report.terminal import print_case

        print_case(case(store, args.case), full=args.full)
    return EXIT_OK
