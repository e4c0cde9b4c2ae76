"""Withdrawals: a person's data is deleted. A count remains, and a list by which restored backups are cleaned."""

from __future__ import annotations

import os
import re

from overtone.errors import StoreError
from overtone.paths import shown, to_disk
from overtone.studio.database import Connection
from overtone.studio.store.people import read_person
from overtone.studio.store.shared_state import Context, decode, note_event
from overtone.studio.store.store_records import Withdrawal
from overtone.studio.store.stored_takes import Takes, delete_rows
from overtone.studio.store.study_log import exports

_LABEL = re.compile(r"[a-z][a-z0-9]{7}")
_HEAD = """\
# Pseudonyms of people who withdrew from this study. Keep this file with the study: when a backup is restored, their
# data are deleted again. One pseudonym a line.
"""
_EMPTIED = (
    "consent_sha = '', consented = NULL, agreed = NULL, parts = '{}', device = '{}', level = NULL, headphones = '[]', "
    "qualification = '{}', rested = 0, reason = '', ended = 'withdrawn'"
)


class Withdrawals:
    """Withdrawn people. `path` is the list STUDY-withdrawn.txt beside the study file."""

    def __init__(self, context: Context, takes: Takes) -> None:
        self._context = context
        self._database = context.database
        self._takes = takes
        self.path = context.beside("-withdrawn.txt")

    def withdraw(self, label: str) -> Withdrawal:
        """Delete a person's answers, takes, files, consent and set-up. Repeating it is harmless.

        The ids for payment are kept until the study is closed, so that the person can be paid and cannot join again.
        """
        done = self._database.write(lambda c: self._delete(c, label), repeatable=True)
        self._note([label])
        self._takes.sweep()
        self._database.erase()
        return done

    def all(self) -> list[Withdrawal]:
        """Return all withdrawals by label. `labels sync` and exports remove these people."""
        return self._database.read(_all)

    def left_in(self) -> dict[str, list[str]]:
        """Return the files and runs that still contain withdrawn people, and whom: the last export was made before."""
        rows = self._database.read(
            lambda c: c.rows(
                "SELECT kind, person, detail FROM event WHERE kind IN ('exported', 'withdrawn') ORDER BY number"
            )
        )
        found: dict[str, list[str]] = {}
        for kind, person, detail in rows:
            if kind == "exported":
                found[str(decode(detail)["place"])] = []
            else:
                for people in found.values():
                    people.append(person)
        return {place: people for place, people in found.items() if people}

    def replay(self) -> int:
        """Delete again the data that a restored backup brought back. Returns the number of people."""
        listed = self._listed()
        states: dict[str, str] = dict(self._database.read(lambda c: c.rows("SELECT label, ended FROM person")))
        back = [label for label in listed if states.get(label, "withdrawn") != "withdrawn"]
        for label in back:
            self.withdraw(label)
        self._note([label for label, ended in sorted(states.items()) if ended == "withdrawn" and label not in listed])
        self._takes.sweep()
        return len(back)

    def _delete(self, connection: Connection, label: str) -> Withdrawal:
        """Delete in the database; the files of takes are noted for deletion."""
        rows = connection.rows(f"SELECT ended FROM person WHERE label = ?{connection.for_update}", [label])
        read_person(connection, label)
        if rows[0][0] == "withdrawn":
            return next(one for one in _all(connection) if one.label == label)
        counted = "SELECT count(*) FROM slot WHERE person = ? AND state = 'done'"
        ((answers,),) = connection.rows(counted, [label])
        takes = delete_rows(connection, "person", label)
        for table in ("answer", "slot", "request", "flag", "event"):
            connection.run(f"DELETE FROM {table} WHERE person = ?", [label])
        connection.run(f"UPDATE person SET {_EMPTIED} WHERE label = ?", [label])
        now = self._context.clock()
        connection.run(
            "INSERT INTO withdrawn (person, at, answers, takes) VALUES (?, ?, ?, ?)", [label, now, answers, takes]
        )
        note_event(connection, now, "withdrawn", label, answers=answers, takes=takes)
        return Withdrawal(label, answers, takes, exports(connection))

    def _listed(self) -> list[str]:
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{shown(str(self.path))}: cannot be read ({error}); restore the list") from None
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if wrong := [line for line in lines if not _LABEL.fullmatch(line)]:
            raise StoreError(f"{shown(str(self.path))}: {shown(wrong[0])[:40]!r} is not a pseudonym; correct the line")
        return lines

    def _note(self, labels: list[str]) -> None:
        """Append people to the list, on disk when this returns."""
        new = [label for label in labels if label not in self._listed()]
        if not new:
            return
        try:
            first = not self.path.exists()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write((_HEAD if first else "") + "".join(f"{label}\n" for label in new))
                file.flush()
                os.fsync(file.fileno())
            to_disk(self.path.parent)
        except OSError as error:
            raise StoreError(
                f"{shown(str(self.path))}: cannot be written ({error.strerror}). The data are deleted, but the list "
                "for restored backups is not complete; correct this and start the server again: it completes the list"
            ) from None


def _all(connection: Connection) -> list[Withdrawal]:
    made = exports(connection)
    rows = connection.rows("SELECT person, answers, takes FROM withdrawn ORDER BY person")
    return [Withdrawal(label, answers, takes, made) for label, answers, takes in rows]
