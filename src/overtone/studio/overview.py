"""The state of a study for its owner: progress, people, time per screen, quality flags, and lost sounds."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from overtone.studio.labels.collect import CHECKED, elsewhere, frozen_units, verdicts
from overtone.studio.session_quality import Verdict
from overtone.studio.store import Store
from overtone.studio.store.store_records import Answered, Person, Status
from overtone.studio.study import Study


class PersonRow(Struct, frozen=True, kw_only=True):
    """One person as the owner sees them."""

    label: str
    role: str
    source: str
    state: str  # invited, started, finished, refused, screened_out, withdrawn
    done: int
    seconds: float | None  # median per screen
    usable: bool | None  # of all sessions; None: nothing to judge yet
    payable: bool | None
    flags: dict[str, int]  # rule → times
    headphones: bool | None
    last: float | None


class Overview(Struct, frozen=True, kw_only=True):
    """The state of a study."""

    title: str
    design: str
    status: Status
    seconds: float | None  # median per screen
    minutes: float | None  # median per person who finished, of the time on screens
    sessions: int
    usable: int
    payable: int
    flags: dict[str, int]
    blocked: dict[str, str]
    withdrawn_in: dict[str, list[str]]  # exports that still contain people who withdrew
    people: tuple[PersonRow, ...]


def overview(study: Study, store: Store) -> Overview:
    """Return the state of a study."""
    answers = store.answers.all((*CHECKED, "training"))
    sessions = judged(study, store)
    finished = {label for label, _ in store.sessions.finished()}
    people = [person for person in store.people.all() if person.role != "owner"]
    rows = tuple(_row(one, answers, sessions, one.label in finished) for one in people)
    flags = Counter(flag.rule for verdict in sessions for flag in verdict.flags)
    times = [sum(one.ms for one in answers if one.person == label) / 60_000 for label in finished]
    return Overview(
        title=study.title,
        design=study.design,
        status=store.status(),
        seconds=_seconds(answers),
        minutes=round(statistics.median(times), 1) if times else None,
        sessions=len(sessions),
        usable=sum(verdict.usable for verdict in sessions),
        payable=sum(verdict.payable for verdict in sessions),
        flags=dict(flags),
        blocked=store.sessions.blocked(),
        withdrawn_in=store.withdrawals.left_in(),
        people=rows,
    )


def judged(study: Study, store: Store) -> list[Verdict]:
    """Return the verdict of the quality rules on every session. Imported answers have none."""
    imported = elsewhere({person.label: person for person in store.people.all()})
    answers = [one for one in store.answers.all(CHECKED) if one.person not in imported]
    finished, skipped = store.sessions.finished(), store.sessions.skipped_checks()
    return verdicts(study, frozen_units(store), answers, finished, skipped)


def _row(person: Person, answers: Sequence[Answered], sessions: Sequence[Verdict], finished: bool) -> PersonRow:
    own = [one for one in answers if one.person == person.label]
    verdicts_of = [verdict for verdict in sessions if verdict.person == person.label]
    tests = [test for test in person.headphones if "passed" in test]
    return PersonRow(
        label=person.label,
        role=person.role,
        source=person.source,
        state=_state(person, own, finished),
        done=sum(one.kind == "real" for one in own),
        seconds=_seconds(own),
        usable=all(verdict.usable for verdict in verdicts_of) if verdicts_of else None,
        payable=all(verdict.payable for verdict in verdicts_of) if verdicts_of else None,
        flags=dict(Counter(flag.rule for verdict in verdicts_of for flag in verdict.flags)),
        headphones=any(test["passed"] for test in tests) if tests else None,
        last=max((one.at for one in own), default=None),
    )


def _state(person: Person, own: Sequence[Answered], finished: bool) -> str:
    if person.ended:
        return person.ended
    if person.agreed is False:
        return "refused"
    if finished:
        return "finished"
    return "started" if own or person.agreed else "invited"


def _seconds(answers: Sequence[Answered]) -> float | None:
    return round(statistics.median(one.ms for one in answers) / 1000, 1) if answers else None
