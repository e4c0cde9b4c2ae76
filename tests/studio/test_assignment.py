"""Assignment: balanced over 200 simulated raters, and fair to each of them."""

from __future__ import annotations

import functools
from collections import Counter
from itertools import pairwise

import pytest
from msgspec.structs import replace

from overtone.studio.assignment import (
    Held,
    Needs,
    Place,
    Planned,
    in_order,
    overlap_set,
    places_left,
    plan,
    rateable,
    williams,
)

SYSTEMS = ("one", "two", "three", "four")
NEEDS = Needs(session=12, votes=50, overlap=2, training=2, traps=1, gold=1, seed=7)


def places(scripts: int = 48, systems: tuple[str, ...] = SYSTEMS) -> list[Place]:
    return [Place(f"{system}-{script}", f"s{script}", system) for script in range(scripts) for system in systems]


@functools.lru_cache
def sessions_of_200() -> list[list[Planned]]:
    return simulate(200, NEEDS, places())


def simulate(people: int, needs: Needs, among: list[Place]) -> list[list[Planned]]:
    """Sessions of people who come one after the other and finish."""
    votes: Counter[str] = Counter()
    swaps: Counter[str] = Counter()
    sessions = []
    for number in range(people):
        planned = plan(among, needs, Held(votes=votes, swaps=swaps, number=number))
        sessions.append(planned)
        votes.update(one.unit for one in planned if one.kind == "real")
        swaps.update(one.unit for one in planned if one.kind == "real" and one.swap)
    return sessions


def rated(session: list[Planned]) -> list[Planned]:
    return [one for one in session if one.kind == "real"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_in_a_williams_square_each_thing_has_each_position_and_each_predecessor_equally_often(count: int) -> None:
    rows = williams(count)
    assert all(sorted(row) == list(range(count)) for row in rows)
    positions = Counter((at, thing) for row in rows for at, thing in enumerate(row))
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(set(positions.values())) == 1
    assert count == 1 or (len(follows) == count * (count - 1) and len(set(follows.values())) == 1)


def test_two_hundred_raters_give_each_unit_and_system_the_same_number_of_answers() -> None:
    among = places()
    sessions = [rated(session) for session in sessions_of_200()]
    everybody = {place.id for place in overlap_set(among, NEEDS.overlap, NEEDS.seed)}
    votes = Counter(one.unit for session in sessions for one in session)
    assert all(votes[unit] == 200 for unit in everybody)
    for system in SYSTEMS:
        others = [votes[p.id] for p in rateable(among, NEEDS) if p.system == system and p.id not in everybody]
        assert max(others) - min(others) <= 1, Counter(others)
    assert set(Counter(one.unit.split("-")[0] for session in sessions for one in session).values()) == {600}


def test_within_each_person_scripts_come_once_and_systems_equally_often() -> None:
    group = {place.id: place.group for place in places()}
    for session in sessions_of_200():
        met = [group[one.unit] for one in session if one.unit]
        assert len(met) == len(set(met)) == 12 + 2 + 1
        assert set(Counter(one.unit.split("-")[0] for one in rated(session)).values()) == {3}


def test_over_people_each_system_has_each_position_and_each_predecessor_equally_often() -> None:
    orders = [[one.unit.split("-")[0] for one in rated(session)] for session in sessions_of_200()]
    positions = Counter((at, system) for order in orders for at, system in enumerate(order))
    assert len(positions) == 12 * 4 and set(positions.values()) == {50}
    follows = Counter(
        pair for order in orders for block in (order[:4], order[4:8], order[8:]) for pair in pairwise(block)
    )
    assert len(follows) == 12 and max(follows.values()) - min(follows.values()) == 0


def test_the_first_reply_of_a_pair_is_a_as_often_as_b() -> None:
    duels = ("one|two", "one|three", "two|three")
    needs = replace(NEEDS, sides=2)
    sessions = [rated(session) for session in simulate(200, needs, places(systems=duels))]
    swaps: Counter[str] = Counter()
    for session in sessions:
        assert 3 <= sum(one.swap for one in session) <= 9
        for one in session:
            swaps[one.unit] += 1 if one.swap else -1
    assert max(abs(lean) for lean in swaps.values()) <= 1


def test_training_comes_first_and_traps_and_gold_at_places_that_cannot_be_guessed() -> None:
    sessions = sessions_of_200()
    assert all([one.kind for one in session[:3]] == ["training", "training", "real"] for session in sessions)
    for kind in ("trap", "gold"):
        at = Counter(index for session in sessions for index, one in enumerate(session) if one.kind == kind)
        assert len(at) >= 10 and max(at.values()) < 60
    assert {one.target for session in sessions for one in session if one.kind == "trap"} == {2, 3, 4, 5}
    pairs = simulate(60, replace(NEEDS, sides=2), places())
    assert {one.target for session in pairs for one in session if one.kind == "gold"} == {0, 1}


def test_a_study_ends_when_each_unit_has_its_votes() -> None:
    among = places(scripts=12)
    needs = replace(NEEDS, session=6, votes=3, overlap=0)
    sessions = simulate(30, needs, among)
    needed = [session for session in sessions if session]
    assert len(needed) == 48 * 3 // 6 and sessions[len(needed) :] == [[]] * (30 - len(needed))
    votes = Counter(one.unit for session in needed for one in rated(session))
    assert len(votes) == 48 and set(votes.values()) == {3}


def test_a_person_who_returns_gets_what_is_missing_and_no_script_again() -> None:
    among = places(scripts=12)
    needs = replace(NEEDS, session=6, votes=3, overlap=0)
    first = rated(plan(among, needs, Held()))
    kept, group = first[:4], {place.id: place.group for place in among}
    held = Held(
        votes=Counter(one.unit for one in kept), groups=frozenset(group[one.unit] for one in kept),
        units=tuple(one.unit for one in kept), kinds={"real": 4, "trap": 1, "gold": 1, "training": 2}, number=1,
    )  # fmt: skip
    again = plan(among, needs, held)
    assert [one.kind for one in again] == ["real", "real"]
    assert not {group[one.unit] for one in again} & held.groups


def test_a_blocked_unit_is_not_assigned() -> None:
    among = places(scripts=12)
    blocked = [place.id for place in among if place.system == "one"]
    session = plan(among, NEEDS, Held(), blocked=blocked)
    assert session and not {one.unit for one in session} & set(blocked)


def test_a_small_study_keeps_scripts_for_training_and_gold() -> None:
    session = plan(places(scripts=6), replace(NEEDS, overlap=0), Held())
    assert Counter(one.kind for one in session) == {"real": 3, "training": 2, "gold": 1, "trap": 1}


def test_screens_are_repeated_late_and_anchors_are_rated_between_the_others() -> None:
    among = [*places(), *(Place(f"anchor-{n}", f"a{n}", "anchor") for n in range(3))]
    session = plan(among, replace(NEEDS, repeats=2, anchors=1), Held())
    kinds = Counter(one.kind for one in session)
    assert (kinds["repeat"], kinds["anchor"], kinds["real"]) == (2, 1, 12)
    at = {one.unit: index for index, one in enumerate(session) if one.kind == "real"}
    assert all(index - at[one.unit] >= 4 for index, one in enumerate(session) if one.kind == "repeat")
    assert not any(one.unit.startswith("anchor") for one in rated(session))


def test_wanted_pairs_come_before_others() -> None:
    needs = replace(NEEDS, overlap=0)
    session = rated(plan(places(), needs, Held(), duels=["two"] * 9 + ["four"] * 3))
    assert Counter(one.unit.split("-")[0] for one in session) == {"two": 9, "four": 3}


def test_the_same_seed_gives_the_same_session() -> None:
    assert plan(places(), NEEDS, Held(number=3)) == plan(places()[::-1], NEEDS, Held(number=3))
    assert plan(places(), NEEDS, Held(number=3)) != plan(places(), replace(NEEDS, seed=8), Held(number=3))


def test_the_overlap_set_has_different_scripts_and_takes_systems_in_turn() -> None:
    chosen = overlap_set(places(), 8, seed=1)
    assert len({place.group for place in chosen}) == 8
    assert set(Counter(place.system for place in chosen).values()) == {2}
    assert overlap_set(places(scripts=1), 3, seed=1) != [] and len(overlap_set(places(scripts=1), 3, seed=1)) == 1


def test_open_places_are_counted_per_unit() -> None:
    none = replace(NEEDS, overlap=0)
    assert places_left(places(scripts=1), {"one-0": 60, "two-0": 48}, none) == 0 + 2 + 50 + 50
    assert places_left(places(scripts=1), {}, NEEDS) == 50  # the script's other units cannot be rated


def test_systems_that_are_not_all_there_are_ordered_too() -> None:
    chosen = [place for place in places(scripts=5) if place.system in ("one", "two") and place.group != "s0"]
    assert sorted(in_order(chosen, 5, 1), key=lambda p: p.id) == sorted(chosen, key=lambda p: p.id)
