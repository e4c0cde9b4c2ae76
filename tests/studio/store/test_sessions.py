"""Places: reserved, extended, released and given to others, on both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from overtone.studio.store import Refusal, Store
from overtone.studio.study import Care, Checks, Study
from tests.studio.store.helpers import Clock, arrive, finish, make_study, make_units, open_study, rate

PLAIN = Checks(headphones=False, training=0, traps=0, gold=0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def study(tmp_path: Path, database: str) -> Study:
    return make_study(tmp_path, database, checks=PLAIN, session=6, votes=1)


@pytest.fixture
def store(study: Study, clock: Clock) -> Iterator[Store]:
    with open_study(study, make_units(12, ("one", "two")), clock=clock) as opened:
        yield opened


def test_a_session_is_reserved_at_once_and_stays_the_same(store: Store) -> None:
    label = arrive(store).label
    places = store.sessions.enter(label)
    assert len(places) == 6 and places == store.sessions.enter(label) == store.sessions.places(label)
    assert {place.state for place in places} == {"open"} and store.sessions.current(label) == places[0]
    assert sum(one.reserved for one in store.sessions.coverage()) == 6 == store.status().reserved


def test_places_return_to_others_after_the_reserved_time(store: Store, clock: Clock) -> None:
    away, label = arrive(store).label, arrive(store).label
    places = store.sessions.enter(away)
    rate(store, away, places[0])
    clock.now += 31 * 60
    store.sessions.enter(label)
    assert [place.id for place in store.sessions.places(away)] == [places[0].id]
    others = [arrive(store).label for _ in range(3)]
    assert [len(store.sessions.enter(one)) for one in others] == [6, 6, 6]  # nothing is lost: 24 units, 1 + 23 votes
    for one in (label, *others):
        finish(store, one)
    assert {one.done for one in store.sessions.coverage()} <= {1, 2} and store.status().missing == 0


def test_a_person_who_returns_gets_places_for_what_is_missing(store: Store, clock: Clock) -> None:
    away = arrive(store).label
    first = store.sessions.enter(away)
    rate(store, away, first[0])
    clock.now += 31 * 60
    assert store.sessions.release_expired() == 5
    assert store.sessions.step(away) == "rating"
    places = store.sessions.places(away)
    assert len(places) == 6 and places[0].id == first[0].id and not {p.id for p in places[1:]} & {p.id for p in first}
    assert store.sessions.progress(away).done == 1


def test_each_answer_keeps_all_places_of_the_person(store: Store, clock: Clock) -> None:
    label = arrive(store).label
    places = store.sessions.enter(label)
    for place in places[:3]:
        clock.now += 29 * 60
        rate(store, label, place)
    assert store.sessions.release_expired() == 0 and len(store.sessions.places(label)) == 6


def test_a_late_answer_is_stored_and_counts(store: Store, clock: Clock) -> None:
    label = arrive(store).label
    places = store.sessions.enter(label)
    clock.now += 31 * 60
    assert store.sessions.release_expired() == 6
    assert rate(store, label, places[0])
    assert [one.slot for one in store.answers.all()] == [places[0].id]


def test_a_full_study_has_no_places(store: Store) -> None:
    for _ in range(4):
        finish(store, arrive(store).label)
    late = arrive(store).label
    assert store.sessions.enter(late) == [] and store.sessions.step(late) == "full"
    assert store.status().missing == 0


def test_a_skipped_screen_goes_to_others_and_is_not_replaced(store: Store) -> None:
    label = arrive(store).label
    places = store.sessions.enter(label)
    assert store.answers.skip(label, places[0].id, "k", "distress")
    assert not store.answers.skip(label, places[0].id, "k", "distress")
    for place in places[1:]:
        rate(store, label, place)
    assert store.sessions.step(label) == "done" and store.sessions.finished() == [(label, 1)]
    assert next(one for one in store.sessions.coverage() if one.unit == places[0].unit).done == 0
    with pytest.raises(Refusal, match="skipped"):
        rate(store, label, places[0])


def test_a_screen_of_another_person_cannot_be_answered(store: Store) -> None:
    mine, other = arrive(store).label, arrive(store).label
    place = store.sessions.enter(other)[0]
    for attempt in (
        lambda: rate(store, mine, place),
        lambda: store.answers.skip(mine, place.id, "k", ""),
        lambda: store.sessions.slot(mine, place.id),
        lambda: store.sessions.slot(other, "0" * 16),
    ):
        with pytest.raises(Refusal) as refused:
            attempt()
        assert refused.value.code == "slot"
    assert store.answers.history() == []


def test_a_unit_with_a_lost_sound_is_replaced_by_another(store: Store) -> None:
    label = arrive(store).label
    places = store.sessions.enter(label)
    lost = places[0].unit
    assert store.sessions.block(lost, "missing sound") == 1 and store.sessions.blocked() == {lost: "missing sound"}
    assert store.sessions.step(label) == "rating"
    after = store.sessions.places(label)
    assert len(after) == 6 and lost not in {place.unit for place in after}
    assert store.status().missing == 23 and [event.kind for event in store.log.events("blocked")] == ["blocked"]
    store.sessions.unblock(lost)
    assert store.sessions.blocked() == {} and store.status().missing == 24


def test_breaks_come_after_the_number_of_screens_that_the_study_says(study: Study) -> None:
    with open_study(replace(study, care=Care(break_every=3))) as store:
        label = arrive(store).label
        steps = []
        for place in store.sessions.enter(label):
            steps.append(store.sessions.step(label))
            if steps[-1] == "break":
                store.sessions.rest(label)
            rate(store, label, place)
        assert steps == ["rating", "rating", "rating", "break", "rating", "rating"]
        assert store.sessions.step(label) == "done"


def test_another_session_begins_only_if_the_study_allows_it(store: Store) -> None:
    label = arrive(store).label
    finish(store, label)
    assert not store.sessions.start_again(label) and store.sessions.step(label) == "done"
    with Store.open(replace(store.study, sessions=2)) as longer:
        assert longer.sessions.start_again(label) and longer.sessions.step(label) == "rating"
        assert not longer.sessions.start_again(label)  # the second one is not finished
        finish(longer, label)
        assert longer.sessions.finished() == [(label, 1), (label, 2)] and not longer.sessions.start_again(label)
        scripts = [longer.units()[one.unit].group for one in longer.answers.all()]
        assert len(scripts) == 12 == len(set(scripts))  # no script twice, in whatever session


def test_repetitions_and_anchors_are_reserved_and_do_not_count_as_votes(study: Study) -> None:
    checks = replace(PLAIN, repeats=1, anchors=2)
    with open_study(replace(study, checks=checks), [*make_units(12, ("one",)), *make_units(3, ("anchor",))]) as store:
        places = finish(store, arrive(store).label)
        assert Counter(place.kind for place in places) == {"real": 6, "repeat": 1, "anchor": 2}
        (again,) = (place for place in places if place.kind == "repeat")
        assert again.unit in {place.unit for place in places if place.kind == "real"}
        assert (store.status().missing, store.status().wanted, store.status().units) == (6, 12, 12)


def test_many_people_who_enter_at_once_never_share_a_last_place(tmp_path: Path, database: str) -> None:
    """200 people, all at the same time, for 100 places of one vote."""
    study = make_study(tmp_path, database, checks=PLAIN, session=2, votes=1)
    with open_study(study, make_units(100, ("one",))) as store:
        people = [invited.label for invited in store.people.invite(200)]
        with ThreadPoolExecutor(200) as pool:
            sessions = list(pool.map(store.sessions.enter, people))
        taken = Counter(place.unit for session in sessions for place in session)
        assert sum(map(bool, sessions)) == 50 and set(taken.values()) == {1} and len(taken) == 100
        assert {len(session) for session in sessions} == {0, 2}


def test_one_person_in_many_tabs_has_one_session(tmp_path: Path, database: str) -> None:
    with open_study(make_study(tmp_path, database)) as store:
        label = arrive(store).label
        with ThreadPoolExecutor(12) as pool:
            sessions = list(pool.map(lambda _: [p.id for p in store.sessions.enter(label)], range(24)))
        assert all(session == sessions[0] for session in sessions) and len(set(sessions[0])) == 10


def test_groups_of_people_with_different_questions_each_give_all_votes(tmp_path: Path, database: str) -> None:
    study = make_study(tmp_path, database, checks=PLAIN, session=4, votes=1)
    with open_study(study, make_units(4, ("one",)), question_groups=2) as store:
        assert store.status().missing == 8
        labels = [arrive(store).label for _ in range(4)]
        assert [len(finish(store, label)) for label in labels] == [4, 4, 0, 0]
        assert store.status().missing == 0
