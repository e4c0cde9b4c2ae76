"""Answers: append-only, one row per answered field. The newest row counts. A repeated request changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from overtone.studio.database import Connection, Row
from overtone.studio.fields import Value
from overtone.studio.store.people import read_person
from overtone.studio.store.sessions import extend, has_same_script, own_slot
from overtone.studio.store.shared_state import Context, decode, encode, first_time, lock_person, marks
from overtone.studio.store.store_records import Answered, Given, Kind, Person, Refusal, Slot

MOST_MS = 2_000_000_000  # a page that stood open for weeks must not break an INTEGER column
_NO_VALUE: Mapping[str, Value | None] = {"": None}  # a row that has only plays and ms
_GIVEN = "a.number, a.slot, a.person, a.field, a.value, a.plays, a.ms, a.at, a.consent_sha"
_JOINED = (
    f"SELECT {_GIVEN}, s.session, s.seq, s.kind, s.unit, s.swap, s.target, s.state "
    "FROM answer a JOIN slot s ON s.id = a.slot"
)


class Answers:
    """Answers to the questions of screens."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database

    def add(
        self, label: str, slot: str, client_key: str, values: Mapping[str, Value], *, plays: Mapping[str, int],
        ms: int, stage: int = 0, done: bool = False,
    ) -> bool:  # fmt: skip
        """Store answers to fields and, with `done`, finish the screen. Extends all open places of the person.

        The caller has checked the values; there may be none: then `plays` and `ms` are stored. Returns False if this
        `client_key` was stored before: then nothing changes.
        An answer that comes after its place was released is stored all the same. Raises Refusal: `slot` (not this
        person's), `skipped`, `closed`, `withdrawn`.
        """
        now = self._context.clock()

        def work(connection: Connection) -> bool:
            lock_person(connection, label)
            if not first_time(connection, label, client_key, now):
                return False
            person, place = self._checked(connection, label, slot)
            if place.state == "skipped":
                raise Refusal("skipped", "This screen was skipped.")
            about = [encode(dict(plays)), max(0, min(int(ms), MOST_MS)), person.consent_sha, client_key, now]
            connection.many(
                "INSERT INTO answer (slot, person, field, value, plays, ms, consent_sha, client_key, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(slot, label, field, encode(value), *about) for field, value in (values or _NO_VALUE).items()],
            )
            self._advance(connection, place, stage, done, now)
            extend(connection, label, now, self._context.study.reserve_minutes)
            return True

        return self._database.write(work, repeatable=True)

    def skip(self, label: str, slot: str, client_key: str, reason: str) -> bool:
        """Skip a screen without loss of pay. Its place goes to somebody else. Answers given before stay stored."""
        now = self._context.clock()

        def work(connection: Connection) -> bool:
            lock_person(connection, label)
            if not first_time(connection, label, client_key, now):
                return False
            _, place = self._checked(connection, label, slot)
            if place.state in ("open", "released"):
                state = "released" if has_same_script(connection, place) else "skipped"
                sql = "UPDATE slot SET state = ?, reason = ?, finished = ? WHERE id = ?"
                connection.run(sql, [state, reason[:200], now, slot])
            extend(connection, label, now, self._context.study.reserve_minutes)
            return True

        return self._database.write(work, repeatable=True)

    def of_slot(self, slot: str) -> Answered | None:
        """Return the newest answers of a screen, or None if nothing was answered yet."""
        rows = self._database.read(lambda c: c.rows(f"{_JOINED} WHERE a.slot = ? ORDER BY a.number", [slot]))
        return _newest(rows) if rows else None

    def all(self, kinds: Sequence[Kind] = ("real",), *, finished: bool = True) -> list[Answered]:
        """Return the newest answers of every screen, by person, session and place. With `finished`, only of finished
        screens."""
        sql = f"{_JOINED} WHERE s.kind IN ({marks(kinds)}) ORDER BY a.person, s.session, s.seq, a.slot, a.number"
        rows = self._database.read(lambda c: c.rows(sql, list(kinds)))
        screens = (_newest(list(group)) for _, group in groupby(rows, key=lambda row: row[1]))
        return [screen for screen in screens if screen.state == "done" or not finished]

    def history(self) -> list[Given]:
        """Return every stored answer, including those that were changed later."""
        rows = self._database.read(
            lambda c: c.rows(f"SELECT {_GIVEN} FROM answer a WHERE a.field <> '' ORDER BY a.number")
        )
        return [
            Given(
                number=row[0], slot=row[1], person=row[2], field=row[3], value=decode(row[4]), plays=decode(row[5]),
                ms=row[6], at=row[7], consent_sha=row[8],
            )
            for row in rows
        ]  # fmt: skip

    def _checked(self, connection: Connection, label: str, slot: str) -> tuple[Person, Slot]:
        """Return the person and place if this person may answer now."""
        self._context.check_open(connection)
        person = read_person(connection, label)
        if person.ended:
            raise Refusal(person.ended, "Your session has ended.")
        if not person.agreed:
            raise Refusal("consent", "Please read the information about the study first.")
        return person, own_slot(connection, label, slot)

    @staticmethod
    def _advance(connection: Connection, place: Slot, stage: int, done: bool, now: float) -> None:
        stage = max(place.stage, min(stage, 1))
        state, finished = ("done", now) if done or place.state == "done" else ("open", None)
        if place.state == "released" and has_same_script(connection, place):
            state = "released"  # the person got the same script again: the answers stay stored, but do not count twice
        sql = "UPDATE slot SET stage = ?, state = ?, finished = coalesce(finished, ?) WHERE id = ?"
        connection.run(sql, [stage, state, finished, place.id])


def _newest(rows: Iterable[Row]) -> Answered:
    """Return one screen from its answers, oldest first."""
    values: dict[str, Value] = {}
    plays: dict[str, int] = {}
    for row in rows:
        if row[3]:
            values[row[3]] = decode(row[4])
        for name, count in decode(row[5]).items():
            plays[name] = max(count, plays.get(name, 0))
    return Answered(
        slot=row[1], person=row[2], values=values, plays=plays, ms=row[6], at=row[7], consent_sha=row[8],
        session=row[9], seq=row[10], kind=row[11], unit=row[12], swap=bool(row[13]), target=row[14], state=row[15],
    )  # fmt: skip
