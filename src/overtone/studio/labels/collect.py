"""Collect a study's answers from its store, with the verdict of the rules on every session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from overtone.errors import StoreError
from overtone.judges import rubric as rubrics
from overtone.paths import shown
from overtone.studio import designs, session_quality
from overtone.studio.designs import Unit
from overtone.studio.fields import Value
from overtone.studio.labels.given import Given
from overtone.studio.labels.run_sync import WAIT, Synced, sync
from overtone.studio.session_quality import Verdict
from overtone.studio.store import Store
from overtone.studio.store.store_records import Answered, Kind, Person
from overtone.studio.study import Study

OPINIONS: tuple[Kind, ...] = ("real", "anchor", "repeat")
CHECKED: tuple[Kind, ...] = (*OPINIONS, "trap", "gold")


def collect(study: Study, store: Store) -> list[Given]:
    """Return the finished screens of people who did not withdraw, by person and time."""
    units = frozen_units(store)
    answers = store.answers.all(CHECKED)
    people = {person.label: person for person in store.people.all()}
    here = [one for one in answers if one.person not in elsewhere(people)]
    judged = verdicts(study, units, here, store.sessions.finished(), store.sessions.skipped_checks())
    by_session = {(verdict.person, verdict.session): verdict for verdict in judged}
    return [
        _given(one, units[one.unit], people.get(one.person), by_session.get((one.person, one.session)))
        for one in answers
        if one.kind in OPINIONS and one.unit in units
    ]


def elsewhere(people: Mapping[str, Person]) -> set[str]:
    """Return the people whose answers were imported. They met no trap and no gold question, so no rule judges them."""
    return {label for label, person in people.items() if person.source == "label-studio"}


def sync_study(
    study: Study, store: Store, *, wait: float = WAIT, tell: Callable[[str], None] | None = None
) -> list[Synced]:
    """Write a study's labels into its runs, and note in its log where they are."""
    done = sync(study, collect(study, store), wait=wait, tell=tell)
    known = {str(event.detail.get("place")) for event in store.log.events("exported")}
    left_in = store.withdrawals.left_in()
    for one in done:
        place = str(one.folder.resolve())
        new = one.changes.any and place not in known
        if not one.problem and (new or place in left_in):  # a withdrawn person is in it no longer
            store.log.exported("labels in the run", place)
    return done


def frozen_units(store: Store) -> dict[str, Unit]:
    """Return the units of a study as they were at the first serve. Raises StoreError for a unit that is unreadable."""
    units = {}
    for name, frozen in store.units().items():
        try:
            units[name] = msgspec.json.decode(frozen.content, type=Unit)
        except msgspec.MsgspecError as error:
            raise StoreError(f"the study's unit {shown(name)} is unreadable ({error}); restore a backup") from None
    return units


def verdicts(
    study: Study,
    units: Mapping[str, Unit],
    answers: Sequence[Answered],
    finished: Collection[tuple[str, int]] | None = None,
    skipped: Collection[tuple[str, int, str]] = (),
) -> list[Verdict]:
    """Return the verdict of the rules on every session, the design's own rule (MUSHRA's hidden reference) included.

    `finished`: (person, session) of the finished sessions; None: all. `skipped`: see `session_quality.assess`.
    """
    design = designs.find(study.design)
    asked = [rubrics.load(name) for name in study.rubrics]
    fields = design.fields(asked, study)

    def gold(unit: str, side: int) -> Mapping[str, Sequence[Value]]:
        return design.gold(fields, asked, side)

    opinions = [one for one in answers if one.kind == "real" and one.unit in units]
    excluded = design.screened([_answered(one, units[one.unit]) for one in opinions], study) if design.screened else {}
    heard = {name: designs.played(design, unit, study) for name, unit in units.items()}
    must_play = {name: [one.name for one in sounds if not one.context] for name, sounds in heard.items()}
    return session_quality.assess(
        answers,
        gold=gold,
        must_play=must_play,
        finished=finished,
        varied=study.design == "acr",
        excluded=excluded,
        skipped=skipped,
    )


def _answered(one: Answered, unit: Unit) -> designs.Answered:
    return designs.Answered(one.person, unit, one.values, one.swap, one.slot)


def _given(one: Answered, unit: Unit, person: Person | None, verdict: Verdict | None) -> Given:
    tests = [test for test in (person.headphones if person else ()) if "passed" in test]
    return Given(
        rater=one.person, unit=unit, values=one.values, slot=one.slot, swap=one.swap, kind=one.kind,
        session=one.session, seq=one.seq, at=one.at, ms=one.ms,
        usable=verdict is None or verdict.usable, payable=verdict is None or verdict.payable,
        headphones=any(test["passed"] for test in tests) if tests else None,
        source=person.source if person else "invite", failed=verdict.failed if verdict else (),
    )  # fmt: skip
