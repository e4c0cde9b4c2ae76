"""Open a run's database for reading, without changing the run's folder or leaving files there.

SQLite writes files next to a database in WAL mode even when it only reads, so the method depends on the files. Without
a `-wal` file, no process is writing, and the database is opened as immutable. A `-wal` file with its `-shm` belongs to
an active or killed writer; both are read without writing. Other states, which only a writer could repair (a `-wal`
file without its `-shm`, a journal to roll back), are read from a copy in the temporary folder.
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

_ATTEMPTS = 5  # a writer that opens or closes the run at the same time adds or removes files
_PAUSE = 0.05  # seconds between two attempts
_WAL = b"\x02\x02"  # in the header of a database in WAL mode


class Rewritten(StoreError):
    """The database was written by another process while it was read as immutable."""


class ReadConnection(sqlite3.Connection):
    """A connection that never writes. `database` is the run's file, even if a copy of it is read."""

    database: Path
    _seen: tuple[int, ...] | None = None  # the file's identity, if it was opened as immutable
    _copy: tempfile.TemporaryDirectory[str] | None = None

    @property
    def behind(self) -> bool:
        """Whether another process has written to the run since it was opened, which an immutable connection does not
        see."""
        return self._seen is not None and (self._changed or at(self.database, "-wal").exists())

    @property
    def _changed(self) -> bool:
        return self._seen is not None and identity(self.database) not in (self._seen, ())  # a deleted file stays open

    def check(self) -> None:
        """Raise Rewritten if the file changed, because the rows read so far may be inconsistent."""
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
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


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
    """Open the database in place; return None if that would write a file next to it."""
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
        if "locked" not in str(error):  # the files have just changed, or a journal must be rolled back
            db.close()
            return None
    except (sqlite3.DatabaseError, UnicodeDecodeError):  # the caller's first query reports the error
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
    """Open a copy of the database and of the files that a writer left next to it."""
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
