"""Open a run's database for writing, and turn errors of any database into messages that say what to do."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from overtone.errors import StoreError

MAX_VALUE_BYTES = 64_000_000  # one text or record in the store
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "lustre", "beegfs", "9p", "afs", "ceph"}


def at(path: Path, end: str) -> Path:
    """Return the path of a file next to a database, such as `run.db-wal`."""
    return path.with_name(path.name + end)


def connect(path: Path) -> sqlite3.Connection:
    """Open a database for writing, and create it if missing. `read_only.connect_reader` opens it for reading."""
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rwc", uri=True, isolation_level=None, timeout=30)
    except sqlite3.OperationalError as error:
        raise StoreError(f"cannot open {path}: {error}") from None
    prepare(db)
    return db


def prepare(db: sqlite3.Connection) -> None:
    """Set the limits of every connection, because a run may come from an untrusted source."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    db.execute("PRAGMA foreign_keys=OFF")
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")


def open_tables(
    path: Path, tables: Mapping[str, str], *, application: int, version: int, foreign: str
) -> sqlite3.Connection:
    """Open a database with these tables (name → CREATE statement) for writing, and create it if missing.

    Raises StoreError with the text `foreign` if the file has any other table.
    """
    with clear_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    db = connect(path)
    try:
        with clear_errors(path.parent):
            db.execute(f"PRAGMA journal_mode={'DELETE' if network_file_system(path.parent) else 'WAL'}")
            db.execute("PRAGMA synchronous=NORMAL")
            existing = dict(
                db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
            )
            if not existing:
                db.executescript(
                    f"BEGIN IMMEDIATE; {'; '.join(tables.values())}; "
                    f"PRAGMA application_id={application}; PRAGMA user_version={version}; COMMIT;"
                )
            elif existing != dict(tables):
                raise StoreError(f"{path} {foreign}")
    except BaseException:
        db.close()
        raise
    return db


def network_file_system(folder: Path) -> str | None:
    """Return the kind of network file system that a folder is on, or None."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return None
    target = str(folder.resolve())
    best = ("", "")
    for line in mounts.read_text().splitlines():
        fields = line.split()
        if len(fields) >= 3:
            point = fields[1].replace("\\040", " ")
            inside = target == point or target.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best[0]):
                best = (point, fields[2])
    return best[1] if best[1] in _NETWORK else None


@contextlib.contextmanager
def clear_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the disk and of SQLite into StoreErrors that say what to do. Committed data stays."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError, UnicodeDecodeError) as error:
        text = str(error)
        if isinstance(error, UnicodeDecodeError):  # its message would quote the damaged bytes
            text = "malformed"
        if "full" in text or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            text = "the disk is full; free some space and give the same command again: finished replies are kept"
        elif "readonly" in text or "read-only" in text or getattr(error, "errno", None) in (errno.EROFS, errno.EACCES):
            text = "the folder is read-only; choose another --out"
        elif "malformed" in text or "not a database" in text:
            text = (
                "run.db is damaged or not a database; 'overtone verify' says where. Restore it from a copy, or choose "
                "another --out"
            )
        elif "disk I/O error" in text:
            text = "the disk cannot be read or written; it may be full: free some space and give the same command again"
        elif "decode to UTF-8" in text:
            text = "run.db contains text that Overtone did not write (it is not UTF-8); restore it from a copy"
        raise StoreError(f"{folder}: {text}") from error
