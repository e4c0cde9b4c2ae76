"""Upgrade runs of an older store version in place. Each older file is kept as a copy beside the new one."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK

NOTES = "Commands that read a run never change it and need no upgrade. Commands that write one upgrade it themselves."
EXAMPLES = ("overtone migrate runs/monday", "overtone migrate runs/*")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="folder of a run; repeatable")


def main(args: argparse.Namespace) -> int:
    from overtone.paths import shown
    from overtone.runs.store import VERSION, Store
    from overtone.scores import known

    for folder in args.runs:
        Store.read(folder).close()  # a folder that is not a run is an error, not a new run
        with Store.create(folder) as store:
            kept = store.upgraded_from
            if not store.declarations():
                store.declare(known(store.meta().get("benchmark", "")))
        state = f"upgraded to version {VERSION}; the older file is {kept}" if kept else f"has version {VERSION} already"
        print(shown(f"{folder}: {state}."))
    return EXIT_OK
