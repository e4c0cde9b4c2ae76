"""SQLite: one file in WAL mode beside the study file, one writer, any number of readers.

Every commit is synced to disk (synchronous=FULL). Deleted content is overwritten (secure_delete).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from overtone.errors import StoreError, UsageError
from overtone.paths import shown
from overtone.runs.database import network_file_system
from overtone.studio.database import interface
from overtone.studio.database.interface import Connection, Row, T, Unavailable

APPLICATION: Final = 0x4F565354  # "OVST", in the header of the file
BUSY_SECONDS = 10.0
ERASE_SECONDS = 1.0  # that an erasure waits for readers; answers wait too meanwhile
_LARGEST = 64_000_000  # bytes of one value
_DISK = ("SQLITE_FULL", "SQLITE_IOERR")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_ACCESS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")


class _Connection:
    """One open SQLite connection as the protocol's Connection."""

    for_update = ""  # a writer is alone anyway

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.db.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self.db.execute(sql, values).rowcount

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        self.db.executemany(sql, values)

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def alone(self) -> None:
        """Do nothing: BEGIN IMMEDIATE lets in one writer."""


class SqliteDatabase:
    """The database in one file."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self.where = shown(str(path))
        self._writing = threading.Lock()
        self._unerased = False  # the log file beside the database may still hold deleted values
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        self._closed = False
        with self._errors():
            _touch(path, create)
            self._writer = self._connect("rw")
        try:
            with self._errors():
                self._check_header()
                self._prepare()
        except BaseException:
            self._writer.close()
            raise
        self._identity = _identity(path)

    def _connect(self, mode: str) -> sqlite3.Connection:
        db = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None,
            timeout=BUSY_SECONDS, check_same_thread=False,
        )  # fmt: skip
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        db.execute("PRAGMA trusted_schema=OFF")
        db.execute("PRAGMA cell_size_check=ON")
        return db

    def _check_header(self) -> None:
        (application,) = self._writer.execute("PRAGMA application_id").fetchone()
        (tables,) = self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and (application or tables):
            raise StoreError(
                f"{self.where} is a database of another program; name another file in [store] url, or with --db"
            )

    def _prepare(self) -> None:
        mode = "DELETE" if network_file_system(self.path.parent) else "WAL"  # WAL needs memory shared by all processes
        for pragma in (f"journal_mode={mode}", "synchronous=FULL", "secure_delete=ON", "wal_autocheckpoint=1000"):
            self._writer.execute(f"PRAGMA {pragma}")
        self._unerased = not self._emptied(0)  # a process that was killed could not erase

    # ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, work: Callable[[Connection], T]) -> T:
        with self._errors(), self._reader() as db:
            db.execute("BEGIN")
            try:
                return work(_Connection(db))
            finally:
                if db.in_transaction:
                    db.execute("COMMIT")

    def write(self, work: Callable[[Connection], T], *, repeatable: bool = False) -> T:
        with self._errors(), self._writing:
            self._check_present()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(_Connection(self._writer))
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            self._check_present()
            if self._unerased:
                self._unerased = not self._emptied(0)
            return result

    def create(self, schema: str, fill: Callable[[Connection], None]) -> None:
        def make(connection: Connection) -> None:
            if connection.tables():
                return
            for statement in interface.statements(schema, "INTEGER PRIMARY KEY AUTOINCREMENT"):
                connection.run(statement)
            connection.run(f"PRAGMA application_id={APPLICATION}")
            fill(connection)

        self.write(make)

    def erase(self) -> None:
        """Move the changes out of the log file beside the database, and empty that file.

        While another connection reads, this is not possible. Then every later write tries again.
        """
        with self._errors(), self._writing:
            self._unerased = not self._emptied(ERASE_SECONDS)

    def _emptied(self, seconds: float) -> bool:
        """Empty the log file and return True, or False if a reader prevents it for this long."""
        self._writer.execute(f"PRAGMA busy_timeout={round(seconds * 1000)}")
        try:
            ((busy, _, _),) = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return not busy
        finally:
            self._writer.execute(f"PRAGMA busy_timeout={round(BUSY_SECONDS * 1000)}")

    def backup(self, path: Path) -> None:
        if path.exists():
            raise UsageError(f"{shown(str(path))} exists; name a new file for the backup")
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with self._errors(), self._reader() as source:
                _touch(part, create=True)
                with contextlib.closing(sqlite3.connect(part)) as copy:
                    source.backup(copy)
                    copy.execute("PRAGMA journal_mode=DELETE")
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def how_to_restore(self, path: Path) -> str:
        names = [shlex.quote(f"{self.path}{end}") for end in ("", "-wal", "-shm")]
        return f"rm -f {' '.join(names)} && cp {shlex.quote(str(path))} {names[0]}"

    def close(self) -> None:
        with self._writing, self._idle_lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()  # last, because only a writer can empty the log file beside the database

    @contextlib.contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._idle_lock:
            if self._closed:
                raise sqlite3.ProgrammingError("the study is closed")
            db = self._idle.pop() if self._idle else None
        db = db or self._connect("ro")
        try:
            yield db
        except sqlite3.DatabaseError:
            db.close()
            raise
        except BaseException:
            self._give_back(db)
            raise
        self._give_back(db)

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._idle_lock:
            if self._closed:
                db.close()
            else:
                self._idle.append(db)

    def _check_present(self) -> None:
        """Raise Unavailable if the open file was deleted or replaced, which SQLite does not notice."""
        if _identity(self.path) != self._identity:
            raise Unavailable(
                f"{self.where} was deleted, moved or replaced while the study was running; put the file back, or "
                "restore it from a backup, and start the server again"
            )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if advice := _advice(error):
                raise Unavailable(f"{self.where}: {advice}") from error
            raise StoreError(f"{self.where}: the database refused the request ({error})") from error
        except OSError as error:
            raise Unavailable(f"{self.where}: {error.strerror or error}; nothing stored before is lost") from error


def _touch(path: Path, create: bool) -> None:
    """Create the file, readable by its owner alone, because it holds people's answers."""
    if not create and not path.is_file():
        raise interface.MissingDatabase(f"the database {shown(str(path))} does not exist")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino


def _advice(error: sqlite3.DatabaseError) -> str:
    """Return what is wrong with the database and what to do; "" if the request is wrong, not the database."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(_DISK):
        return "cannot be written, because the disk is full or failing; free some space. Stored answers are safe"
    if name.startswith(_BUSY):
        return "another program keeps the database locked; end that program. Stored answers are safe"
    if name.startswith(_DAMAGED):
        return "is damaged or not a database; restore it from a backup ('overtone studio backup' makes one)"
    if name.startswith(_ACCESS):
        return "cannot be opened for writing; check the permissions of the file and its folder"
    return ""
