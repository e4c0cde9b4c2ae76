"""PostgreSQL through psycopg 3: every study has its own schema, so one database can hold many studies.

A small pool keeps connections. A lost connection is replaced, and work that was not committed runs again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from overtone.errors import MissingExtra, StoreError, UsageError, install_line
from overtone.paths import shown
from overtone.safety import without_secrets
from overtone.studio.database import interface
from overtone.studio.database.interface import Row, T, Unavailable

if TYPE_CHECKING:
    import psycopg

POOL = 8  # connections of one server
POOL_SECONDS = 30.0  # to wait for a free one
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # seconds before each further try to reach the server
_LIMITS = ("statement_timeout = '30s'", "lock_timeout = '20s'", "idle_in_transaction_session_timeout = '60s'")
_AGAIN = ("40001", "40P01")  # serialisation failure, deadlock: PostgreSQL asks to repeat the transaction
_WRONG = ("22", "23", "42")  # classes of errors in the request: repeating it does not help
_GONE = ("08", "57P")  # classes of errors of a lost or stopping server
_DEFAULTS = {"connect_timeout": "5", "application_name": "overtone studio", "tcp_user_timeout": "15000"}


def check_url(url: str) -> None:
    """Raise UsageError for a URL with a password: it would be readable in files, histories and process lists."""
    try:
        parts = urlsplit(url)
        secret = parts.password is not None or "password" in parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        raise UsageError("the database URL is not valid; write postgresql://USER@HOST/DATABASE") from None
    if secret:
        raise UsageError(
            "the database URL contains a password; remove it, and put the password into the environment variable "
            "PGPASSWORD or into ~/.pgpass (HOST:PORT:DATABASE:USER:PASSWORD, chmod 600)"
        )


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        line = install_line("studio")
        raise MissingExtra(f"PostgreSQL needs the package psycopg, which is not installed; run: {line}") from None
    return psycopg


class _Connection:
    """One open connection as the protocol's Connection."""

    for_update = " FOR UPDATE"

    def __init__(self, db: psycopg.Connection[Row], schema: str) -> None:
        self.db = db
        self.schema = schema

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.db.execute(_translated(sql), _storable(values)).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self.db.execute(_translated(sql), _storable(values)).rowcount

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with self.db.cursor() as cursor:
            cursor.executemany(_translated(sql), [_storable(row) for row in values])

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")}

    def alone(self) -> None:
        self.db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7))", [self.schema])


@functools.lru_cache(maxsize=512)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _storable(values: Sequence[Any]) -> list[Any]:
    """Return values that PostgreSQL can store: its texts cannot hold the character NUL."""
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values]


class PostgresDatabase:
    """A study's schema in a PostgreSQL database."""

    def __init__(self, url: str, schema: str, *, create: bool) -> None:
        check_url(url)
        driver = _psycopg()
        self._error: type[Exception] = driver.Error
        self.url, self.schema = url, schema
        self.where = _plain(url)
        self._free = threading.BoundedSemaphore(POOL)
        self._idle: list[psycopg.Connection[Row]] = []
        self._lock = threading.Lock()
        self._closed = False
        with self._clear_errors():
            given = driver.conninfo.conninfo_to_dict(url)
            self._conninfo = driver.conninfo.make_conninfo(
                url, **{k: v for k, v in _DEFAULTS.items() if k not in given}
            )
            self._give_back(self._connect())
        try:
            self._check_schema(create)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> psycopg.Connection[Row]:
        db: psycopg.Connection[Row] = _psycopg().connect(self._conninfo, autocommit=True)
        try:
            db.execute(f'SET search_path TO "{self.schema}"'.encode())
            for limit in _LIMITS:
                db.execute(f"SET {limit}".encode())
        except BaseException:
            db.close()
            raise
        return db

    def _check_schema(self, create: bool) -> None:
        def there(connection: interface.Connection) -> bool:
            return bool(connection.rows("SELECT 1 FROM pg_namespace WHERE nspname = ?", [self.schema]))

        if not create and not self.read(there):
            raise interface.MissingDatabase(f"{self.where} does not have this study")

    # ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, work: Callable[[interface.Connection], T]) -> T:
        return self._transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work, repeatable=True)

    def write(self, work: Callable[[interface.Connection], T], *, repeatable: bool = False) -> T:
        return self._transact("BEGIN", work, repeatable=repeatable)

    def _transact(self, begin: str, work: Callable[[interface.Connection], T], *, repeatable: bool) -> T:
        for pause in (*PAUSES, None):
            committing = False
            try:
                with self._connection() as db:
                    db.execute(begin.encode())
                    result = work(_Connection(db, self.schema))
                    committing = True
                    db.execute("COMMIT")
                    return result
            except self._error as error:
                safe = repeatable or not committing
                if pause is None or not safe or not _repeat(error):
                    raise self._clear(error, unknown=committing and not repeatable) from error
                time.sleep(pause)
        raise AssertionError("unreachable")

    def create(self, schema: str, fill: Callable[[interface.Connection], None]) -> None:
        def make(connection: interface.Connection) -> None:
            connection.alone()
            if connection.tables():
                return
            connection.run(f'CREATE SCHEMA IF NOT EXISTS "{self.schema}"')
            for statement in interface.statements(schema, "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"):
                connection.run(statement)
            fill(connection)

        self.write(make, repeatable=True)

    def erase(self) -> None:
        """Remove the dead rows. The server's own log and its backups keep them until they are recycled."""
        with self._clear_errors(), self._connection() as db:
            for table in _Connection(db, self.schema).tables():
                db.execute(f'VACUUM "{table}"'.encode())

    def backup(self, path: Path) -> None:
        """Run pg_dump for the study's schema; `pg_restore --dbname=URL FILE` restores it."""
        if path.exists():
            raise UsageError(f"{shown(str(path))} exists; name a new file for the backup")
        program = _program("pg_dump")
        command = [program, "--format=custom", "--no-owner", f"--schema={self.schema}", f"--file={path}", self.url]
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise UsageError(f"{shown(str(path))}: cannot be written ({error.strerror}); name another file") from None
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            path.unlink(missing_ok=True)
            raise StoreError(f"{self.where}: pg_dump failed: {shown(without_secrets(done.stderr.strip()))[:400]}")

    def how_to_restore(self, path: Path) -> str:
        drop = f'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE'
        url, file = shlex.quote(self.url), shlex.quote(str(path))
        return f"psql {url} -c {shlex.quote(drop)} && pg_restore --dbname={url} {file}"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    # ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        if not self._free.acquire(timeout=POOL_SECONDS):
            raise Unavailable(f"{self.where}: all {POOL} connections are busy; the server is too slow for this study")
        try:
            db = self._take()
            try:
                yield db
            except BaseException:
                self._undo(db)
                raise
            self._give_back(db)
        finally:
            self._free.release()

    def _take(self) -> psycopg.Connection[Row]:
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.where}: the study is closed")
            db = self._idle.pop() if self._idle else None
        return db or self._connect()

    def _undo(self, db: psycopg.Connection[Row]) -> None:
        try:
            db.execute("ROLLBACK")
        except self._error:
            db.close()
            with self._lock:  # the others are lost too
                while self._idle:
                    self._idle.pop().close()
        else:
            self._give_back(db)

    def _give_back(self, db: psycopg.Connection[Row]) -> None:
        with self._lock:
            if self._closed or db.closed:
                db.close()
            else:
                self._idle.append(db)

    # ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise self._clear(error) from error

    def _clear(self, error: Exception, *, unknown: bool = False) -> StoreError:
        state = getattr(error, "sqlstate", None) or ""
        advice = _advice(error, state)
        if state[:2] in _WRONG and state != "42501":
            return StoreError(f"{self.where}: {advice}")
        if unknown:
            advice += ". It is not known whether the last change was stored: look before you repeat it"
        return Unavailable(f"{self.where}: {advice}")


def _repeat(error: Exception) -> bool:
    """Return whether the work can succeed if it is repeated: after a deadlock, or on a new connection."""
    state = getattr(error, "sqlstate", None)
    if state is None:  # no answer from the server: the connection is lost, or could not be opened
        return type(error).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout") and not _refused(
            error
        )
    return state in _AGAIN or state.startswith(_GONE)


def _refused(error: Exception) -> bool:
    text = str(error)
    return any(word in text for word in ("authentication failed", "no password supplied", "does not exist", "pg_hba"))


def _advice(error: Exception, state: str) -> str:
    text = shown(without_secrets(" ".join(str(error).split())))[:300]
    if "no password supplied" in text or "password authentication failed" in text or state.startswith("28"):
        return f"the server refused the login; set PGPASSWORD, or add a line to ~/.pgpass ({text})"
    if ("does not exist" in text and not state) or state == "3D000":
        return f"the database or user does not exist; create it with 'createdb' and 'createuser' ({text})"
    if state == "42501":
        return f"the user may not do this; run: GRANT CREATE ON DATABASE … TO … ({text})"
    if state.startswith("53100"):
        return "the server's disk is full; free some space. Stored answers are safe"
    if state == "53300":
        return "the server has too many connections; raise max_connections. Stored answers are safe"
    if not state or state.startswith(_GONE):
        return f"the server cannot be reached; start it, or check host and port. Stored answers are safe ({text})"
    return f"the server refused the request ({text})"


def _plain(url: str) -> str:
    parts = urlsplit(url)
    return shown(f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _program(name: str) -> str:
    """Return a program of PostgreSQL from the search path, else Debian's newest."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    found = shutil.which(name) or (str(debian[-1]) if debian else None)
    if found is None:
        raise UsageError(f"a backup of PostgreSQL needs {name}; run 'apt install postgresql-client'")
    return found
