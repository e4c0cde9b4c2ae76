"""The state that all parts of the store share: the database, the study file, the clock, and the frozen units."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overtone.studio.database import Connection, Database
from overtone.studio.store.store_records import FrozenUnit, Refusal
from overtone.studio.study import Study

MOST_KEY = 100  # characters of a client key
_KEY = re.compile(rf"[A-Za-z0-9._:\-]{{1,{MOST_KEY}}}")
_LETTERS, _SIGNS = "abcdefghjkmnpqrstuvwxyz", "abcdefghjkmnpqrstuvwxyz23456789"


class Context:
    """Shared by all parts of one store. The frozen units are read once, because they never change."""

    def __init__(self, database: Database, study: Study, clock: Callable[[], float]) -> None:
        self.database = database
        self.study = study
        self.clock = clock
        self._units: dict[str, FrozenUnit] = {}
        self._sides = 1
        self._question_groups = 1
        self._lock = threading.Lock()

    def beside(self, end: str) -> Path:
        """Return the path of a file beside the study file, named after the study file with the suffix `end`."""
        return self.study.path.with_name(self.study.path.stem + end)

    def units(self, connection: Connection) -> dict[str, FrozenUnit]:
        """Return the frozen units by id, in their order; empty before the first serve."""
        with self._lock:
            if not self._units and meta(connection, "frozen"):
                rows = connection.rows("SELECT id, grp, system, content FROM unit ORDER BY place")
                self._units = {row[0]: FrozenUnit(row[0], row[1], row[2], row[3].encode()) for row in rows}
                self._sides = int(meta(connection, "sides"))
                self._question_groups = int(meta(connection, "question_groups"))
            return self._units

    def sides(self, connection: Connection) -> int:
        """Return the number of replies on a screen."""
        self.units(connection)
        return self._sides

    def question_groups(self, connection: Connection) -> int:
        """Return the number of groups of people that get different questions. A person's group is the person's
        number modulo this."""
        self.units(connection)
        return self._question_groups

    def check_open(self, connection: Connection) -> None:
        """Raise Refusal `closed` if the study has been closed."""
        if meta(connection, "state") == "closed":
            raise Refusal("closed", "The study is closed. Thank you for your interest.")


def meta(connection: Connection, name: str) -> str:
    """Return a stored value of the study, or ""."""
    rows = connection.rows("SELECT value FROM meta WHERE name = ?", [name])
    return str(rows[0][0]) if rows else ""


def set_meta(connection: Connection, name: str, value: str) -> None:
    """Store a value of the study."""
    connection.run("DELETE FROM meta WHERE name = ?", [name])
    connection.run("INSERT INTO meta (name, value) VALUES (?, ?)", [name, value])


def note_event(connection: Connection, now: float, kind: str, person: str = "", **detail: Any) -> None:
    """Append an event to the log."""
    values = [now, kind, person, encode(detail)]
    connection.run("INSERT INTO event (at, kind, person, detail) VALUES (?, ?, ?, ?)", values)


def first_time(connection: Connection, label: str, client_key: str, now: float) -> bool:
    """Record that a request is carried out. Return False if this person's request with this key was carried out
    before."""
    if not _KEY.fullmatch(client_key):
        raise Refusal("client_key", f"client_key must be 1 to {MOST_KEY} letters, digits and . _ : -")
    done = "INSERT INTO request (person, client_key, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    return connection.run(done, [label, client_key, now]) > 0


def lock_person(connection: Connection, label: str) -> None:
    """Make other changes of this person wait for this one. Raises Refusal `unknown` or `withdrawn`."""
    sql = f"SELECT ended FROM person WHERE label = ?{connection.for_update}"
    rows = connection.rows(sql, [label])
    if not rows:
        raise Refusal("unknown", "This link is not valid.")
    if rows[0][0] == "withdrawn":
        raise Refusal("withdrawn", "You have withdrawn from the study; your answers are deleted.")


def encode(value: Any) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


def decode(text: str) -> Any:
    """Return the value of JSON text."""
    return msgspec.json.decode(text)


def new_label() -> str:
    """Return a random pseudonym that no spreadsheet takes for a number."""
    return secrets.choice(_LETTERS) + "".join(secrets.choice(_SIGNS) for _ in range(7))


def new_id() -> str:
    """Return a random id of a place or take."""
    return secrets.token_hex(8)


def marks(values: Sequence[Any]) -> str:
    """Return as many placeholders as there are values, for SQL's IN."""
    return ", ".join("?" * len(values))
