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
        found = verify(folder)
        checked = f"{found.replies:,} replies, {found.sounds:,} stored audio files, {found.clips:,} clips checked"
        print(shown(f"{folder} is {'damaged' if found.damage else 'fine'}: {checked}."))
        for line in found.damage:
            print(shown(f"  damaged: {line}."))
        for line in found.notes:
            print(shown(f"  note: {line}."))
        worst = EXIT_REQUIREMENT if found.damage else worst
    return worst
