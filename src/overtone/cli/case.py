"""Show one case of a run: its transcript, voice answers, reasoning answers and replies."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK

EXAMPLES = ("overtone case runs/monday", "overtone case runs/monday synthesis/id_854/target --full")


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("run", metavar="RUN", type=Path, help="folder of a run")
    flag(
        "case",
        metavar="CASE",
        nargs="?",
        help="case, e.g. synthesis/id_854/target, or the id of an item; omit it to list all cases",
    )
    flag("--full", action="store_true", help="show long replies in full (default: only their beginning)")


def main(args: argparse.Namespace) -> int:
    from overtone.paths import shown
    from overtone.results.cases import case
    from overtone.runs.store import Store

    with Store.read(args.run) as store:
        if args.case is None:
            for name, cue in store.cases():
                print(f"{shown(name)}  {shown(cue)}")
            return EXIT_OK
        from overtone.report.terminal import print_case

        print_case(case(store, args.case), full=args.full)
    return EXIT_OK
