"""People of a study: invitations, public joins, consent, and the covariates of their set-up."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from overtone.errors import UsageError
from overtone.studio.database import Connection, Row
from overtone.studio.store.shared_state import Context, decode, encode, first_time, lock_person, new_label, note_event
from overtone.studio.store.store_records import Invitation, Person, Refusal, Role, Source

TOKEN_BYTES = 16
SHORTEST_TOKEN = 20  # characters of a token that the owner chooses
ATTEMPTS = 2  # at a headphone test that is required
_COLUMNS = (
    "label, role, source, created, number, consent_sha, consented, agreed, parts, device, level, headphones, "
    "qualification, rested, ended, reason"
)


class People:
    """People and their tokens."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database

    # ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def invite(self, count: int, role: Role = "rater") -> list[Invitation]:
        """Add people and return a token for each. The tokens cannot be shown again."""
        now = self._context.clock()

        def work(connection: Connection) -> list[Invitation]:
            self._context.check_open(connection)
            connection.alone()
            made = [_add(connection, role, "invite", now) for _ in range(count)]
            note_event(connection, now, "invited", count=count, role=role)
            return made

        return self._database.write(work)

    def own(self, token: str = "") -> Invitation:
        """Return a token for the owner: the given one, or a new one. Earlier tokens of the owner become invalid."""
        if token and len(token) < SHORTEST_TOKEN:
            raise UsageError(f"the owner's token needs at least {SHORTEST_TOKEN} characters; leave it out to get one")
        now = self._context.clock()

        def work(connection: Connection) -> Invitation:
            connection.alone()
            rows = connection.rows("SELECT label FROM person WHERE role = 'owner'")
            if not rows:
                return _add(connection, "owner", "invite", now, token)
            label = str(rows[0][0])
            connection.run("DELETE FROM token WHERE person = ?", [label])
            return _add_token(connection, label, now, token)

        return self._database.write(work, repeatable=bool(token))

    def join(self, source: Source, external: str = "", *, session: str = "", submission: str = "") -> Invitation:
        """Add a person who comes through the public link, and return a new token.

        The same `external` id (Prolific's PROLIFIC_PID, MTurk's workerId) of the same source gives the same person;
        earlier tokens stay valid. `session` and `submission` (SESSION_ID, assignmentId) are kept for payment until the
        study is closed. Raises Refusal `closed` after closing, and `revoked` for a person whose link was revoked.
        """
        now = self._context.clock()

        def work(connection: Connection) -> Invitation:
            self._context.check_open(connection)
            connection.alone()
            same = "SELECT person FROM payment WHERE source = ? AND external = ?"
            rows = connection.rows(same, [source, external]) if external else []
            if rows:
                label = str(rows[0][0])
                if connection.rows("SELECT 1 FROM token WHERE person = ? AND revoked = 1", [label]):
                    raise Refusal("revoked", "Your link to this study was ended. Please write to the organiser.")
                return _add_token(connection, label, now)
            made = _add(connection, "rater", source, now)
            if external:
                values = [made.label, source, external, session, submission]
                connection.run("INSERT INTO payment VALUES (?, ?, ?, ?, ?)", values)
            return made

        return self._database.write(work)

    def find(self, token: str) -> Person | None:
        """Return the person with this token, or None if it is unknown or revoked."""
        sql = f"SELECT {_COLUMNS} FROM person WHERE label IN (SELECT person FROM token WHERE hash = ? AND revoked = 0)"
        rows = self._database.read(lambda c: c.rows(sql, [_hash(token)]))
        return _person(rows[0]) if rows else None

    def revoke(self, label: str) -> None:
        """Make all tokens of a person invalid. Their answers stay."""
        self.get(label)
        self._database.write(lambda c: c.run("UPDATE token SET revoked = 1 WHERE person = ?", [label]), repeatable=True)

    # ── people ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, label: str) -> Person:
        """Return a person. Raises Refusal `unknown`."""
        return self._database.read(lambda c: read_person(c, label))

    def all(self, role: Role | None = None) -> list[Person]:
        """Return all people in the order of their arrival."""
        rows = self._database.read(lambda c: c.rows(f"SELECT {_COLUMNS} FROM person ORDER BY number"))
        return [person for person in map(_person, rows) if role in (None, person.role)]

    def payments(self) -> list[dict[str, str]]:
        """Return the data needed to pay people: label, source, external, session, submission. Empty after closing."""
        names = ("label", "source", "external", "session", "submission")
        sql = "SELECT person, source, external, session, submission FROM payment ORDER BY person"
        return [dict(zip(names, row, strict=True)) for row in self._database.read(lambda c: c.rows(sql))]

    # ── consent and set-up ──────────────────────────────────────────────────────────────────────────────────────────

    def consent(
        self, label: str, consent_sha: str, agree: bool, parts: Mapping[str, bool], *, client_key: str = ""
    ) -> Person:
        """Store agreement or refusal. With a `client_key`, as everywhere, repeating the request changes nothing.

        Raises Refusal `consent` if `consent_sha` is not the study's current version.
        """
        if consent_sha != self._context.study.consent_sha:
            raise Refusal("consent", "The text has changed since you opened the page. Please read it again.")
        values = {"consent_sha": consent_sha, "agreed": int(agree), "parts": encode(dict(parts))}
        return self._change(label, lambda person: {**values, "consented": self._context.clock()}, client_key)

    def set_up(self, label: str, device: Mapping[str, Any], level: float | None, *, client_key: str = "") -> Person:
        """Store the output device and level."""
        values = {"device": encode({"set_up": True, **device}), "level": level}
        return self._change(label, lambda person: values, client_key)

    def add_headphones(self, label: str, result: Mapping[str, Any], *, client_key: str = "") -> Person:
        """Store one attempt at the headphone test: `test`, `correct`, `passed`, device …

        If the study requires headphones, a person who fails twice is screened out.
        """

        def changes(person: Person) -> dict[str, Any]:
            attempts = [*person.headphones, {**result, "at": self._context.clock()}]
            changed: dict[str, Any] = {"headphones": encode(attempts)}
            if self._context.study.checks.require_headphones and failed_for_good(attempts):
                changed |= {"ended": "screened_out", "reason": "headphones"}
            return changed

        return self._change(label, changes, client_key)

    def qualify(self, label: str, answers: Mapping[str, Any], passed: bool, *, client_key: str = "") -> Person:
        """Store the qualification answers. A person who does not pass is screened out."""
        values: dict[str, Any] = {"qualification": encode({"answers": dict(answers), "passed": passed})}
        if not passed:
            values |= {"ended": "screened_out", "reason": "qualification"}
        return self._change(label, lambda person: values, client_key)

    def screen_out(self, label: str, reason: str) -> Person:
        """End a person's session because a requirement of the study is not met, and release the places."""
        return self._change(label, lambda person: {"ended": "screened_out", "reason": reason})

    def _change(self, label: str, changes: Callable[[Person], dict[str, Any]], client_key: str = "") -> Person:
        """Change columns of a person, from what they are now; not again for a request that was carried out before."""

        def work(connection: Connection) -> Person:
            lock_person(connection, label)
            if client_key and not first_time(connection, label, client_key, self._context.clock()):
                return read_person(connection, label)
            values = changes(read_person(connection, label))
            columns = ", ".join(f"{name} = ?" for name in values)
            connection.run(f"UPDATE person SET {columns} WHERE label = ?", [*values.values(), label])
            if values.get("ended"):
                connection.run("UPDATE slot SET state = 'released' WHERE person = ? AND state = 'open'", [label])
            return read_person(connection, label)

        return self._database.write(work, repeatable=True)


def failed_for_good(attempts: list[dict[str, Any]]) -> bool:
    """Return whether a person has used all allowed attempts at the headphone test without passing."""
    return len(attempts) >= ATTEMPTS and not any(one.get("passed") for one in attempts)


def read_person(connection: Connection, label: str) -> Person:
    """Return a person. Raises Refusal `unknown`."""
    rows = connection.rows(f"SELECT {_COLUMNS} FROM person WHERE label = ?", [label])
    if not rows:
        raise Refusal("unknown", "There is no such person in this study.")
    return _person(rows[0])


def _person(row: Row) -> Person:
    return Person(
        label=row[0], role=row[1], source=row[2], created=row[3], number=row[4], consent_sha=row[5], consented=row[6],
        agreed=None if row[7] is None else bool(row[7]), parts=decode(row[8]), device=decode(row[9]), level=row[10],
        headphones=tuple(decode(row[11])), qualification=decode(row[12]), rested=row[13], ended=row[14],
        reason=row[15],
    )  # fmt: skip


def _add(connection: Connection, role: Role, source: Source, now: float, token: str = "") -> Invitation:
    ((number,),) = connection.rows("SELECT coalesce(max(number), -1) + 1 FROM person")
    label = new_label()
    sql = "INSERT INTO person (label, number, role, source, created) VALUES (?, ?, ?, ?, ?)"
    connection.run(sql, [label, number, role, source, now])
    return _add_token(connection, label, now, token)


def _add_token(connection: Connection, label: str, now: float, token: str = "") -> Invitation:
    token = token or secrets.token_urlsafe(TOKEN_BYTES)
    connection.run("INSERT INTO token (hash, person, created, revoked) VALUES (?, ?, ?, 0)", [_hash(token), label, now])
    return Invitation(label, token)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()  # a header can hold any bytes
