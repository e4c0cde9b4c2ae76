"""End a study: no more answers, labels in the runs, payment ids erased."""

from __future__ import annotations

import argparse
import sys

from overtone.cli.studio import _study
from overtone.errors import EXIT_FAILURES, EXIT_OK
from overtone.paths import shown

SUMMARY = "end a study: no more answers, labels written into the runs, payment ids erased"
EXAMPLES = ("overtone studio close study.toml",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")


def main(args: argparse.Namespace) -> int:
    """End a study."""
    from overtone.studio import closing

    study, store = _study.open_store(args)
    with store:
        if not args.yes and sys.stdin.isatty() and not _agreed(study.title, len(store.people.payments())):
            print("nothing was changed")
            return EXIT_OK
        closed = closing.close(study, store, tell=print)
    lacking = f" ({closed.status.missing} were still wanted)" if closed.status.missing else ""
    print(f"closed with {closed.status.answers} answers{lacking}; payment ids are erased")
    for sentence in closed.runs:
        print(sentence)
    return EXIT_FAILURES if closed.problems else EXIT_OK


def _agreed(title: str, payments: int) -> bool:
    unpaid = f" {payments} payment ids will be erased: export them first." if payments else ""
    return input(f"End {shown(title)!r}? Nobody can answer afterwards.{unpaid} [y/N] ").strip().lower() in ("y", "yes")
