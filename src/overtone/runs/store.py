"""A run's store: one SQLite file in WAL mode, and a content-addressed folder next to it for the replies' audio.

There is one writer at a time and any number of readers. A reply is on disk before the engine counts it as done. A
process that is killed at any moment leaves at worst an unused sound, which the next writer removes. With `fsync`, this
also holds for a power failure: a sound and its folder are synced before the reply that names it is committed.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, product, repeat
from pathlib import Path
from typing import IO

import msgspec

from overtone import locks
from overtone.errors import RunLocked, StoreError
from overtone.paths import shown, to_disk
from overtone.runs import upgrade
from overtone.runs.database import clear_errors, connect, network_file_system
from overtone.runs.folder_safety import check_plain, reading, select
from overtone.runs.measurement_choice import ASKED, read_history, record
from overtone.runs.read_only import ReadConnection, connect_reader
from overtone.runs.records import ANSWERED, FAILED, PENDING, SHA, Rows, decode_item
from overtone.runs.stored_asks import Ask, Failure, Part, StoredReply
from overtone.runs.upgrade import VERSION
from overtone.schema import Item, Reply, Score
from overtone.scores import Declared
from overtone.suite import find_suite, is_installed

__all__ = ["ANSWERED", "FAILED", "PENDING", "VERSION", "Ask", "Failure", "Part", "Store", "StoredReply"]

CHECK_EVERY = 1.0  # seconds between two looks whether the folder that is written is still there

_FILES = {"audio", "lock", "run.db", "run.db-wal", "run.db-shm", "run.db-journal", "run.log", "workers"}
_encode = msgspec.json.Encoder().encode


def check_place(folder: Path) -> None:
    """Raise StoreError unless the folder is new, empty or a run, including one killed before its store was created."""
    try:
        others = {path.name for path in folder.iterdir()} - _FILES
        is_run = (folder / "run.db").exists()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot write to {shown(str(folder))}: {error.strerror}; choose another --out") from None
    if others and not is_run:
        raise StoreError(
            f"{shown(str(folder))} is not a run and not empty (it has {shown(min(others))[:60]!r}); "
            "name a new folder with --out"
        )


class Store(Rows):
    """An open run folder. `Store.create(path)` opens it for writing, `Store.read(path)` for reading."""

    def __init__(self, folder: Path, db: sqlite3.Connection, lock: IO[str] | None) -> None:
        super().__init__(folder, db)
        self._lock = lock
        self._file = _identity(folder / "run.db")
        self._checked = time.monotonic()
        self._signatures: dict[str, int] = {}
        self._recorded: set[tuple[str, str]] = set()  # measurements whose asking is written down, see `_record`
        self.warnings: list[str] = []
        self.upgraded_from: Path | None = None  # the copy of the file of an older version that was upgraded
        self._fsync = False
        self._synced: set[str] = set()  # sounds that no loss of power can take any more

    # ── opening and closing ─────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def create(cls, folder: Path, *, fsync: bool = False) -> Store:
        """Open a run folder for writing, and create it if missing. Raises StoreError if another process writes it."""
        check_plain(folder)
        check_place(folder)
        try:
            (folder / "audio").mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("a+")
        except OSError as error:
            raise StoreError(f"cannot write to {folder}: {error.strerror}; choose another --out") from None
        if not locks.lock(lock):
            lock.seek(0)
            holder = shown(lock.read(20).strip()) or "unknown"
            lock.close()
            raise RunLocked(
                f"{folder} is being written by another process (pid {holder}); "
                "wait for it, stop it, or choose another --out"
            )
        try:
            with clear_errors(folder):
                lock.seek(0)
                lock.truncate()
                lock.write(str(os.getpid()))
                lock.flush()
            store = cls(folder, connect(folder / "run.db"), lock)
            with clear_errors(folder):
                store._prepare(fsync)
        except BaseException:
            lock.close()
            raise
        return store

    @classmethod
    def read(cls, folder: Path) -> Store:
        """Open a run folder for reading, also while another process writes it. The folder is not changed."""
        if not (folder / "run.db").is_file():
            raise StoreError(f"{folder} is not a run: it has no run.db; 'overtone run … --out {folder}' makes one")
        return cls(folder, _connected(folder), None)

    @property
    def db(self) -> sqlite3.Connection:
        """The open database. A reader opens it again if another process has written it since."""
        if isinstance(self._db, ReadConnection) and self._db.behind:
            self._db = _connected(self.folder)  # a query of the old one raises Rewritten if rows changed under it
        return self._db

    def _prepare(self, fsync: bool) -> None:
        self._fsync = fsync
        if fsync:
            for folder in (self.folder / "audio", self.folder, self.folder.absolute().parent):
                to_disk(folder)
        mode = "WAL"
        if kind := network_file_system(self.folder):
            mode = "DELETE"
            self.warnings.append(f"{self.folder} is on {kind}: the store uses journal_mode=DELETE, which is slower")
        self.db.execute(f"PRAGMA journal_mode={mode}")
        self.db.execute(f"PRAGMA synchronous={'FULL' if fsync else 'NORMAL'}")
        self.db.execute("PRAGMA wal_autocheckpoint=8000")
        if self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            upgrade.create(self.db)
        self.upgraded_from = upgrade.upgrade(self.db, self.folder, upgrade.version_of(self.db, self.folder))
        meta = self.meta()
        if meta.get("open") == "yes":
            self._sweep()
        if meta.get("benchmark") and self.db.execute("SELECT count(*) FROM suite").fetchone()[0] == 0:
            self.keep_suite(meta["benchmark"])
        self.set_meta({"open": "yes"})

    def close(self) -> None:
        try:
            if self._lock is not None:
                with clear_errors(self.folder):
                    self.commit()
                    self.set_meta({"open": "no"})
        finally:
            self._db.close()
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
            if self._lock is not None and time.monotonic() - self._checked >= CHECK_EVERY:
                self.check_present()

    def check_present(self) -> None:
        """Raise StoreError if the open file was deleted or replaced, which SQLite does not notice."""
        found = _identity(self.folder / "run.db")
        if found is None or found != self._file:
            state = "was deleted or moved" if found is None else "was replaced by another file"
            raise StoreError(
                f"{self.folder}: run.db {state} while it was being written; nothing more is asked. "
                "Restore the folder, or choose another --out"
            )
        self._checked = time.monotonic()

    # ── what the run is ─────────────────────────────────────────────────────────────────────────────────────────────

    def set_meta(self, values: Mapping[str, str]) -> None:
        with clear_errors(self.folder):
            self._begin()
            self.db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))
            self.commit()

    def declare(self, declared: Declared) -> None:
        """Store the declarations of scores, replacing earlier ones."""
        with clear_errors(self.folder):
            self._begin()
            rows = [(score, _encode(info)) for score, info in declared.items()]
            self.db.executemany("INSERT OR REPLACE INTO declarations VALUES (?, ?)", rows)

    def keep_suite(self, benchmark: str) -> None:
        """Store the benchmark's description of itself, replacing the earlier one. If the benchmark is not installed,
        nothing changes."""
        if not is_installed(benchmark):
            return
        with clear_errors(self.folder):
            self._begin()
            self.db.execute("DELETE FROM suite")
            self.db.execute("INSERT INTO suite VALUES (?, ?)", (benchmark, _encode(find_suite(benchmark))))
            self.commit()

    def add_event(self, kind: str, detail: str) -> None:
        with clear_errors(self.folder):
            self._begin()
            self.db.execute("INSERT INTO events VALUES (?, ?, ?)", (time.time(), kind, detail))

    # ── items and asks ──────────────────────────────────────────────────────────────────────────────────────────────

    def forget_wanted(self) -> None:
        """Start a new plan: no ask is wanted until `plan` adds it again."""
        with clear_errors(self.folder):
            self._begin()
            self.db.execute("UPDATE asks SET wanted = 0")

    def plan(
        self, planned: Sequence[tuple[Item, Sequence[str]]], repeats: int, numbers: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Add items with the names of their conditions. Raises StoreError if a stored item has changed.

        `numbers` gives each item its number and that of its first ask (default: the next ones).
        """
        with reading(self.folder):
            self._begin()
            bodies = [(item, _encode(item), conditions) for item, conditions in planned]
            marks = ",".join("?" * len(bodies))
            sql = f"SELECT id, seq, body FROM items WHERE id IN ({marks})"
            stored_rows = select(self.db, tuple[str, int, bytes], sql, [item.id for item, _, _ in bodies])
            known = {id_: (seq, body) for id_, seq, body in stored_rows}
            asks: list[tuple[int | None, int, str, int]] = []
            given: Iterable[tuple[int | None, int | None]] = numbers or repeat((None, None))
            for (item, body, conditions), (number, first) in zip(bodies, given, strict=False):
                if item.id in known:
                    seq, stored = known[item.id]
                    if stored != body:
                        raise StoreError(_item_changed(self.folder, decode_item(stored), item))
                else:
                    about = item.level, item.task, item.category, item.case, item.group, item.style, item.cue
                    row = number, item.id, *about, body
                    cursor = self.db.execute("INSERT INTO items VALUES (?,?,?,?,?,?,?,?,?,?)", row)
                    assert cursor.lastrowid is not None
                    seq = cursor.lastrowid
                    known[item.id] = (seq, body)
                ids = repeat(None) if first is None else count(first)
                asks.extend(
                    (id_, seq, *one) for id_, one in zip(ids, product(conditions, range(repeats)), strict=False)
                )
            self.db.executemany(
                "INSERT INTO asks (id, item, condition, repeat) VALUES (?,?,?,?) "
                "ON CONFLICT (item, condition, repeat) DO UPDATE SET wanted = 1",
                asks,
            )

    # ── replies and failures ────────────────────────────────────────────────────────────────────────────────────────

    def add_reply(self, ask: Ask, turn: int, reply: Reply, *, sent: bytes, latency: float, attempts: int) -> None:
        """Store a reply. It is durable after the next `commit`. The last turn marks the ask as answered."""
        with clear_errors(self.folder):
            audio = self.put_audio(reply.audio) if reply.audio else ""
            both = self.put_audio(reply.session.audio) if reply.session and reply.session.audio else ""
            self._begin()
            row = (
                ask.id, turn, reply.text, audio, reply.finish, reply.refused, reply.model, _encode(reply.notes),
                _encode(reply.usage), sent, latency, attempts, time.time(),
            )  # fmt: skip
            self.db.execute("INSERT INTO replies VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", row)
            if reply.session:
                events = _encode(reply.session.events)
                self.db.execute("INSERT INTO sessions VALUES (?,?,?,?)", (ask.id, turn, both, events))
            for table, value in (("likelihoods", reply.likelihoods), ("timings", reply.timings)):
                if value:
                    self.db.execute(f"INSERT INTO {table} VALUES (?,?,?)", (ask.id, turn, _encode(value)))
            if turn == len(ask.item.turns) - 1:
                self.db.execute("UPDATE asks SET state = 1 WHERE id = ?", (ask.id,))
                self.db.execute("DELETE FROM failures WHERE ask = ?", (ask.id,))

    def add_failure(self, ask: Ask, turn: int, reason: str, detail: str, attempts: int) -> None:
        with clear_errors(self.folder):
            self._begin()
            self.db.execute(
                "INSERT OR REPLACE INTO failures VALUES (?,?,?,?,?,?)",
                (ask.id, turn, reason, detail.encode("utf-8", "backslashreplace").decode(), attempts, time.time()),
            )
            self.db.execute("UPDATE asks SET state = 2 WHERE id = ?", (ask.id,))

    def put_audio(self, data: bytes) -> str:
        """Store a sound, and return its name."""
        name = hashlib.sha256(data).hexdigest()
        path = self.audio_path(name)
        if not path.exists() or path.stat().st_size != len(data):  # a loss of power can leave a file without its bytes
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_suffix(".part")
            try:
                temporary.write_bytes(data)
                if self._fsync:
                    to_disk(temporary)
                temporary.rename(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
        if self._fsync and name not in self._synced:
            for written in (path, path.parent, path.parent.parent):
                to_disk(written)
            self._synced.add(name)
        return name

    def _sweep(self) -> None:
        """Remove sounds of replies that a killed process did not commit."""
        with reading(self.folder):
            kept = self.sounds()
        for path in (self.folder / "audio").glob("??/*"):
            if SHA.fullmatch(path.stem) and (path.suffix == ".part" or path.stem not in kept):
                path.unlink()

    # ── clips ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_clip(self, path: str, sha256: str, size: int, mtime_ns: int, seconds: float) -> None:
        with clear_errors(self.folder):
            self._begin()
            self.db.execute("INSERT OR REPLACE INTO clips VALUES (?,?,?,?,?)", (path, sha256, size, mtime_ns, seconds))

    # ── scores ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_scores(
        self,
        scored: Iterable[tuple[int, Score]],
        *,
        turn: int | None = None,
        keep_values: bool = False,
        named: bool = True,
    ) -> None:
        """Store scores by ask: those of the last reply, or of the reply to an earlier turn.

        They replace older scores with the same signature; with `keep_values`, a score without a value does not replace
        a value. `named` says whether the user requested this measurement by name; see `runs.measurement_choice`.
        """
        kind = "reply" if turn is None else f"turn {turn}"
        scored = list(scored)
        with clear_errors(self.folder):
            self._begin()
            self._record({(s.metric, s.signature) for _, s in scored}, named)
            self.db.executemany(
                "INSERT INTO scores VALUES (?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
                "value = excluded.value, reason = excluded.reason, detail = excluded.detail"
                + (" WHERE excluded.value IS NOT NULL OR scores.value IS NULL" if keep_values else ""),
                [
                    (kind, ask, s.metric, self._signature(s.signature), s.value, s.reason, _encode(s.detail))
                    for ask, s in scored
                ],
            )

    def _record(self, measurements: set[tuple[str, str]], named: bool) -> None:
        """Add measurements to the history of requests."""
        new = sorted(measurements - self._recorded)
        if not new:
            return
        self._recorded.update(new)
        history = read_history(self.meta())
        if True in [record(history, metric, signature, named) for metric, signature in new]:
            self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (ASKED, _encode(history).decode()))

    def judge_labels(self) -> list[str]:
        """Return the labels of the judges and readers that scored replies."""
        with reading(self.folder):
            sql = "SELECT DISTINCT s.metric, t.text FROM scores s JOIN signatures t ON t.id = s.signature"
            rows = list(select(self.db, tuple[str, str], sql))
        judges = {metric.partition("@")[2] for metric, _ in rows if "@" in metric}
        readers = {text.partition("|reader:")[2].partition("|")[0] for _, text in rows if "|reader:" in text}
        return sorted(judges | readers)

    def remove_judge(self, label: str) -> tuple[set[str], int, int]:
        """Remove the scores of the judge or reader with this label.

        Return their signatures, the number of scores, and the number of replies that had them."""
        theirs = (
            "(instr(metric, '@') > 0 AND substr(metric, instr(metric, '@') + 1) = ?1) "
            "OR signature IN (SELECT id FROM signatures WHERE instr(text, '|reader:' || ?1 || '|') > 0)"
        )
        with reading(self.folder):
            self._begin()
            sql = f"SELECT text FROM signatures WHERE id IN (SELECT signature FROM scores WHERE {theirs})"
            signatures = {text for (text,) in select(self.db, tuple[str], sql, (label,))}
            sql = f"SELECT count(*), count(DISTINCT kind || ' ' || subject) FROM scores WHERE {theirs}"
            ((scores, replies),) = select(self.db, tuple[int, int], sql, (label,))
            self.db.execute(f"DELETE FROM scores WHERE {theirs}", (label,))
            self.commit()
        return signatures, scores, replies

    def _signature(self, text: str) -> int:
        if text not in self._signatures:
            self.db.execute("INSERT OR IGNORE INTO signatures (text) VALUES (?)", (text,))
            self._signatures[text] = self.db.execute("SELECT id FROM signatures WHERE text = ?", (text,)).fetchone()[0]
        return self._signatures[text]


def _connected(folder: Path) -> ReadConnection:
    """Connect to a run for reading. A store of an older version is presented in the current format."""
    with clear_errors(folder):
        db = connect_reader(folder / "run.db")
        try:
            upgrade.read_as_new(db, upgrade.version_of(db, folder))
        except BaseException:
            db.close()
            raise
        return db


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, or None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


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
