"""Older versions of the store: read through temporary tables, upgraded in the file by the next writer.

Every version only adds tables to the one before, so that an older file is read as a newer one whose added tables are
empty. A writer keeps a copy of the older file as `run.db.v1.bak`, and adds the tables in one transaction.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from overtone.errors import StoreError
from overtone.runs.database import at
from overtone.runs.folder_safety import check_structure, schema

VERSION = 2
APPLICATION = 0x0F372020


def create(db: sqlite3.Connection) -> None:
    """Make the tables of an empty store."""
    _execute(db, "".join(schema(version) for version in range(1, VERSION + 1)))


def version_of(db: sqlite3.Connection, folder: Path) -> int:
    """Return the version of a store. Raises StoreError for what is not one, or is newer than this Overtone."""
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION or found == 0:
        raise StoreError(f"{folder / 'run.db'} is not an Overtone run")
    if not 1 <= found <= VERSION:
        raise StoreError(
            f"{folder} was written with store version {found}, this Overtone reads versions up to {VERSION}; "
            "use the Overtone that wrote it"
        )
    check_structure(db, folder, found)
    return found


def read_as_new(db: sqlite3.Connection, version: int) -> None:
    """Give a reader the tables that an older file lacks: empty, in memory, in this connection alone."""
    db.execute("PRAGMA temp_store=MEMORY")
    for newer in range(version + 1, VERSION + 1):
        db.executescript(schema(newer).replace("CREATE TABLE", "CREATE TEMP TABLE"))


def upgrade(db: sqlite3.Connection, folder: Path, version: int) -> Path | None:
    """Upgrade the file of an open writer. Returns the copy of the older file; None where it is of this version."""
    if version == VERSION:
        return None
    kept = at(folder / "run.db", f".v{version}.bak")
    part = at(kept, ".part")
    part.unlink(missing_ok=True)  # in a stranger's folder it may be a link to elsewhere
    copy = sqlite3.connect(part)
    try:
        db.backup(copy)
    finally:
        copy.close()
    part.replace(kept)
    _execute(db, "".join(schema(newer) for newer in range(version + 1, VERSION + 1)))
    return kept


def _execute(db: sqlite3.Connection, statements: str) -> None:
    db.executescript(
        f"BEGIN IMMEDIATE; {statements} PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; COMMIT;"
    )
