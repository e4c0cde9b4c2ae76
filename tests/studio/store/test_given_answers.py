"""Answers: stored once, newest wins, nothing lost by several tabs, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from overtone.studio.store import Refusal, Store
from overtone.studio.store.store_records import Person
from tests.studio.store.helpers import arrive, finish, make_study, open_study, rate


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[Store]:
    with open_study(make_study(tmp_path, database)) as opened:
        yield opened


@pytest.fixture
def person(store: Store) -> Person:
    return arrive(store)


def test_the_newest_answer_counts_and_older_ones_stay(store: Store, person: Person) -> None:
    slot = next(place for place in store.sessions.enter(person.label) if place.kind == "real")
    add = store.answers.add
    assert add(person.label, slot.id, "k1", {"C1": 2, "C2": 5}, plays={"reply": 1}, ms=900)
    assert add(person.label, slot.id, "k2", {"C1": 4}, plays={"reply": 3}, ms=1900, stage=1, done=True)
    (screen,) = store.answers.all()
    assert (screen.values, screen.plays, screen.ms, screen.state) == ({"C1": 4, "C2": 5}, {"reply": 3}, 1900, "done")
    assert [(one.field, one.value) for one in store.answers.history()] == [("C1", 2), ("C2", 5), ("C1", 4)]
    assert store.sessions.slot(person.label, slot.id).stage == 1
    assert store.answers.of_slot(slot.id) == screen


def test_a_request_without_values_stores_plays_and_time(store: Store, person: Person) -> None:
    slot = store.sessions.enter(person.label)[0]
    store.answers.add(person.label, slot.id, "k1", {}, plays={"reply": 1}, ms=700)
    screen = store.answers.of_slot(slot.id)
    assert screen is not None and (screen.values, screen.plays, screen.ms) == ({}, {"reply": 1}, 700)
    store.answers.add(person.label, slot.id, "k2", {"C1": 2}, plays={"reply": 2}, ms=900)
    store.answers.add(person.label, slot.id, "k3", {}, plays={}, ms=1200, done=True)
    (screen,) = store.answers.all(("training",))
    assert (screen.values, screen.plays, screen.ms) == ({"C1": 2}, {"reply": 2}, 1200)
    assert len(store.answers.history()) == 1


def test_a_repeated_request_changes_nothing(store: Store, person: Person) -> None:
    slot = store.sessions.enter(person.label)[0]
    assert rate(store, person.label, slot, 3, key="same")
    before = store.answers.history()
    assert not rate(store, person.label, slot, 5, key="same")
    assert store.answers.history() == before


def test_the_same_key_of_another_person_is_another_request(store: Store, person: Person) -> None:
    other = arrive(store)
    for label in (person.label, other.label):
        assert rate(store, label, store.sessions.enter(label)[0], 3, key="1")
    assert len(store.answers.history()) == 2


def test_unfinished_screens_and_other_kinds_are_read_only_on_request(store: Store, person: Person) -> None:
    places = store.sessions.enter(person.label)
    trap = next(place for place in places if place.kind == "trap")
    real = next(place for place in places if place.kind == "real")
    rate(store, person.label, trap, 3)
    store.answers.add(person.label, real.id, "k", {"C1": 1}, plays={}, ms=1)
    assert store.answers.all() == [] and store.answers.of_slot(places[0].id) is None
    assert [one.slot for one in store.answers.all(("trap",))] == [trap.id]
    assert [one.state for one in store.answers.all(finished=False)] == ["open"]


def test_values_of_all_kinds_come_back_as_they_were(store: Store, person: Person) -> None:
    values = {"scale": 4, "slider": 0.25, "choice": "both_good", "tags": ["a", "b"], "text": "he said “ä\0\n'; DROP"}
    slot = store.sessions.enter(person.label)[0]
    store.answers.add(person.label, slot.id, "k", values, plays={}, ms=5, done=True)
    screen = store.answers.of_slot(slot.id)
    assert screen is not None and screen.values == values


def test_a_client_key_of_another_form_is_refused(store: Store, person: Person) -> None:
    slot = store.sessions.enter(person.label)[0]
    for key in ("", "x" * 101, "a b", "ä", "a\0"):
        with pytest.raises(Refusal, match="client_key"):
            store.answers.add(person.label, slot.id, key, {"C1": 1}, plays={}, ms=1)


def test_odd_characters_from_a_page_are_no_error_of_the_database(store: Store, person: Person) -> None:
    slot = store.sessions.enter(person.label)[0]
    with pytest.raises(Refusal, match="not part of your session"):
        store.sessions.slot(person.label, "a\0b")
    assert store.people.find("\udcff\0") is None
    assert store.people.join("prolific", "id\0").label == store.people.join("prolific", "id\0").label
    assert store.answers.skip(person.label, slot.id, "k", "too\0loud")


def test_a_person_who_was_screened_out_cannot_answer(store: Store, person: Person) -> None:
    slot = store.sessions.enter(person.label)[0]
    store.people.screen_out(person.label, "headphones")
    with pytest.raises(Refusal) as refused:
        rate(store, person.label, slot)
    assert refused.value.code == "screened_out" and store.status().reserved == 0


def test_answers_without_consent_or_after_closing_are_refused(store: Store, person: Person) -> None:
    places = store.sessions.enter(person.label)
    rate(store, person.label, places[0], key="k0")
    store.people.consent(person.label, store.study.consent_sha, False, {})
    with pytest.raises(Refusal) as refused:
        rate(store, person.label, places[1])
    assert refused.value.code == "consent"
    store.people.consent(person.label, store.study.consent_sha, True, {})
    store.close_study()
    with pytest.raises(Refusal) as refused:
        rate(store, person.label, places[1])
    assert refused.value.code == "closed"
    assert not rate(store, person.label, places[0], key="k0")  # but a repeated request is no error
    assert len(store.answers.history()) == 1


def test_parallel_requests_are_stored_once_each(store: Store) -> None:
    """Twelve people in two tabs that send the same requests."""
    people = [arrive(store).label for _ in range(12)]
    sessions = {label: store.sessions.enter(label) for label in people}
    work = [(label, slot) for label in people for slot in sessions[label] for _ in range(2)]
    with ThreadPoolExecutor(16) as pool:
        stored = list(pool.map(lambda one: rate(store, *one), work))
    assert sum(stored) == 120 and len(store.answers.history()) == 120
    assert all(store.sessions.step(label) == "done" for label in people)


def test_two_stores_of_one_study_see_each_others_answers(store: Store, person: Person) -> None:
    with Store.open(store.study, create=False) as second:  # e.g. `overtone studio status` beside the server
        finish(second, person.label)
        assert store.status() == second.status() and store.status().answers == 6
