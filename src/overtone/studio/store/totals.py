"""Counts of a whole study, for the owner's page and `overtone studio status`."""

from __future__ import annotations

from overtone.studio.assignment import ANCHOR, Place, places_left
from overtone.studio.database import Connection, Row
from overtone.studio.store.sessions import needs_of
from overtone.studio.store.shared_state import Context, meta
from overtone.studio.store.store_records import Status

_PEOPLE = """
SELECT count(*),
    coalesce(sum(CASE WHEN agreed = 1 THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN agreed = 0 THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN ended = 'screened_out' THEN 1 ELSE 0 END), 0),
    coalesce(sum(CASE WHEN ended = 'withdrawn' THEN 1 ELSE 0 END), 0)
FROM person WHERE role <> 'owner'
"""
_SESSIONS = """
SELECT count(*), coalesce(sum(CASE WHEN left_open = 0 THEN 1 ELSE 0 END), 0) FROM (
    SELECT person, min(n) AS left_open FROM (
        SELECT person, session, sum(CASE WHEN state = 'open' THEN 1 ELSE 0 END) AS n
        FROM slot WHERE state <> 'released' GROUP BY person, session
    ) AS sessions GROUP BY person
) AS people
"""
_REAL = """
SELECT s.unit, p.number % ? AS question_group, s.state, count(*) FROM slot s JOIN person p ON p.label = s.person
WHERE s.kind = 'real' AND s.state IN ('open', 'done') GROUP BY s.unit, question_group, s.state
"""


def status(context: Context, connection: Connection) -> Status:
    """Return the counts of a study."""
    invited, consented, refused, screened_out, withdrawn = connection.rows(_PEOPLE)[0]
    started, finished = connection.rows(_SESSIONS)[0]
    groups = context.question_groups(connection)
    counts = connection.rows(_REAL, [groups])
    totals = {state: sum(int(row[3]) for row in counts if row[2] == state) for state in ("open", "done")}
    ((takes,),) = connection.rows("SELECT count(*) FROM take WHERE kept = 1")
    units = [Place(unit.id, unit.group, unit.system) for unit in context.units(connection).values()]
    missing = _missing(context, connection, units, counts, groups)
    state = meta(connection, "state")
    people = {
        "invited": invited, "consented": consented, "started": started, "finished": finished, "refused": refused,
        "screened_out": screened_out, "withdrawn": withdrawn,
    }  # fmt: skip
    return Status(
        state="closed" if state == "closed" else "open" if state == "open" else "new",
        people={name: int(count) for name, count in people.items()},
        answers=totals["done"],
        wanted=totals["done"] + missing,
        missing=missing,
        reserved=totals["open"],
        takes=int(takes),
        units=sum(unit.system != ANCHOR for unit in units),
    )


def _missing(context: Context, connection: Connection, units: list[Place], counts: list[Row], groups: int) -> int:
    """Return how many finished screens the units lack; all groups of people with different questions are needed."""
    blocked = {row[0] for row in connection.rows("SELECT unit FROM block")}
    usable = [unit for unit in units if unit.id not in blocked]
    needs = needs_of(context.study, context.sides(connection))
    return sum(
        places_left(usable, {row[0]: int(row[3]) for row in counts if row[1] == group and row[2] == "done"}, needs)
        for group in range(groups)
    )
