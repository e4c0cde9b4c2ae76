"""Checks for run folders from untrusted sources: plain files, Overtone's tables only, and rows of the right types."""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from overtone.errors import StoreError
from overtone.runs.database import clear_errors
from overtone.runs.read_only import ReadConnection

T = TypeVar("T")
Finite = Annotated[float, Meta(ge=-1e300, le=1e300)]
MAX_TOKENS = 2**53
MAX_CHARACTERS = 1_000_000  # of a reply; some metrics would take hours for more
Words = Annotated[str, Meta(max_length=MAX_CHARACTERS)]
PAGE = 256  # rows that are checked at a time, which is faster than one by one
_FILES = ("lock", "run.db", "run.log", "config.toml", "verdicts.db")
_FOLDERS = ("audio", "workers")


def check_plain(folder: Path) -> None:
    """Raise StoreError if the folder's files are links, pipes or devices, which would redirect writes elsewhere."""
    for path in (*(folder / name for name in (*_FILES, *_FOLDERS)), *(folder / "audio").glob("??")):
        try:
            mode = path.lstat().st_mode
        except OSError:  # missing or unreadable; opening it reports the error
            continue
        is_folder = path.name in _FOLDERS or path.parent.name == "audio"
        if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
            kind = "a link" if stat.S_ISLNK(mode) else "not a plain " + ("folder" if is_folder else "file")
            raise StoreError(f"{path} is {kind}, so nothing is written to this run; copy the run without links")


@functools.cache
def schema(version: int) -> str:
    """Return the SQL that a version of the store adds to the version before it."""
    text = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    return re.split(r"^-- version \d+$", text, flags=re.M)[version]


@functools.cache
def _ours(version: int) -> frozenset[tuple[str, str, str]]:
    db = sqlite3.connect(":memory:")
    for number in range(1, version + 1):
        db.executescript(schema(number))
    return _structure(db)


def _structure(db: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    return frozenset(db.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"))


def check_structure(db: sqlite3.Connection, folder: Path, version: int) -> None:
    """Raise StoreError unless the tables are exactly ours, because views, triggers and computed columns run SQL."""
    different = sorted(str(name) for _, name, _ in _structure(db) ^ _ours(version))
    if different:
        raise StoreError(
            f"{folder}: run.db contains data that Overtone did not write ({', '.join(dict.fromkeys(different))}); "
            "restore it from a copy"
        )


def select(db: sqlite3.Connection, kind: type[T], sql: str, given: Sequence[Any] = ()) -> Iterator[T]:
    """Yield the rows of a query as tuples of type `kind`. Values of other types raise errors; see `reading`."""
    check = db.check if isinstance(db, ReadConnection) else lambda: None
    try:
        cursor = db.execute(sql, given)
        while page := cursor.fetchmany(PAGE):
            check()
            yield from msgspec.convert(page, list[kind], builtin_types=(bytes,))  # type: ignore[valid-type]
    except sqlite3.DatabaseError:
        check()  # a file that was rewritten meanwhile looks damaged
        raise


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn errors about invalid rows into a StoreError, and convert database errors as `clear_errors` does."""
    try:
        with clear_errors(folder):
            yield
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        text = f"run.db contains data that Overtone did not write ({error}); restore it from a copy"
        raise StoreError(f"{folder}: {text}") from error
