"""Write a study's labels into its runs."""

from __future__ import annotations

import argparse

from overtone.cli.studio import _study
from overtone.errors import EXIT_FAILURES, EXIT_OK

SUMMARY = "write people's answers into the runs as labels, and remove those of people who withdrew"
EXAMPLES = ("overtone studio sync study.toml",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    parser.add_argument(
        "--wait", metavar="S", type=float, default=30.0, help="seconds to wait for a run that is written (default: 30)"
    )


def main(args: argparse.Namespace) -> int:
    """Write the study's labels into its runs, and print the result for each."""
    from overtone.studio.labels.collect import sync_study

    study, store = _study.open_store(args)
    with store:
        store.check()
        done = sync_study(study, store, wait=args.wait, tell=lambda text: print(text, flush=True))
        gone = [one.label for one in store.withdrawals.all()]
    for one in done:
        print(one.sentence)
    if not done:
        print("the study has no run: its answers are in 'overtone studio export'")
    if gone:
        print(f"withdrawn, and in no run: {', '.join(gone)}. Copies of the runs made before need this sync too")
    return EXIT_FAILURES if any(one.problem for one in done) else EXIT_OK
