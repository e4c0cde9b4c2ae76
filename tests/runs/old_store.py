"""Stores as earlier versions wrote them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_FROM_8 = "DROP TABLE sessions;"
_FROM_7 = f"DROP TABLE heard; {_FROM_8}"
_FROM_6 = f"DROP TABLE timings; {_FROM_7}"
_FROM_5 = f"DROP TABLE labels; DROP TABLE studies; {_FROM_6}"
_FROM_3 = f"DROP TABLE likelihoods; {_FROM_5}"


def as_version_1(folder: Path) -> None:
    """Turn a run into one of version 1: the tables that version 2 added are gone."""
    _change(folder, 1, f"DROP TABLE declarations; DROP TABLE suite; {_FROM_3}")


def as_version_2(folder: Path) -> None:
    """Turn a run into one of version 2 as it was: without a suite, and with a table that was never used."""
    unused = "CREATE TABLE headline_cells (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;"
    _change(folder, 2, f"DELETE FROM suite; {_FROM_3} {unused}")


def as_version_4(folder: Path) -> None:
    """Turn a run into one of version 4: without people's labels."""
    _change(folder, 4, _FROM_5)


def as_version_5(folder: Path) -> None:
    """Turn a run into one of version 5: without timings."""
    _change(folder, 5, _FROM_6)


def as_version_6(folder: Path) -> None:
    """Turn a run into one of version 6: without marks of what the model heard."""
    _change(folder, 6, _FROM_7)


def as_version_7(folder: Path) -> None:
    """Turn a run into one of version 7: without records of realtime sessions."""
    _change(folder, 7, _FROM_8)


def _change(folder: Path, version: int, statements: str) -> None:
    db = sqlite3.connect(folder / "run.db", isolation_level=None)
    db.executescript(f"{statements} PRAGMA user_version={version}; VACUUM;")
    db.close()
