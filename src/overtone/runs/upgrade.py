"""Read older versions of the store, and upgrade them when the run is next written.

Each version only adds tables to the one before, or drops tables that nothing reads, so an older file is read like a
newer one with empty added tables. A writer keeps a copy of the older file, such as `run.db.v1.bak`, and changes the
tables in one transaction.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from overtone.errors import StoreError
from overtone.runs.database import at
from overtone.runs.folder_safety import check_structure, schema

VERSION = 8
APPLICATION = 0x0F372020


def create(db: sqlite3.Connection) -> None:
    """Create the tables in an empty file."""
    _execute(db, "".join(schema(version) for version in range(1, VERSION + 1)))


def version_of(db: sqlite3.Connection, folder: Path) -> int:
    """Return the version of a store. Raises StoreError if the file is not a store or its version is unknown."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION or version == 0:
        raise StoreError(f"{folder / 'run.db'} is not an Overtone run")
    if not 1 <= version <= VERSION:
        raise StoreError(
            f"{folder} has store version {version}, but this version of Overtone reads versions up to {VERSION}; "
            "use the version that wrote it"
        )
    check_structure(db, folder, version)
    return version


def read_as_new(db: sqlite3.Connection, version: int) -> None:
    """Add the tables that an older file lacks to this connection only, in memory and empty."""
    db.execute("PRAGMA temp_store=MEMORY")
    for newer in range(version + 1, VERSION + 1):
        # A reader leaves the file as it is, and needs no index of an empty table.
        added = re.sub(r"^(DROP TABLE|CREATE INDEX) .*;$", "", schema(newer), flags=re.M)
        db.executescript(added.replace("CREATE TABLE", "CREATE TEMP TABLE"))


def upgrade(db: sqlite3.Connection, folder: Path, version: int) -> Path | None:
    """Upgrade the file of an open writer. Return the path of the copy, or None if no upgrade was needed."""
    if version == VERSION:
        return None
    kept = at(folder / "run.db", f".v{version}.bak")
    part = at(kept, ".part")
    part.unlink(missing_ok=True)  # in an untrusted folder it may be a link to another place
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
