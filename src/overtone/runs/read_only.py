"""A run's database opened by a reader, which changes no byte of the run's folder and leaves no file there.

SQLite writes beside a database in WAL mode even where it only reads it, so each state of the folder is opened in its
own way. Where no `-wal` file lies beside the database, nobody writes it, and it is opened as immutable. A `-wal` with
its `-shm` belongs to a writer that is at work or was killed; both are read without being written. Anything else that
only a writer could put in order (a `-wal` without its `-shm`, a journal to be rolled back) is read from a copy in the
temporary folder.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from overtone.errors import StoreError
from overtone.runs.database import at, prepare

_ATTEMPTS = 5  # a writer that opens or closes the run meanwhile adds or removes its files
_PAUSE = 0.05  # seconds between two attempts
_WAL = b"\x02\x02"  # in the header of a database in WAL mode


class Rewritten(StoreError):
    """The database was written by another process while it was read as immutable."""


class ReadConnection(sqlite3.Connection):
    """A connection that never writes. `database` is the file of the run, also where a copy of it is read."""

    database: Path
    _seen: tuple[int, ...] | None = None  # the file's identity, where it was opened as immutable
    _copy: tempfile.TemporaryDirectory[str] | None = None

    @property
    def behind(self) -> bool:
        """Whether another process has written the run since, which an immutable connection does not see."""
        return self._seen is not None and (self._changed or at(self.database, "-wal").exists())

    @property
    def _changed(self) -> bool:
        return self._seen is not None and identity(self.database) not in (self._seen, ())  # a deleted file stays open

    def check(self) -> None:
        """Raise Rewritten where rows read so far may belong to two states of the file."""
        if self._changed:
            raise Rewritten(
                f"{self.database.parent} was written by another process while it was read; give the command again"
            )

    def close(self) -> None:
        super().close()
        if self._copy is not None:
            self._copy.cleanup()


def identity(path: Path) -> tuple[int, ...]:
    """Return a value that changes when a file is written or replaced; empty if the file is missing."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def connect_reader(path: Path) -> ReadConnection:
    """Open a database for reading, also while another process writes it. Raises StoreError."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        db = _attempt(path)
        if db is not None:
            return db
    return _copied(path)


def _attempt(path: Path) -> ReadConnection | None:
    """Open the database where it lies; None where that needs a file beside it to be written."""
    wal, shm, seen = at(path, "-wal").exists(), at(path, "-shm").exists(), identity(path)
    options = ""
    if _is_wal(path):
        if wal and not shm:
            return None
        options = "&readonly_shm=1" if wal else "&immutable=1"
    db = _opened(path, options)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):  # the files changed since they were looked at, or a journal must be rolled back
            db.close()
            return None
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # the caller's first query says what is wrong
        return db
    if "immutable" in options:
        db._seen = seen
    return db


def _is_wal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(20)[18:] == _WAL
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}") from None


def _copied(path: Path) -> ReadConnection:
    """Open a copy of the database and of what a writer left beside it."""
    folder = tempfile.TemporaryDirectory(prefix="overtone-read-")
    try:
        for end in ("", "-wal", "-journal"):
            if at(path, end).is_file():
                shutil.copyfile(at(path, end), Path(folder.name) / f"run.db{end}")
        db = _opened(Path(folder.name) / "run.db", "", mode="rw")
    except BaseException:
        folder.cleanup()
        raise
    db.database, db._copy = path, folder
    return db


def _opened(path: Path, options: str, mode: str = "ro") -> ReadConnection:
    uri = f"{path.absolute().as_uri()}?mode={mode}{options}"
    given: dict[str, Any] = {"uri": True, "isolation_level": None, "timeout": 30, "factory": ReadConnection}
    try:
        db: ReadConnection = sqlite3.connect(uri, **given)
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot open {path}: {error}") from None
    db.database = path
    prepare(db)
    return db
