"""Stores as earlier versions wrote them."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def as_version_1(folder: Path) -> None:
    """Turn a run into one of version 1: the tables that version 2 added are gone."""
    db = sqlite3.connect(folder / "run.db", isolation_level=None)
    for table in ("declarations", "suite", "headline_cells"):
        db.execute(f"DROP TABLE {table}")
    db.execute("PRAGMA user_version=1")
    db.execute("VACUUM")
    db.close()
