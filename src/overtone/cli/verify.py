"""Check that a run is undamaged: its database, its stored audio and the clips of its items. Changes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, EXIT_REQUIREMENT

NOTES = "exit codes: 0 fine, 1 damaged, 2 not a run"
EXAMPLES = ("overtone verify runs/echomind-cascade",)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="folder of a run; repeatable")


def main(args: argparse.Namespace) -> int:
    from overtone.paths import shown
    from overtone.runs.integrity import verify

    worst = EXIT_OK
    for folder in args.runs:
        result = verify(folder)
        checked = f"{result.replies:,} replies, {result.sounds:,} stored audio files, {result.clips:,} clips checked"
        print(shown(f"{folder} is {'damaged' if result.damage else 'fine'}: {checked}."))
        for line in result.damage:
            print(shown(f"  damaged: {line}."))
        for line in result.notes:
            print(shown(f"  note: {line}."))
        worst = EXIT_REQUIREMENT if result.damage else worst
    return worst
