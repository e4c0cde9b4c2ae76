"""The table of an arena: its pairs and all votes on them, from judges and people alike, in one SQLite file.

Pairs are kept in the order they were drawn and stay. Votes are kept as they were cast: who stood on side A when the
rater saw them, and which side won. A file of people's votes is taken in whole or not at all; judges' votes come from
the verdicts beside this file, which are paid once, so a process killed at any moment loses nothing that cost anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from overtone.arena.pairing import Pair
from overtone.errors import StoreError
from overtone.runs.database import clear_errors, open_tables

FILE = "arena.db"
VERDICTS = "verdicts.db"
VERSION = 1
APPLICATION = 0x0F372022
_TABLES = {
    "pairs": (
        "CREATE TABLE pairs (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL, "
        "case_id TEXT NOT NULL, group_id TEXT NOT NULL, cue TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, "
        "drawn INTEGER NOT NULL, words_a INTEGER, words_b INTEGER, seconds_a REAL, seconds_b REAL)"
    ),
    "votes": (
        "CREATE TABLE votes (seq INTEGER PRIMARY KEY, pair TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, "
        "winner TEXT NOT NULL, rater TEXT NOT NULL, kind TEXT NOT NULL, rubric TEXT NOT NULL, repeat INTEGER NOT NULL, "
        "origin TEXT NOT NULL, place TEXT NOT NULL, UNIQUE (pair, a, rater, kind, rubric, repeat))"
    ),
}
Kind = Literal["person", "judge"]


class Vote(Struct, frozen=True):
    """One vote as it was cast: `a` stood on side A. `origin` and `place` say where it came from, for messages."""

    pair: str
    a: str
    b: str
    winner: str  # A, B or tie
    rater: str
    kind: Kind
    rubric: str = ""
    repeat: int = 0
    origin: str = ""
    place: str = ""


class Table:
    """An open arena folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.db = open_tables(
            self.path,
            _TABLES,
            application=APPLICATION,
            version=VERSION,
            foreign="is no arena of this Overtone; choose another --out",
        )

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *exc: object) -> None:
        self.db.close()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Everything inside is kept, or nothing of it."""
        with clear_errors(self.folder):
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    # ── pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_pairs(self, pairs: Iterable[Pair]) -> None:
        """Keep pairs in this order; one that is there stays as it is."""
        with self._together():
            self._add_pairs(pairs)

    def _add_pairs(self, pairs: Iterable[Pair]) -> None:
        self.db.executemany(
            "INSERT OR IGNORE INTO pairs (id, key, case_id, group_id, cue, a, b, drawn, words_a, words_b, seconds_a, "
            "seconds_b) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            [(p.id, p.key, p.case, p.group, p.cue, p.a, p.b, int(p.drawn), *p.words, *p.seconds) for p in pairs],
        )

    def pairs(self) -> list[Pair]:
        """In the order they came."""
        found = []
        with clear_errors(self.folder):
            for name, key, case, group, cue, a, b, drawn, *lengths in self.db.execute(
                "SELECT id, key, case_id, group_id, cue, a, b, drawn, words_a, words_b, seconds_a, seconds_b "
                "FROM pairs ORDER BY seq"
            ):
                words, seconds = (lengths[0], lengths[1]), (lengths[2], lengths[3])
                found.append(Pair(name, key, case, group, cue, a, b, bool(drawn), words, seconds))
        return found

    # ── votes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def votes(self) -> list[Vote]:
        """In the order they came."""
        with clear_errors(self.folder):
            rows = self.db.execute(
                "SELECT pair, a, b, winner, rater, kind, rubric, repeat, origin, place FROM votes ORDER BY seq"
            ).fetchall()
        return [Vote(*row) for row in rows]

    def keep(self, votes: Iterable[Vote]) -> None:
        """Keep a judge's votes; the same question answered anew takes the place of the old answer."""
        with self._together():
            for vote in votes:
                self.db.execute(
                    "INSERT INTO votes (pair, a, b, winner, rater, kind, rubric, repeat, origin, place) "
                    "VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET winner = excluded.winner",
                    _row(vote),
                )

    def take_in(self, origin: str, pairs: Sequence[Pair], votes: Sequence[Vote]) -> None:
        """Take in a file of votes whole, in place of what an earlier version of the same file said."""
        with self._together():
            self._add_pairs(pairs)
            self.db.execute("DELETE FROM votes WHERE origin = ?", (origin,))
            for vote in votes:
                known = self._before(vote)
                if known is not None:
                    raise StoreError(
                        f"{origin}, {vote.place}: {vote.rater!r} has voted on this pair before ({known}); "
                        "keep one of the two votes"
                    )
                self.db.execute(
                    "INSERT INTO votes (pair, a, b, winner, rater, kind, rubric, repeat, origin, place) "
                    "VALUES (?,?,?,?,?,?,?,?,?,?)",
                    _row(msgspec.structs.replace(vote, origin=origin)),
                )

    def _before(self, vote: Vote) -> str | None:
        """Where the same vote was cast before. A person votes on a pair once, a judge once on each side and repeat."""
        row = self.db.execute(
            "SELECT origin, place FROM votes WHERE pair = ?1 AND rater = ?2 AND kind = ?3 "
            "AND (kind = 'person' OR (a = ?4 AND rubric = ?5 AND repeat = ?6))",
            (vote.pair, vote.rater, vote.kind, vote.a, vote.rubric, vote.repeat),
        ).fetchone()
        return None if row is None else f"{row[0]}, {row[1]}" if row[1] else str(row[0])


def _row(vote: Vote) -> tuple[object, ...]:
    return (
        vote.pair, vote.a, vote.b, vote.winner, vote.rater,
        vote.kind, vote.rubric, vote.repeat, vote.origin, vote.place,
    )  # fmt: skip
