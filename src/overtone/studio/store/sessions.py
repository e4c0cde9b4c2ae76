"""Places in sessions. They are reserved when a person enters, extended by answers, and released after a time without
any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from overtone.studio import assignment
from overtone.studio.assignment import Held, Needs, Place
from overtone.studio.database import Connection, Row
from overtone.studio.store.people import failed_for_good, read_person
from overtone.studio.store.shared_state import Context, lock_person, meta, new_id, note_event
from overtone.studio.store.store_records import Coverage, Person, Progress, Refusal, Slot, Step
from overtone.studio.study import Study

SILENT = ("record", "review")  # designs without the set-up for listening
_UNREPLACED = "state = 'released' AND reason = ''"
_COLUMNS = "id, person, session, seq, kind, unit, swap, target, state, reserved_until, stage, grp"


class Sessions:
    """The places of people. `duels`, if set, returns the pairs of systems for which further answers are most
    informative; see `adaptive`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._database = context.database
        self.duels: Callable[[int], Sequence[str]] | None = None

    # ── a person's way through the study ────────────────────────────────────────────────────────────────────────────

    def step(self, label: str) -> Step:
        """Return a person's next step. If all steps before the rating are done, reserve the places."""
        person, places, closed, lacking = self._database.read(lambda c: self._look(c, label))
        found = before_rating(self._context.study, person, closed and not _finished(places))
        if found is not None:
            return found
        if not closed and (not places or lacking):
            places = self.enter(label)
        return rating_step(places, person.rested, self._context.study.care.break_every)

    def _look(self, connection: Connection, label: str) -> tuple[Person, list[Slot], bool, bool]:
        person = read_person(connection, label)
        lacking = connection.rows(f"SELECT 1 FROM slot WHERE person = ? AND {_UNREPLACED} LIMIT 1", [label])
        return person, _session(connection, label), meta(connection, "state") == "closed", bool(lacking)

    def enter(self, label: str) -> list[Slot]:
        """Reserve the missing places of a person's session, release other people's expired places, and return the
        person's places.

        Returns [] if the study has no places left for this person.
        """
        return self._reserve(label, again=False)

    def start_again(self, label: str) -> bool:
        """Start another session for a person who finished one. Return False if the study allows no more, or is full."""
        before = self._database.read(lambda c: _last_session(c, label))
        return any(place.session > before for place in self._reserve(label, again=True))

    def rest(self, label: str) -> Person:
        """Store that the person took the break."""

        def work(connection: Connection) -> Person:
            lock_person(connection, label)
            done = sum(place.state in ("done", "skipped") for place in _session(connection, label))
            connection.run("UPDATE person SET rested = ? WHERE label = ?", [done, label])
            return read_person(connection, label)

        return self._database.write(work, repeatable=True)

    # ── places ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def places(self, label: str) -> list[Slot]:
        """Return all places of a person's current session in order; released ones are left out."""
        return [place for place in self._database.read(lambda c: _session(c, label)) if place.state != "released"]

    def current(self, label: str) -> Slot | None:
        """Return the first open place, or None."""
        return next((place for place in self.places(label) if place.state == "open"), None)

    def slot(self, label: str, slot: str) -> Slot:
        """Return a place of this person. Raises Refusal `slot` for another person's place or an unknown one."""
        return self._database.read(lambda c: own_slot(c, label, slot))

    def progress(self, label: str) -> Progress:
        """Return the progress of a person's current session."""
        places = self.places(label)
        return Progress(sum(place.state in ("done", "skipped") for place in places), len(places))

    def coverage(self) -> list[Coverage]:
        """Return, for each unit, the number of answers and of reservations."""

        def work(connection: Connection) -> list[Coverage]:
            counts = Counter({(row[0], row[1]): row[2] for row in connection.rows(_COUNT)})
            return [
                Coverage(unit.id, unit.group, unit.system, counts[unit.id, "done"], counts[unit.id, "open"])
                for unit in self._context.units(connection).values()
            ]

        return self._database.read(work)

    def finished(self) -> Sequence[tuple[str, int]]:
        """Return (label, session) of all finished sessions."""
        sql = (
            "SELECT person, session FROM slot WHERE state <> 'released' GROUP BY person, session "
            "HAVING sum(CASE WHEN state = 'open' THEN 1 ELSE 0 END) = 0 ORDER BY person, session"
        )
        return [(row[0], row[1]) for row in self._database.read(lambda c: c.rows(sql))]

    def skipped_checks(self) -> set[tuple[str, int, str]]:
        """Return (label, session, kind) of all skipped traps and gold questions."""
        sql = "SELECT person, session, kind FROM slot WHERE state = 'skipped' AND kind IN ('trap', 'gold')"
        return {(row[0], row[1], row[2]) for row in self._database.read(lambda c: c.rows(sql))}

    def release_expired(self) -> int:
        """Release expired places, and return their number."""
        return self._database.write(lambda c: _release_expired(c, self._context.clock(), ""), repeatable=True)

    # ── units whose sounds are lost ─────────────────────────────────────────────────────────────────────────────────

    def block(self, unit: str, reason: str) -> int:
        """Stop giving out a unit, e.g. because its sound is lost. Release its open places, and return their number.

        People get another unit instead when they request their next screen.
        """

        def work(connection: Connection) -> int:
            connection.alone()
            if connection.run("INSERT INTO block (unit, reason) VALUES (?, ?) ON CONFLICT DO NOTHING", [unit, reason]):
                note_event(connection, self._context.clock(), "blocked", unit=unit, reason=reason)
            return connection.run("UPDATE slot SET state = 'released' WHERE unit = ? AND state = 'open'", [unit])

        return self._database.write(work, repeatable=True)

    def unblock(self, unit: str) -> None:
        """Give out a unit again."""

        def work(connection: Connection) -> None:
            if connection.run("DELETE FROM block WHERE unit = ?", [unit]):
                note_event(connection, self._context.clock(), "unblocked", unit=unit)

        self._database.write(work, repeatable=True)

    def blocked(self) -> dict[str, str]:
        """Return the blocked units, with the reason for each."""
        return dict(self._database.read(lambda c: c.rows("SELECT unit, reason FROM block ORDER BY unit")))

    # ── reserving ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _reserve(self, label: str, *, again: bool) -> list[Slot]:
        duels = self.duels(self._context.study.session) if self.duels else ()

        def work(connection: Connection) -> list[Slot]:
            connection.alone()  # two people must not get the same last place
            lock_person(connection, label)
            self._context.check_open(connection)
            now = self._context.clock()
            extend(connection, label, now, self._context.study.reserve_minutes)
            _release_expired(connection, now, label)
            session = _session_to_fill(connection, label, self._context.study, again)
            if session > _last_session(connection, label):
                connection.run("UPDATE person SET rested = 0 WHERE label = ?", [label])
            self._fill(connection, label, session, now, duels)
            return [place for place in _session(connection, label) if place.state != "released"]

        return self._database.write(work, repeatable=not again)

    def _fill(self, connection: Connection, label: str, session: int, now: float, duels: Sequence[str]) -> None:
        """Add the places that a session lacks."""
        units = self._context.units(connection)
        places = [Place(unit.id, unit.group, unit.system) for unit in units.values()]
        held = _held(connection, label, session, self._context.question_groups(connection))
        needs = needs_of(self._context.study, self._context.sides(connection))
        blocked = {row[0] for row in connection.rows("SELECT unit FROM block")}
        planned = assignment.plan(places, needs, held, duels=duels, blocked=blocked)
        ((last,),) = connection.rows(
            "SELECT coalesce(max(seq), 0) FROM slot WHERE person = ? AND session = ?", [label, session]
        )
        connection.run(f"UPDATE slot SET reason = 'replaced' WHERE person = ? AND {_UNREPLACED}", [label])
        until = now + self._context.study.reserve_minutes * 60
        groups = {place.id: place.group for place in places}
        connection.many(
            "INSERT INTO slot (id, person, session, seq, kind, unit, grp, swap, target, state, reserved_until, opened) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?)",
            [
                (new_id(), label, session, last + at, p.kind, p.unit, groups.get(p.unit, ""), int(p.swap), p.target,
                 until, now)
                for at, p in enumerate(planned, 1)
            ],
        )  # fmt: skip


# ── pure decisions ────────────────────────────────────────────────────────────────────────────────────────────────────
def before_rating(study: Study, person: Person, closed: bool) -> Step | None:
    """Return the next step of a person who may not rate yet, or None if the person may."""
    if person.ended:
        return person.ended
    if closed:
        return "closed"
    if person.agreed is False:
        return "refused"
    if person.agreed is None or person.consent_sha != study.consent_sha:
        return "consent"
    if study.design not in SILENT and not person.device:
        return "setup"
    if study.design not in SILENT and study.checks.headphones and _headphones_left(study, person):
        return "headphones"
    if study.qualification.questions and not person.qualification:
        return "qualification"
    return None


def _headphones_left(study: Study, person: Person) -> bool:
    attempts = list(person.headphones)
    if not study.checks.require_headphones or not attempts:
        return not attempts
    return not any(one.get("passed") for one in attempts) and not failed_for_good(attempts)


def rating_step(places: Sequence[Slot], rested: int, break_every: int) -> Step:
    """Return the next step of a person in the rating part, given the person's places."""
    held = [place for place in places if place.state != "released"]
    if not held:
        return "full"
    done = sum(place.state != "open" for place in held)
    if done == len(held):
        return "done"
    return "break" if 0 < break_every <= done - rested else "rating"


def needs_of(study: Study, sides: int) -> Needs:
    """Return the parts of a session of this study."""
    checks = study.checks
    return Needs(
        session=study.session, votes=study.votes, overlap=study.overlap, training=checks.training, traps=checks.traps,
        gold=checks.gold, repeats=checks.repeats, anchors=checks.anchors, sides=sides,
        seed=study.seed,
    )  # fmt: skip


def _finished(places: Sequence[Slot]) -> bool:
    held = [place for place in places if place.state != "released"]
    return bool(held) and all(place.state != "open" for place in held)


# ── inside a transaction ──────────────────────────────────────────────────────────────────────────────────────────────
_COUNT = "SELECT unit, state, count(*) FROM slot WHERE kind = 'real' AND state IN ('open', 'done') GROUP BY unit, state"


def own_slot(connection: Connection, label: str, slot: str) -> Slot:
    """Return a place of this person. Raises Refusal `slot`."""
    rows = connection.rows(f"SELECT {_COLUMNS} FROM slot WHERE id = ? AND person = ?", [slot, label])
    if not rows:
        raise Refusal("slot", "This screen is not part of your session. Please reload the page.")
    return _slot(rows[0])


def extend(connection: Connection, label: str, now: float, minutes: float) -> None:
    """Extend the reservation of a person's open places, from now on."""
    sql = "UPDATE slot SET reserved_until = ? WHERE person = ? AND state = 'open'"
    connection.run(sql, [now + minutes * 60, label])


def has_same_script(connection: Connection, place: Slot) -> bool:
    """Return whether the person has another real place with the script of this one."""
    if place.kind != "real":
        return False
    sql = (
        "SELECT 1 FROM slot WHERE person = ? AND kind = 'real' AND state <> 'released' AND id <> ? "
        "AND grp = (SELECT grp FROM slot WHERE id = ?)"
    )
    return bool(connection.rows(sql, [place.person, place.id, place.id]))


def _release_expired(connection: Connection, now: float, but: str) -> int:
    """Release everybody's expired places, but not those of `but`."""
    expired = "state = 'open' AND kind = 'real' AND reserved_until < ? AND person <> ?"
    return connection.run(f"UPDATE slot SET state = 'released' WHERE {expired}", [now, but])


def _session(connection: Connection, label: str) -> list[Slot]:
    """Return the places of a person's last session in order."""
    sql = f"SELECT {_COLUMNS} FROM slot WHERE person = ? ORDER BY session, seq"
    places = [_slot(row) for row in connection.rows(sql, [label])]
    return [place for place in places if place.session == places[-1].session]


def _last_session(connection: Connection, label: str) -> int:
    ((last,),) = connection.rows("SELECT coalesce(max(session), 0) FROM slot WHERE person = ?", [label])
    return int(last)


def _session_to_fill(connection: Connection, label: str, study: Study, again: bool) -> int:
    """Return the number of the session to complete; a new one only if `again`, and if the study allows it."""
    last = _last_session(connection, label)
    if last and again and last < study.sessions and _finished(_session(connection, label)):
        return last + 1
    return max(last, 1)


def _held(connection: Connection, label: str, session: int, question_groups: int) -> Held:
    """Return what is assigned so far, to all people who are asked the same questions, and to this person."""
    group = read_person(connection, label).number % question_groups
    counted = connection.rows(
        "SELECT s.unit, count(*), sum(s.swap) FROM slot s JOIN person p ON p.label = s.person "
        "WHERE s.kind = 'real' AND s.state IN ('open', 'done') AND p.number % ? = ? GROUP BY s.unit",
        [question_groups, group],
    )
    mine = connection.rows(
        f"SELECT {_COLUMNS} FROM slot WHERE person = ? AND state <> 'released' ORDER BY seq", [label]
    )
    here = [_slot(row) for row in mine if row[2] == session]
    ((number,),) = connection.rows("SELECT count(*) FROM (SELECT DISTINCT person, session FROM slot) AS begun")
    return Held(
        votes={row[0]: int(row[1]) for row in counted}, swaps={row[0]: int(row[2]) for row in counted},
        groups=frozenset(row[11] for row in mine if row[11]),
        units=tuple(place.unit for place in here if place.kind == "real"),
        kinds=Counter(place.kind for place in here), number=int(number),
    )  # fmt: skip


def _slot(row: Row) -> Slot:
    return Slot(
        id=row[0], person=row[1], session=row[2], seq=row[3], kind=row[4], unit=row[5], swap=bool(row[6]),
        target=row[7], state=row[8], reserved_until=row[9], stage=row[10],
    )  # fmt: skip
