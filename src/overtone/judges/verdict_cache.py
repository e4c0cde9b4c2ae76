"""A cache of judges' answers in one SQLite file, so that each answer is paid for only once.

A verdict's key is its subject and a hash of everything it depends on: the judge, the rubric's words, the texts, the
sounds, the repeat. The same question is never asked again; a changed reply or rubric makes it a different question.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from overtone.errors import StoreError
from overtone.runs.database import clear_errors, open_tables
from overtone.runs.folder_safety import Finite, reading, select
from overtone.runs.read_only import connect_reader
from overtone.schema import Reply

VERSION = 1
APPLICATION = 0x0F372021
_TABLE = (
    "CREATE TABLE verdicts (subject TEXT NOT NULL, request TEXT NOT NULL, judge TEXT NOT NULL, rubric TEXT NOT NULL, "
    "text TEXT NOT NULL, finish TEXT NOT NULL, model TEXT NOT NULL, usage BLOB NOT NULL, attempts INTEGER NOT NULL, "
    "at REAL NOT NULL, PRIMARY KEY (subject, request)) WITHOUT ROWID"
)


class Verdicts:
    """An open file of verdicts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = open_tables(
            path,
            {"verdicts": _TABLE},
            application=APPLICATION,
            version=VERSION,
            foreign="is no file of verdicts of this Overtone; move it away and give the same command again",
        )

    def __enter__(self) -> Verdicts:
        return self

    def __exit__(self, *exc: object) -> None:
        self.db.close()

    def get(self, subject: str, request: str) -> str | None:
        """Return the stored answer to a request, or None if there is none yet."""
        with clear_errors(self.path.parent):
            row = self.db.execute(
                "SELECT text FROM verdicts WHERE subject = ? AND request = ?", (subject, request)
            ).fetchone()
        return None if row is None else str(row[0])

    def put(self, subject: str, request: str, judge: str, rubric: str, reply: Reply, attempts: int) -> None:
        """Store an answer. It is on disk when this returns."""
        with clear_errors(self.path.parent):
            try:
                self.db.execute(
                    "INSERT OR REPLACE INTO verdicts VALUES (?,?,?,?,?,?,?,?,?,?)",
                    (
                        subject,
                        request,
                        judge,
                        rubric,
                        reply.text,
                        reply.finish,
                        reply.model,
                        msgspec.json.encode(reply.usage),
                        attempts,
                        time.time(),
                    ),
                )
            except sqlite3.IntegrityError as error:
                raise StoreError(f"{self.path}: {error}") from None

    def copy_from(self, path: Path) -> None:
        """Add the answers of another file, which is only read. An answer that this file has is kept."""
        kind: Any = tuple[str, str, str, str, str, str, str, bytes, int, Finite]
        with closing(connect_reader(path)) as other, reading(path.parent):
            rows = select(other, kind, "SELECT * FROM verdicts")
            self.db.execute("BEGIN IMMEDIATE")
            self.db.executemany("INSERT OR IGNORE INTO verdicts VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
            self.db.execute("COMMIT")

    def forget(self, label: str, asked: Collection[tuple[str, str]]) -> int:
        """Remove the verdicts of the judge with this label, and return their number.

        `asked` has the (rubric, model) pairs that only this judge used. They identify the verdicts that older versions
        stored without a label.
        """
        ending = f" as {label}"
        with clear_errors(self.path.parent):
            count = self.db.execute(
                "DELETE FROM verdicts WHERE substr(judge, -length(?)) = ?", (ending, ending)
            ).rowcount
            for pair in asked:
                count += self.db.execute("DELETE FROM verdicts WHERE rubric = ? AND judge = ?", pair).rowcount
        return count
