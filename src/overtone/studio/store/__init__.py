"""The store of a study: people, places in sessions, answers, takes, withdrawals and the log; see `Store`.

All methods are synchronous, thread-safe and durable when they return: the server calls them with `asyncio.to_thread`.
Errors: `Refusal` for a request that must not be carried out (its `code` is for the page), `Unavailable` if the
database cannot be reached or written at the moment (the same call may be repeated), and StoreError otherwise.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from overtone.errors import StoreError, UsageError
from overtone.paths import shown
from overtone.studio.database import Connection, MissingDatabase, open_database
from overtone.studio.store.given_answers import Answers
from overtone.studio.store.imports import Imports
from overtone.studio.store.people import People
from overtone.studio.store.sessions import Sessions
from overtone.studio.store.shared_state import Context, decode, encode, meta, note_event, set_meta
from overtone.studio.store.store_records import FrozenUnit, Refusal, Status, StudyState
from overtone.studio.store.stored_takes import Takes
from overtone.studio.store.study_log import Log
from overtone.studio.store.totals import status
from overtone.studio.store.withdrawals import Withdrawals
from overtone.studio.study import Study

__all__ = ["Refusal", "Store"]

# what may change after the first serve; everything else in the study file decides what is asked
EDITABLE = frozenset(
    ("title", "people", "raters", "session", "sessions", "votes", "overlap", "reserve_minutes", "adaptive", "languages",
     "remark", "checks", "qualification", "care", "recruitment", "store", "path")
)  # fmt: skip


class AnyUnit(Protocol):
    """The attributes that units of all designs have; the rest is stored as JSON."""

    @property
    def id(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def system(self) -> str: ...


class Store:
    """An open study. Its parts: `people`, `sessions`, `answers`, `takes`, `withdrawals`, `log`, `imports`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database
        self.study = context.study
        self.people = People(context)
        self.sessions = Sessions(context)
        self.answers = Answers(context)
        self.takes = Takes(context)
        self.withdrawals = Withdrawals(context, self.takes)
        self.log = Log(context)
        self.imports = Imports(context)

    @classmethod
    def open(cls, study: Study, url: str = "", *, create: bool = True, clock: Callable[[], float] = time.time) -> Store:
        """Open the database of a study, which `url` (--db) names, or else the study file.

        The database is created if it is missing. If `create` is false, a missing database is refused, with the command
        that makes one. Withdrawals that a restored backup does not know are repeated. Raises StoreError for a database
        of another study, of a newer version or of another program, and UsageError for a URL that contains a password.
        """
        folder = study.path.parent
        try:
            database = open_database(url or study.store.url, study.id, folder=folder, create=create)
        except MissingDatabase as error:
            path = study.path.relative_to(Path.cwd()) if study.path.is_relative_to(Path.cwd()) else study.path
            raise UsageError(f"{error}; 'overtone studio serve {shown(str(path))}' makes it") from None
        store = cls(Context(database, study, clock))
        try:
            store.withdrawals.replay()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def where(self) -> str:
        """The place of the database, as messages name it."""
        return self._database.where

    # ── the study ───────────────────────────────────────────────────────────────────────────────────────────────────

    def freeze(self, units: Sequence[AnyUnit], *, sides: int, question_groups: int = 1) -> None:
        """Store the units at the first start of the server, with the settings of the study file that decide what is
        asked.

        `sides` is the number of replies on a screen; with two, their order is balanced. Each of the `question_groups`
        gives every unit its votes. Later calls change nothing. They raise StoreError, with the difference, if the study
        file has changed what is asked.
        """
        now = self._context.clock()

        def work(connection: Connection) -> None:
            connection.alone()
            if meta(connection, "frozen"):
                self._check_same(connection)
                return
            connection.many(
                "INSERT INTO unit (id, place, grp, system, content) VALUES (?, ?, ?, ?, ?)",
                [(unit.id, at, unit.group, unit.system, encode(unit)) for at, unit in enumerate(units)],
            )
            values = {
                "sides": str(sides), "question_groups": str(question_groups), "frozen": self.study.sha256,
                "settings": encode(_settings(self.study)), "state": "open",
            }  # fmt: skip
            for name, value in values.items():
                set_meta(connection, name, value)
            note_event(connection, now, "frozen", units=len(units), sha256=self.study.sha256)

        self._database.write(work, repeatable=True)

    def check(self) -> None:
        """Raise StoreError, with the difference, if the study file has changed what is asked since the first start."""
        self._database.read(self._check_same)

    def _check_same(self, connection: Connection) -> None:
        frozen = meta(connection, "frozen")
        if not frozen or frozen == self.study.sha256:
            return
        before: dict[str, Any] = decode(meta(connection, "settings"))
        now = decode(encode(_settings(self.study)))
        changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        raise StoreError(
            f"{shown(str(self.study.path))}: the study has been served, and {', '.join(changed) or 'the file'} changed "
            f"since then ({_difference(before, now, changed)}); undo the change, or make a new study"
        )

    def units(self) -> dict[str, FrozenUnit]:
        """Return the frozen units by id; empty before the first serve."""
        return self._database.read(self._context.units)

    def state(self) -> StudyState:
        """Return whether the study is new (never served), open or closed."""
        found = self._database.read(lambda c: meta(c, "state"))
        return "closed" if found == "closed" else "open" if found == "open" else "new"

    def status(self) -> Status:
        """Return the counts of the study."""
        return self._database.read(lambda c: status(self._context, c))

    def secret(self, name: str) -> bytes:
        """Return 32 random bytes of the study, e.g. the key of sound ids. They are made at the first call."""
        key = f"secret:{name}"

        def work(connection: Connection) -> str:
            connection.alone()
            if not meta(connection, key):
                set_meta(connection, key, secrets.token_hex(32))
            return meta(connection, key)

        return bytes.fromhex(self._database.write(work, repeatable=True))

    def address(self) -> str:
        """Return the address at which the study was last served, with a slash at the end; "" before the first start."""
        return self._database.read(lambda c: meta(c, "address"))

    def set_address(self, address: str) -> None:
        """Store the address at which people reach the server, for links that are made later."""

        def work(connection: Connection) -> None:
            connection.alone()
            set_meta(connection, "address", address)

        self._database.write(work, repeatable=True)

    def close_study(self) -> Status:
        """End the study: release open places, refuse new answers, erase payment ids. Withdrawal stays possible."""
        now = self._context.clock()

        def work(connection: Connection) -> None:
            connection.alone()
            if meta(connection, "state") == "closed":
                return
            set_meta(connection, "state", "closed")
            connection.run("UPDATE slot SET state = 'released' WHERE state = 'open'")
            erased = connection.run("DELETE FROM payment")
            note_event(connection, now, "closed", payments_erased=erased)

        self._database.write(work, repeatable=True)
        self._database.erase()
        return self.status()

    # ── the database ────────────────────────────────────────────────────────────────────────────────────────────────

    def backup(self, path: Path) -> None:
        """Write a consistent copy of the database to a new file while the study runs.

        SQLite: a database file; PostgreSQL: a dump by pg_dump. `how_to_restore` returns the commands that restore it
        while the server is stopped. Copy the folder STUDY-takes too. Keep STUDY-withdrawn.txt: at the next start, it
        deletes again what people have withdrawn since the backup.
        """
        self._database.backup(path)
        self.log.add("backup", file=path.name)

    def how_to_restore(self, path: Path) -> str:
        """Return the shell commands that restore a backup."""
        return self._database.how_to_restore(path)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _settings(study: Study) -> dict[str, Any]:
    """Return the settings that must not change after the first serve. Runs may be moved."""
    values: dict[str, Any] = msgspec.to_builtins(study, enc_hook=str)
    values["source"] = [{**source, "path": ""} for source in values["source"]]
    return {name: value for name, value in values.items() if name not in EDITABLE}


def _difference(before: dict[str, Any], now: dict[str, Any], changed: Sequence[str]) -> str:
    parts = [
        f"{name}: {shown(encode(before.get(name)))[:60]} → {shown(encode(now.get(name)))[:60]}" for name in changed
    ]
    return "; ".join(parts[:3]) or "no setting that is shown here"
