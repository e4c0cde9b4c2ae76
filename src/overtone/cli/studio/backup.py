"""Copy a study's database to a file while people answer."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.studio import _study
from overtone.errors import EXIT_OK
from overtone.paths import shown, user_path

SUMMARY = "copy a study's database to a file while people answer"
EXAMPLES = ("overtone studio backup study.toml study-2026-05-01.db",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    parser.add_argument("file", metavar="FILE", type=Path, help="new file: a SQLite database, or a dump by pg_dump")


def main(args: argparse.Namespace) -> int:
    """Write a backup, and print how to restore it."""
    target = user_path(args.file)
    _, store = _study.open_store(args)
    with store:
        store.backup(target)
        takes, withdrawn = store.takes.folder, store.withdrawals.path
        restore = store.how_to_restore(target)
    print(f"Written: {shown(str(target))}")
    print(f"To restore it, stop the server, then: {restore}")
    if takes.is_dir():
        print(f"Copy the recordings too: {shown(str(takes))}")
    print(f"Keep {shown(str(withdrawn))}: at the next start, people who withdrew since the backup are deleted again")
    return EXIT_OK
