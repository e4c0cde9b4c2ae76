"""Write a study's answers to a file, or its paragraph on methods."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from overtone.cli.studio import _study
from overtone.errors import EXIT_OK, UsageError
from overtone.paths import shown, user_path

SUMMARY = "write the answers to a file, or a paper's paragraph on methods"
EXAMPLES = (
    "overtone studio export study.toml -o labels.csv",
    "overtone studio export study.toml --format label-studio -o tasks.json",
    "overtone studio export study.toml --methods",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    flag = parser.add_argument
    flag(
        "--format", choices=("csv", "jsonl", "label-studio"), default="csv",
        help="csv (a label per row), jsonl (a screen per line) or label-studio (default: csv)",
    )  # fmt: skip
    flag("--methods", action="store_true", help="write a paragraph on methods in plain English instead")
    flag("--withdrawn", action="store_true", help="print the people whose rows must be deleted from earlier copies")
    flag("-o", "--output", metavar="FILE", type=Path, help="file to write (not needed for --methods and --withdrawn)")


def main(args: argparse.Namespace) -> int:
    """Export a study."""
    study, store = _study.open_store(args)
    with store:
        if args.withdrawn:
            for one in store.withdrawals.all():
                print(one.label)
            return EXIT_OK
        if args.methods:
            from overtone.paths import write_whole
            from overtone.studio.labels.collect import collect, frozen_units
            from overtone.studio.methods import methods

            text = methods(study, collect(study, store), units=list(frozen_units(store).values()))
            if args.output is None:
                sys.stdout.write(text)
            else:
                write_whole(user_path(args.output), text.encode())
            return EXIT_OK
        if args.output is None:
            raise UsageError("name the file to write: -o FILE")
        from overtone.studio.answer_export import export

        done = export(study, store, args.format, user_path(args.output))
    print(f"Written: {shown(str(done.path))} ({done.rows:,} rows)")
    if done.withdrawn:
        print(f"withdrawn since the study began: {', '.join(done.withdrawn)}; delete their rows from earlier copies:")
        for place in done.copies:
            print(f"  {shown(place)}")
    return EXIT_OK
