"""The study's log: events, exports and flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overtone.studio.database import Connection
from overtone.studio.store.shared_state import Context, decode, note_event
from overtone.studio.store.store_records import Event, Flag


class Log:
    """Events, exports and flags."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database

    def add(self, kind: str, person: str = "", **detail: Any) -> None:
        """Append an event."""
        self._database.write(lambda c: note_event(c, self._context.clock(), kind, person, **detail))

    def events(self, kind: str = "") -> list[Event]:
        """Return all events, or those of one kind, oldest first."""
        sql = "SELECT number, at, kind, person, detail FROM event WHERE ? IN ('', kind) ORDER BY number"
        rows = self._database.read(lambda c: c.rows(sql, [kind]))
        return [Event(number, at, what, person, decode(detail)) for number, at, what, person, detail in rows]

    def exported(self, kind: str, place: str) -> None:
        """Record that answers were exported to a file or written into a run. A withdrawal lists these places."""
        self.add("exported", what=kind, place=place)

    def flags(self) -> list[Flag]:
        """Return the stored flags."""
        names = ("person", "session", "slot", "rule", "version", "detail")
        sql = f"SELECT {', '.join(names)} FROM flag ORDER BY person, session, slot, rule"
        return [Flag(**dict(zip(names, row, strict=True))) for row in self._database.read(lambda c: c.rows(sql))]

    def set_flags(self, flags: Sequence[Flag]) -> None:
        """Replace the stored flags, e.g. with those of `session_quality.assess`."""
        rows = [(f.person, f.session, f.slot, f.rule, f.version, f.detail) for f in flags]

        def work(connection: Connection) -> None:
            connection.alone()
            connection.run("DELETE FROM flag")
            connection.many(
                "INSERT INTO flag (person, session, slot, rule, version, detail) VALUES (?, ?, ?, ?, ?, ?)", rows
            )

        self._database.write(work, repeatable=True)


def exports(connection: Connection) -> tuple[str, ...]:
    """Return the places of all exports, each once."""
    rows = connection.rows("SELECT detail FROM event WHERE kind = 'exported' ORDER BY number")
    return tuple(dict.fromkeys(str(decode(row[0])["place"]) for row in rows))
