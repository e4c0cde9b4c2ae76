"""A run's store: one SQLite file in WAL mode, with the replies' audio in a content-addressed folder beside it.

One writer at a time, any number of readers. A reply is on disk before the engine counts it as done; a process killed at
any moment leaves at worst a sound nobody refers to, which the next writer sweeps away.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from overtone.errors import StoreError
from overtone.runs.database import clear_errors, connect, network_file_system
from overtone.schema import Item, Key, Reply, Score, Usage

VERSION = 1
APPLICATION = 0x0F372020
PENDING, ANSWERED, FAILED = 0, 1, 2
_SHA = re.compile(r"[0-9a-f]{64}")

_encode = msgspec.json.Encoder().encode
_decode_item = msgspec.json.Decoder(Item).decode


class Ask(Struct, frozen=True):
    """An item under one condition, the repeat-th time, with the replies it has so far."""

    id: int
    item: Item
    condition: str
    repeat: int
    replies: tuple[str, ...] = ()  # texts of the turns already answered

    def key(self, turn: int = 0) -> Key:
        return Key(self.item.id, self.condition, self.repeat, turn)


class StoredReply(Struct, frozen=True):
    """A reply as the store keeps it, under its key. `audio` is the hex name of its sound, or empty."""

    ask: int
    key: Key
    text: str
    audio: str
    finish: str
    refused: bool
    model: str
    notes: tuple[str, ...]
    usage: Usage
    latency: float
    attempts: int


class Failure(Struct, frozen=True):
    ask: int
    key: Key
    reason: str
    detail: str
    attempts: int


class Store:
    """An open run folder. `Store.create(path)` to write, `Store.read(path)` to look."""

    def __init__(self, folder: Path, db: sqlite3.Connection, lock: IO[str] | None) -> None:
        self.folder = folder
        self.db = db
        self._lock = lock
        self._signatures: dict[str, int] = {}
        self.warnings: list[str] = []

    # ── opening and closing ─────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def create(cls, folder: Path, *, fsync: bool = False) -> Store:
        """Open a run folder for writing, making it if needed. Only one process can: a second gets a clear error."""
        try:
            (folder / "audio").mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("a+")
        except OSError as error:
            raise StoreError(f"cannot write to {folder}: {error.strerror}; choose another --out") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            raise StoreError(
                f"{folder} is being written by another process (pid {holder}); "
                "wait for it, stop it, or choose another --out"
            ) from None
        try:
            lock.seek(0)
            lock.truncate()
            lock.write(str(os.getpid()))
            lock.flush()
            store = cls(folder, connect(folder / "run.db", write=True), lock)
            with clear_errors(folder):
                store._prepare(fsync)
        except BaseException:
            lock.close()
            raise
        return store

    @classmethod
    def read(cls, folder: Path) -> Store:
        """Open a run folder to look at it, also while another process writes it."""
        if not (folder / "run.db").is_file():
            raise StoreError(f"{folder} is not a run: it has no run.db; 'overtone run … --out {folder}' makes one")
        store = cls(folder, connect(folder / "run.db", write=False), None)
        with clear_errors(folder):
            store._check_version()
        return store

    def _prepare(self, fsync: bool) -> None:
        mode = "WAL"
        if kind := network_file_system(self.folder):
            mode = "DELETE"
            self.warnings.append(f"{self.folder} is on {kind}: the store uses journal_mode=DELETE, which is slower")
        self.db.execute(f"PRAGMA journal_mode={mode}")
        self.db.execute(f"PRAGMA synchronous={'FULL' if fsync else 'NORMAL'}")
        self.db.execute("PRAGMA wal_autocheckpoint=8000")
        if self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            sql = resources.files("overtone.runs").joinpath("schema.sql").read_text()
            self.db.executescript(
                f"BEGIN IMMEDIATE; {sql} PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; COMMIT;"
            )
        self._check_version()
        if self.meta().get("open") == "yes":
            self._sweep()
        self.set_meta({"open": "yes"})

    def _check_version(self) -> None:
        found = self.db.execute("PRAGMA user_version").fetchone()[0]
        app = self.db.execute("PRAGMA application_id").fetchone()[0]
        if app != APPLICATION or found == 0:
            raise StoreError(f"{self.folder / 'run.db'} is not an Overtone run")
        if found != VERSION:
            raise StoreError(
                f"{self.folder} was written with store version {found}, this Overtone reads version {VERSION}; "
                "use the Overtone that wrote it"
            )

    def close(self) -> None:
        try:
            if self._lock is not None:
                with clear_errors(self.folder):
                    self.commit()
                    self.set_meta({"open": "no"})
        finally:
            self.db.close()
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        if not self.db.in_transaction:
            self.db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make everything added so far durable."""
        if self.db.in_transaction:
            with clear_errors(self.folder):
                self.db.execute("COMMIT")

    # ── what the run is ─────────────────────────────────────────────────────────────────────────────────────────────

    def meta(self) -> dict[str, str]:
        return dict(self.db.execute("SELECT key, value FROM meta"))

    def set_meta(self, values: Mapping[str, str]) -> None:
        self._begin()
        self.db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))
        self.commit()

    def add_event(self, kind: str, detail: str) -> None:
        self._begin()
        self.db.execute("INSERT INTO events VALUES (?, ?, ?)", (time.time(), kind, detail))

    def events(self) -> list[tuple[float, str, str]]:
        return list(self.db.execute("SELECT at, kind, detail FROM events ORDER BY at"))

    # ── items and asks ──────────────────────────────────────────────────────────────────────────────────────────────

    def forget_wanted(self) -> None:
        """Start a new plan: nothing is wanted until `plan` names it again."""
        self._begin()
        self.db.execute("UPDATE asks SET wanted = 0")

    def plan(self, planned: Sequence[tuple[Item, Sequence[str]]], repeats: int) -> None:
        """Add items with the names of their conditions. An item already there must be the same item."""
        with clear_errors(self.folder):
            self._begin()
            bodies = [(item, _encode(item), conditions) for item, conditions in planned]
            marks = ",".join("?" * len(bodies))
            known = {
                row[0]: (row[1], row[2])
                for row in self.db.execute(
                    f"SELECT id, seq, body FROM items WHERE id IN ({marks})", [item.id for item, _, _ in bodies]
                )
            }
            asks: list[tuple[int, str, int]] = []
            for item, body, conditions in bodies:
                if item.id in known:
                    seq, stored = known[item.id]
                    if bytes(stored) != body:
                        raise StoreError(_item_changed(self.folder, _decode_item(stored), item))
                else:
                    cursor = self.db.execute(
                        "INSERT INTO items (id, level, task, category, case_id, group_id, style, cue, body) "
                        "VALUES (?,?,?,?,?,?,?,?,?)",
                        (
                            item.id,
                            item.level,
                            item.task,
                            item.category,
                            item.case,
                            item.group,
                            item.style,
                            item.cue,
                            body,
                        ),
                    )
                    assert cursor.lastrowid is not None
                    seq = cursor.lastrowid
                    known[item.id] = (seq, body)
                asks.extend((seq, condition, repeat) for condition in conditions for repeat in range(repeats))
            self.db.executemany(
                "INSERT INTO asks (item, condition, repeat) VALUES (?,?,?) "
                "ON CONFLICT (item, condition, repeat) DO UPDATE SET wanted = 1",
                asks,
            )

    def open_asks(self, after: int, count: int) -> list[Ask]:
        """The next wanted asks without a full reply whose id is greater than `after`, in order."""
        rows = self.db.execute(
            "SELECT a.id, i.body, a.condition, a.repeat FROM asks a JOIN items i ON i.seq = a.item "
            "WHERE a.state <> 1 AND a.wanted AND a.id > ? ORDER BY a.id LIMIT ?",
            (after, count),
        ).fetchall()
        out = []
        for ask, body, condition, repeat in rows:
            item = _decode_item(body)
            told: tuple[str, ...] = ()
            if len(item.turns) > 1:
                told = tuple(
                    row[0] for row in self.db.execute("SELECT text FROM replies WHERE ask = ? ORDER BY turn", (ask,))
                )
            out.append(Ask(ask, item, condition, repeat, told))
        return out

    def items(self) -> Iterator[Item]:
        """Every item, in the benchmark's order."""
        for row in self.db.execute("SELECT body FROM items ORDER BY seq"):
            yield _decode_item(row[0])

    def counts(self, *, wanted_only: bool = False) -> dict[str, int]:
        """How many asks are pending, answered and failed."""
        where = "WHERE wanted" if wanted_only else ""
        found = dict(self.db.execute(f"SELECT state, count(*) FROM asks {where} GROUP BY state"))
        return {name: found.get(state, 0) for state, name in ((0, "pending"), (1, "answered"), (2, "failed"))}

    # ── replies and failures ────────────────────────────────────────────────────────────────────────────────────────

    def add_reply(self, ask: Ask, turn: int, reply: Reply, *, sent: bytes, latency: float, attempts: int) -> None:
        """Keep a reply. It is durable after the next `commit`. The ask is answered with its last turn."""
        with clear_errors(self.folder):
            audio = self._put_audio(reply.audio) if reply.audio else ""
            self._begin()
            self.db.execute(
                "INSERT INTO replies VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    ask.id,
                    turn,
                    reply.text,
                    audio,
                    reply.finish,
                    reply.refused,
                    reply.model,
                    _encode(reply.notes),
                    _encode(reply.usage),
                    sent,
                    latency,
                    attempts,
                    time.time(),
                ),
            )
            if turn == len(ask.item.turns) - 1:
                self.db.execute("UPDATE asks SET state = 1 WHERE id = ?", (ask.id,))
                self.db.execute("DELETE FROM failures WHERE ask = ?", (ask.id,))

    def add_failure(self, ask: Ask, turn: int, reason: str, detail: str, attempts: int) -> None:
        with clear_errors(self.folder):
            self._begin()
            self.db.execute(
                "INSERT OR REPLACE INTO failures VALUES (?,?,?,?,?,?)",
                (ask.id, turn, reason, detail, attempts, time.time()),
            )
            self.db.execute("UPDATE asks SET state = 2 WHERE id = ?", (ask.id,))

    def _put_audio(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        path = self.audio_path(name)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_suffix(".part")
            try:
                temporary.write_bytes(data)
                temporary.rename(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
        return name

    def audio_path(self, name: str) -> Path:
        """Where a stored sound lies. A name that is not plain hex is refused: a stranger's run may hold anything."""
        if not _SHA.fullmatch(name):
            raise StoreError(f"{self.folder}: {name[:80]!r} is not the name of a stored sound")
        return self.folder / "audio" / name[:2] / f"{name}.wav"

    def _sweep(self) -> None:
        """Remove sounds that a killed process wrote but whose reply it never committed."""
        kept = {row[0] for row in self.db.execute("SELECT DISTINCT audio FROM replies WHERE audio <> ''")}
        for path in (self.folder / "audio").glob("??/*"):
            if path.suffix == ".part" or path.stem not in kept:
                path.unlink()

    def replies(self) -> Iterator[StoredReply]:
        for row in self.db.execute(f"{_REPLIES} ORDER BY r.ask, r.turn"):
            yield _stored(row)

    def reply(self, key: Key) -> StoredReply | None:
        """The reply under a key, or None."""
        row = self.db.execute(
            f"{_REPLIES} WHERE i.id = ? AND a.condition = ? AND a.repeat = ? AND r.turn = ?",
            (key.item, key.condition, key.repeat, key.turn),
        ).fetchone()
        return _stored(row) if row else None

    def sent(self, ask: int, turn: int) -> list[dict[str, Any]]:
        """The messages that were sent for a reply, with each sound as its SHA-256."""
        row = self.db.execute("SELECT sent FROM replies WHERE ask = ? AND turn = ?", (ask, turn)).fetchone()
        return msgspec.json.decode(row[0], type=list[dict[str, Any]]) if row else []

    def failures(self) -> Iterator[Failure]:
        for row in self.db.execute(
            "SELECT f.ask, i.id, a.condition, a.repeat, f.turn, f.reason, f.detail, f.attempts FROM failures f "
            "JOIN asks a ON a.id = f.ask JOIN items i ON i.seq = a.item ORDER BY f.ask"
        ):
            yield Failure(row[0], Key(row[1], row[2], row[3], row[4]), row[5], row[6], row[7])

    def asks(self, *, case: str | None = None) -> Iterator[tuple[Ask, int]]:
        """Every ask with its state, in order; of one case if given."""
        where, args = ("WHERE i.case_id = ?", (case,)) if case is not None else ("", ())
        for row in self.db.execute(
            "SELECT a.id, i.body, a.condition, a.repeat, a.state FROM asks a JOIN items i ON i.seq = a.item "
            f"{where} ORDER BY a.id",
            args,
        ):
            yield Ask(row[0], _decode_item(row[1]), row[2], row[3]), row[4]

    def answered(self) -> Iterator[tuple[Ask, int, str, str, str, bool]]:
        """Every answered ask with its last turn's reply: turn, text, audio, finish, refused."""
        for row in self.db.execute(
            "SELECT a.id, i.body, a.condition, a.repeat, r.turn, r.text, r.audio, r.finish, r.refused FROM asks a "
            "JOIN items i ON i.seq = a.item JOIN replies r ON r.ask = a.id "
            "WHERE a.state = 1 AND r.turn = (SELECT max(turn) FROM replies WHERE ask = a.id) ORDER BY a.id"
        ):
            ask = Ask(row[0], _decode_item(row[1]), row[2], row[3])
            yield ask, row[4], row[5], row[6], row[7], bool(row[8])

    # ── clips ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def clips(self) -> dict[str, tuple[str, int, int, float]]:
        """path → (sha256, size, mtime in ns, seconds) of every clip the run has used."""
        return {row[0]: row[1:] for row in self.db.execute("SELECT path, sha256, size, mtime_ns, seconds FROM clips")}

    def add_clip(self, path: str, sha256: str, size: int, mtime_ns: int, seconds: float) -> None:
        with clear_errors(self.folder):
            self._begin()
            self.db.execute("INSERT OR REPLACE INTO clips VALUES (?,?,?,?,?)", (path, sha256, size, mtime_ns, seconds))

    # ── scores ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def scored(self, metric_signature: str) -> set[int]:
        """Asks that already hold a value with this signature."""
        row = self.db.execute("SELECT id FROM signatures WHERE text = ?", (metric_signature,)).fetchone()
        if row is None:
            return set()
        found = self.db.execute(
            "SELECT subject FROM scores WHERE kind = 'reply' AND signature = ? AND value IS NOT NULL", row
        )
        return {r[0] for r in found}

    def add_scores(self, scored: Iterable[tuple[int, Score]]) -> None:
        """Keep scores of replies, each under its ask."""
        with clear_errors(self.folder):
            self._begin()
            self.db.executemany(
                "INSERT OR REPLACE INTO scores VALUES ('reply',?,?,?,?,?,?)",
                [
                    (ask, s.metric, self._signature(s.signature), s.value, s.reason, _encode(s.detail))
                    for ask, s in scored
                ],
            )

    def _signature(self, text: str) -> int:
        if text not in self._signatures:
            self.db.execute("INSERT OR IGNORE INTO signatures (text) VALUES (?)", (text,))
            self._signatures[text] = self.db.execute("SELECT id FROM signatures WHERE text = ?", (text,)).fetchone()[0]
        return self._signatures[text]

    def scores(self) -> Iterator[tuple[int, Score]]:
        """Every reply's scores, by ask. Equal scores are one object: most questions are answered in a few ways."""
        known: dict[tuple[Any, ...], Score] = {}
        for row in self.db.execute(
            "SELECT s.subject, s.metric, g.text, s.value, s.reason, s.detail FROM scores s "
            "JOIN signatures g ON g.id = s.signature WHERE s.kind = 'reply' ORDER BY s.subject, s.metric, g.id"
        ):
            told = row[1:]
            score = known.get(told)
            if score is None:
                score = known[told] = Score(row[1], row[2], row[3], row[4], msgspec.json.decode(row[5]))
                if len(known) > 20_000:
                    known.clear()
            yield row[0], score


_REPLIES = (
    "SELECT r.ask, i.id, a.condition, a.repeat, r.turn, r.text, r.audio, r.finish, r.refused, r.model, r.notes, "
    "r.usage, r.latency, r.attempts FROM replies r JOIN asks a ON a.id = r.ask JOIN items i ON i.seq = a.item"
)


def _stored(row: tuple[Any, ...]) -> StoredReply:
    notes = msgspec.json.decode(row[10], type=tuple[str, ...])
    usage = msgspec.json.decode(row[11], type=Usage)
    text, audio, finish = row[5:8]
    return StoredReply(
        row[0], Key(*row[1:5]), text, audio, finish, bool(row[8]), row[9], notes, usage, row[12], row[13]
    )


def _item_changed(folder: Path, old: Item, new: Item) -> str:
    changed = [
        f"{name}: {getattr(old, name)!r} → {getattr(new, name)!r}"
        for name in Item.__struct_fields__
        if getattr(old, name) != getattr(new, name)
    ]
    return (
        f"{folder}: item {new.id} is not the item this run has asked ({'; '.join(changed)[:600]}); "
        "the benchmark's files changed: choose another --out"
    )
