"""The database of a study: SQLite or PostgreSQL behind one small protocol. A new file or schema gets its tables."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from overtone.errors import StoreError, UsageError
from overtone.paths import shown, user_path
from overtone.studio.database.interface import RATER_MESSAGE, Connection, Database, MissingDatabase, Row, Unavailable
from overtone.studio.database.postgresql import PostgresDatabase, check_url
from overtone.studio.database.sqlite import SqliteDatabase

__all__ = [
    "RATER_MESSAGE", "VERSION", "Connection", "Database", "MissingDatabase", "Row", "Unavailable", "check_url",
    "open_database",
]  # fmt: skip

VERSION = 1  # of the tables


def open_database(url: str, study: str, *, folder: Path, create: bool = True) -> Database:
    """Open the database of the study with this id; a SQLite file is relative to `folder`.

    Raises StoreError for a database of another study, program or newer version, UsageError for a URL of another
    kind or with a password, and MissingDatabase if it is missing and `create` is false.
    """
    database = _connect(url, study, folder, create)
    meta = (("program", "overtone studio"), ("version", str(VERSION)), ("study", study))
    schema = files("overtone.studio").joinpath("schema.sql").read_text("utf-8")
    try:
        database.create(schema, lambda c: c.many("INSERT INTO meta (name, value) VALUES (?, ?)", meta))
        _check(database, study)
    except BaseException:
        database.close()
        raise
    return database


def _connect(url: str, study: str, folder: Path, create: bool) -> Database:
    kind, _, rest = url.partition(":")
    if kind == "sqlite" and rest.strip():
        return SqliteDatabase(folder / user_path(rest), create=create)
    if kind in ("postgresql", "postgres"):
        return PostgresDatabase(url, f"overtone_{study}", create=create)
    raise UsageError(f"{shown(kind)[:20]}: a database is sqlite:FILE or postgresql://USER@HOST/DATABASE")


def _check(database: Database, study: str) -> None:
    meta: dict[str, str] = database.read(
        lambda c: dict(c.rows("SELECT name, value FROM meta")) if "meta" in c.tables() else {}
    )
    if meta.get("program") != "overtone studio" or not meta.get("version", "").isdigit():
        raise StoreError(f"{database.where} is a database of another program; name another one in [store] url")
    if int(meta["version"]) > VERSION:
        raise StoreError(f"{database.where} was made by a newer version of Overtone; install that version")
    if meta.get("study") != study:
        raise StoreError(
            f"{database.where} belongs to another study ({shown(meta.get('study', '?'))[:12]}); "
            "name another one in [store] url, or with --db"
        )
