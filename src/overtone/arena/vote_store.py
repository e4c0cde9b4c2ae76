"""The stored state of an arena: its pairs and all votes of judges and people, in one SQLite file.

Pairs stay in the order in which they were drawn. A vote says which run the rater saw on side A, and which side won. A
file of people's votes is imported completely or not at all. Judges' verdicts are stored in files next to this one
before they become votes, so a killed process loses no verdict that was paid for.
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
from overtone.stats.votes import Votes, votes

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
_INSERT_VOTE = (
    "INSERT INTO votes (pair, a, b, winner, rater, kind, rubric, repeat, origin, place) VALUES (?,?,?,?,?,?,?,?,?,?)"
)
Kind = Literal["person", "judge"]


class Vote(Struct, frozen=True):
    """One vote. The rater saw run `a` on side A. `origin` and `place` are the vote's file and line, for messages."""

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


class StudyVote(Vote, frozen=True):
    """A vote from a study, which is not stored here. `answer` says which kind of tie it is: both_good or both_bad.

    `graded`: the answer was on a scale from −3 to 3 (CMOS), which does not say whether a reply is acceptable.
    """

    answer: str = ""
    graded: bool = False


def counted(cast: Sequence[Vote]) -> Votes:
    """Convert stored votes to the arrays that `stats` computes with."""
    return votes([v.a for v in cast], [v.b for v in cast], [v.winner for v in cast])


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
            foreign="is not an arena of this version of Overtone; choose another --out",
        )

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *exc: object) -> None:
        self.db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Open a transaction: everything written inside it is stored, or nothing."""
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
        """Store pairs in this order. Existing pairs do not change."""
        with self._transaction():
            self._add_pairs(pairs)

    def _add_pairs(self, pairs: Iterable[Pair]) -> None:
        self.db.executemany(
            "INSERT OR IGNORE INTO pairs (id, key, case_id, group_id, cue, a, b, drawn, words_a, words_b, seconds_a, "
            "seconds_b) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            [(p.id, p.key, p.case, p.group, p.cue, p.a, p.b, int(p.drawn), *p.words, *p.seconds) for p in pairs],
        )

    def pairs(self) -> list[Pair]:
        """Return all pairs in the order in which they were stored."""
        pairs = []
        with clear_errors(self.folder):
            for name, key, case, group, cue, a, b, drawn, *lengths in self.db.execute(
                "SELECT id, key, case_id, group_id, cue, a, b, drawn, words_a, words_b, seconds_a, seconds_b "
                "FROM pairs ORDER BY seq"
            ):
                words, seconds = (lengths[0], lengths[1]), (lengths[2], lengths[3])
                pairs.append(Pair(name, key, case, group, cue, a, b, bool(drawn), words, seconds))
        return pairs

    # ── votes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def votes(self) -> list[Vote]:
        """Return all votes in the order in which they were stored."""
        with clear_errors(self.folder):
            rows = self.db.execute(
                "SELECT pair, a, b, winner, rater, kind, rubric, repeat, origin, place FROM votes ORDER BY seq"
            ).fetchall()
        return [Vote(*row) for row in rows]

    def store(self, votes: Iterable[Vote]) -> None:
        """Store a judge's votes. A new answer to the same question replaces the old one."""
        replace = f"{_INSERT_VOTE} ON CONFLICT DO UPDATE SET winner = excluded.winner"
        with self._transaction():
            self.db.executemany(replace, list(map(msgspec.structs.astuple, votes)))

    def import_file(self, origin: str, pairs: Sequence[Pair], votes: Sequence[Vote]) -> None:
        """Import all votes of a file. They replace the votes from an earlier import of the same file."""
        with self._transaction():
            self._add_pairs(pairs)
            self.db.execute("DELETE FROM votes WHERE origin = ?", (origin,))
            for vote in votes:
                earlier = self._earlier(vote)
                if earlier is not None:
                    raise StoreError(
                        f"{origin}, {vote.place}: {vote.rater!r} has voted on this pair before ({earlier}); "
                        "keep one of the two votes"
                    )
                self.db.execute(_INSERT_VOTE, msgspec.structs.astuple(msgspec.structs.replace(vote, origin=origin)))

    def _earlier(self, vote: Vote) -> str | None:
        """Return where an earlier vote of the same rater on the same question came from (file and line), or None.

        A person votes once per pair, a judge once per side and repeat.
        """
        row = self.db.execute(
            "SELECT origin, place FROM votes WHERE pair = ?1 AND rater = ?2 AND kind = ?3 "
            "AND (kind = 'person' OR (a = ?4 AND rubric = ?5 AND repeat = ?6))",
            (vote.pair, vote.rater, vote.kind, vote.a, vote.rubric, vote.repeat),
        ).fetchone()
        return None if row is None else f"{row[0]}, {row[1]}" if row[1] else str(row[0])
