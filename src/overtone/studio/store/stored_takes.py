"""Takes: recordings by speakers, stored by the hash of their content beside the study file."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from overtone.errors import StoreError
from overtone.paths import sha256, shown, to_disk
from overtone.studio.database import Connection, Row, Unavailable
from overtone.studio.store.people import read_person
from overtone.studio.store.sessions import extend, own_slot
from overtone.studio.store.shared_state import Context, decode, encode, first_time, lock_person, new_id
from overtone.studio.store.store_records import Refusal, Take

_COLUMNS = "id, person, slot, unit, part, sha256, seconds, settings, checks, verdict, reasons, kept, at"
_UNUSED = "SELECT sha256 FROM orphan WHERE sha256 NOT IN (SELECT sha256 FROM take)"
_ORDER = "ORDER BY person, number"


class Takes:
    """Recordings of speakers. `folder` is STUDY-takes/ beside the study file."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database
        self.folder = context.beside("-takes")

    def add(
        self, label: str, slot: str, client_key: str, wav: bytes, *, part: str = "", seconds: float,
        settings: Mapping[str, Any], checks: Mapping[str, Any], verdict: str, reasons: Sequence[str] = (),
    ) -> Take:  # fmt: skip
        """Write the sound to disk, then its row. The same `client_key` gives the same take. Raises Refusal `slot`.

        The sound counts as one to delete until its row is stored: a process that is killed in between leaves no
        recording that nobody knows of.
        """
        now = self._context.clock()
        sha = hashlib.sha256(wav).hexdigest()
        about = [encode(dict(settings)), encode(dict(checks)), verdict, encode(list(reasons))]

        def work(connection: Connection) -> Take:
            connection.alone()
            lock_person(connection, label)
            if not first_time(connection, label, client_key, now):
                return _one(connection, "person = ? AND client_key = ?", [label, client_key])
            self._context.check_open(connection)
            if not read_person(connection, label).agreed:
                raise Refusal("consent", "Please read the information about the study first.")
            place = own_slot(connection, label, slot)
            ((number,),) = connection.rows("SELECT coalesce(max(number), 0) + 1 FROM take WHERE person = ?", [label])
            if not (self.folder / _file(sha)).is_file():  # another process has just deleted what has no row
                self._write(sha, wav)
            connection.run("DELETE FROM orphan WHERE sha256 = ?", [sha])
            sql = (
                "INSERT INTO take (id, person, slot, unit, part, client_key, sha256, seconds, settings, checks, "
                "verdict, reasons, kept, at, number) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)"
            )
            take = new_id()
            connection.run(sql, [take, label, slot, place.unit, part, client_key, sha, seconds, *about, now, number])
            extend(connection, label, now, self._context.study.reserve_minutes)
            return _one(connection, "id = ?", [take])

        self._database.write(lambda c: _mark_orphan(c, sha), repeatable=True)
        self._write(sha, wav)
        try:
            return self._database.write(work, repeatable=True)
        except Refusal:
            self.sweep()
            raise

    def decide(self, label: str, take: str, kept: bool) -> Take:
        """Keep or discard a take. Keeping one discards the others of its slot and part; no file is deleted."""

        def work(connection: Connection) -> Take:
            lock_person(connection, label)
            chosen = _own(connection, label, take)
            if kept:
                connection.run("UPDATE take SET kept = 0 WHERE slot = ? AND part = ?", [chosen.slot, chosen.part])
            connection.run("UPDATE take SET kept = ? WHERE id = ?", [int(kept), take])
            return _own(connection, label, take)

        return self._database.write(work, repeatable=True)

    def get(self, label: str, take: str) -> Take:
        """Return a take of this person. Raises Refusal `take` for an unknown one and for one of somebody else."""
        return self._database.read(lambda c: _own(c, label, take))

    def delete(self, label: str, take: str) -> None:
        """Delete a take, and its file unless another take has the same content."""

        def work(connection: Connection) -> None:
            lock_person(connection, label)
            _own(connection, label, take)
            delete_rows(connection, "id", take)

        self._database.write(work)
        self.sweep()
        self._database.erase()

    def of_slot(self, slot: str) -> list[Take]:
        """Return the takes of a slot, oldest first."""
        return self._select("slot = ?", [slot])

    def all(self, *, kept: bool | None = True) -> list[Take]:
        """Return all kept takes (None: all), by person and time."""
        return self._select("kept = ?", [int(kept)]) if kept is not None else self._select("1 = 1", [])

    def path(self, take: Take) -> Path:
        """Return the file of a take. Raises StoreError if it is missing or has changed."""
        path = self.folder / take.path
        try:
            same = sha256(path) == take.sha256
        except OSError as error:
            raise StoreError(
                f"{shown(str(path))}: the recording cannot be read ({error.strerror}); restore it"
            ) from None
        if not same:
            raise StoreError(f"{shown(str(path))}: the recording has changed; restore it from a backup")
        return path

    def sweep(self) -> None:
        """Delete the files of deleted takes; also those that a process could not delete before it was killed."""

        def work(connection: Connection) -> None:
            connection.alone()
            for (sha,) in connection.rows(_UNUSED):
                self._unlink(sha)
                connection.run("DELETE FROM orphan WHERE sha256 = ?", [sha])

        if self._database.read(lambda c: c.rows(_UNUSED)):
            self._database.write(work, repeatable=True)

    def _unlink(self, sha: str) -> None:
        path = self.folder / _file(sha)
        try:
            path.unlink(missing_ok=True)
            for part in path.parent.glob(f".{path.name}.*.part"):  # of a process that was killed while it wrote
                part.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"{shown(str(path))} cannot be deleted ({error.strerror}); allow it, then start the server again: it "
                "deletes what is left"
            ) from None

    def _select(self, where: str, values: Sequence[Any]) -> list[Take]:
        sql = f"SELECT {_COLUMNS} FROM take WHERE {where} {_ORDER}"
        return [_take(row) for row in self._database.read(lambda c: c.rows(sql, values))]

    def _write(self, sha: str, wav: bytes) -> None:
        """Write a sound to disk completely, or not at all."""
        path = self.folder / _file(sha)
        part = path.with_name(f".{path.name}.{os.getpid()}.{new_id()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if path.is_file() and sha256(path) == sha:
                return
            with part.open("wb") as file:
                file.write(wav)
            to_disk(part)
            part.replace(path)
            for folder in (path.parent, self.folder, self.folder.parent):
                to_disk(folder)
        except OSError as error:
            raise Unavailable(
                f"{shown(str(self.folder))}: the recording cannot be written ({error.strerror}); free some space, or "
                "correct the permissions"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def delete_rows(connection: Connection, column: str, value: str) -> int:
    """Delete takes, and note the files that no other take needs; `Takes.sweep` deletes these after the commit."""
    shas = [row[0] for row in connection.rows(f"SELECT DISTINCT sha256 FROM take WHERE {column} = ?", [value])]
    count = connection.run(f"DELETE FROM take WHERE {column} = ?", [value])
    for sha in shas:
        if not connection.rows("SELECT 1 FROM take WHERE sha256 = ?", [sha]):
            _mark_orphan(connection, sha)
    return count


def _mark_orphan(connection: Connection, sha: str) -> None:
    connection.run("INSERT INTO orphan (sha256) VALUES (?) ON CONFLICT DO NOTHING", [sha])


def _own(connection: Connection, label: str, take: str) -> Take:
    return _one(connection, "id = ? AND person = ?", [take, label])


def _one(connection: Connection, where: str, values: Sequence[Any]) -> Take:
    rows = connection.rows(f"SELECT {_COLUMNS} FROM take WHERE {where}", values)
    if not rows:
        raise Refusal("take", "This recording is not part of your session. Please reload the page.")
    return _take(rows[0])


def _file(sha: str) -> str:
    return f"{sha[:2]}/{sha}.wav"


def _take(row: Row) -> Take:
    return Take(
        id=row[0], person=row[1], slot=row[2], unit=row[3], part=row[4], sha256=row[5], path=_file(row[5]),
        seconds=row[6], settings=decode(row[7]), checks=decode(row[8]), verdict=row[9], reasons=tuple(decode(row[10])),
        kept=None if row[11] is None else bool(row[11]), at=row[12],
    )  # fmt: skip
