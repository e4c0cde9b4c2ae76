"""Answers that were given elsewhere, e.g. in Label Studio: stored as finished places of a separate person."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Struct

from overtone.studio.database import Connection
from overtone.studio.fields import Value
from overtone.studio.store.shared_state import Context, encode, lock_person, note_event


class Elsewhere(Struct, frozen=True):
    """The answers to one unit. `swap`: its second reply was the first."""

    unit: str
    values: Mapping[str, Value]
    swap: bool = False


class Imports:
    """Answers from elsewhere."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database

    def add(self, label: str, answers: Sequence[Elsewhere]) -> int:
        """Store a person's answers in one transaction, and return how many units have new ones.

        The same answers again change nothing; other answers to the same unit replace the earlier ones. Raises Refusal
        `unknown`, `withdrawn` or `closed`.
        """
        now = self._context.clock()

        def work(connection: Connection) -> int:
            self._context.check_open(connection)
            lock_person(connection, label)
            new = sum(self._unit(connection, label, at, one, now) for at, one in enumerate(answers, 1))
            if new:
                note_event(connection, now, "imported", label, units=new)
            return new

        return self._database.write(work, repeatable=True)

    def _unit(self, connection: Connection, label: str, seq: int, one: Elsewhere, now: float) -> bool:
        slot = hashlib.sha256(encode([self._context.study.id, label, one.unit, one.swap]).encode()).hexdigest()[:16]
        if not connection.rows("SELECT id FROM slot WHERE id = ?", [slot]):
            # elsewhere a person may meet a script twice, so the unit takes the place of its script
            columns = "id, person, session, seq, kind, unit, grp, swap, target, state, reserved_until, opened, finished"
            connection.run(
                f"INSERT INTO slot ({columns}) VALUES (?, ?, 1, ?, 'real', ?, ?, ?, 0, 'done', ?, ?, ?)",
                [slot, label, seq, one.unit, f"imported/{slot}", int(one.swap), now, now, now],
            )
        added = 0
        for field, value in one.values.items():
            key = hashlib.sha256(encode([slot, field, value]).encode()).hexdigest()[:32]
            added += connection.run(
                "INSERT INTO answer (slot, person, field, value, plays, ms, consent_sha, client_key, at) "
                "VALUES (?, ?, ?, ?, '{}', 0, '', ?, ?) ON CONFLICT DO NOTHING",
                [slot, label, field, encode(value), key, now],
            )
        return added > 0
