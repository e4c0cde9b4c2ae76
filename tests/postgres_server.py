"""A real PostgreSQL server for tests: Debian's binaries, in a temporary folder, on a unix socket. fsync stays on."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

USER = "postgres"  # initdb refuses root
PREFIX = "overtone-pg-"
OWNER = "owner"  # a file with the id of the process that started the server
GUARDED = ("guarded", "correct horse")  # a user with a password; all others are trusted


def program(name: str) -> str | None:
    """Return one of PostgreSQL's programs: Debian's newest, which are not on the search path, or one that is."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    return str(debian[-1]) if debian else shutil.which(name)


def available() -> bool:
    """Return whether a server can be started: with the user postgres if this is root, and with the driver."""
    import importlib.util

    driver = importlib.util.find_spec("psycopg") is not None
    return driver and all(map(program, ("initdb", "pg_ctl"))) and (os.geteuid() != 0 or bool(shutil.which("runuser")))


class Server:
    """One server. `url` names its database `overtone`."""

    def __init__(self) -> None:
        end_forgotten()
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))  # a socket's path must be short
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        (self.folder / OWNER).write_text(str(os.getpid()))
        self.data = self.folder / "data"
        options = ("--auth=trust", "--username=postgres", "--no-instructions", "--encoding=UTF8")
        self._run("initdb", "-D", str(self.data), *options)
        rules = (f"local all {GUARDED[0]} scram-sha-256", "local all all trust")
        (self.data / "pg_hba.conf").write_text("\n".join(rules) + "\n")
        self.start()
        self.sql("CREATE DATABASE overtone", database="postgres")
        self.sql(f"CREATE USER {GUARDED[0]} PASSWORD '{GUARDED[1]}'")

    def _run(self, name: str, *words: str) -> None:
        found = program(name)
        assert found is not None
        user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
        done = subprocess.run([*user, found, *words], capture_output=True, text=True, check=False, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        settings = f"-c listen_addresses='' -k {self.folder} -c shared_buffers=16MB -c max_connections=60"
        settings += " -c autovacuum=off -c wal_level=minimal -c max_wal_senders=0"  # less work in the background
        log = ["-l", str(self.folder / "log"), "-w", "-t", "30"]
        self._run("pg_ctl", "start", "-D", str(self.data), "-o", settings, *log)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is like a crash."""
        self._run("pg_ctl", "stop", "-D", str(self.data), "-m", mode, "-w")

    def url_for(self, user: str = "postgres", database: str = "overtone") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @property
    def url(self) -> str:
        return self.url_for()

    def sql(self, statement: str, values: Sequence[object] = (), database: str = "overtone") -> list[Any]:
        """Run one statement as the superuser, and return its rows."""
        import psycopg

        with psycopg.connect(self.url_for(database=database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), list(values) or None)
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def end_forgotten() -> None:
    """End servers of test processes that were killed before they could end them."""
    for owner in Path("/tmp").glob(f"{PREFIX}*/{OWNER}"):
        with contextlib.suppress(OSError, ValueError):
            if (owner.stat().st_uid == os.geteuid()) and not _runs(int(owner.read_text())):
                server = Server.__new__(Server)
                server.folder, server.data = owner.parent, owner.parent / "data"
                with contextlib.suppress(AssertionError):  # it has ended by itself
                    server.close()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
