"""Flags that the commands over a study share, and how they open it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.paths import user_path

if TYPE_CHECKING:
    from overtone.studio.store import Store
    from overtone.studio.study import Study

HOST, PORT = "127.0.0.1", 8080


def add(parser: argparse.ArgumentParser) -> None:
    """Add the study and its database."""
    flag = parser.add_argument
    flag("study", metavar="STUDY.toml", type=Path, help="study file")
    flag("--db", metavar="URL", default="", help="sqlite:FILE or postgresql://USER@HOST/NAME (default: from the file)")


def read(args: argparse.Namespace) -> Study:
    """Read the study file."""
    from overtone.studio import study

    return study.read(user_path(args.study))


def open_store(args: argparse.Namespace, *, create: bool = False) -> tuple[Study, Store]:
    """Read the study file and open its database. Refuse a missing database unless `create` is true."""
    from overtone.studio.store import Store

    found = read(args)
    return found, Store.open(found, args.db, create=create)
