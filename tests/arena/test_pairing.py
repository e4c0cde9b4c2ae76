"""Which pairs are drawn: balanced, seeded, stable when more are asked for, and drawn where votes tell most."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from overtone.arena.pairing import Case, Pair, draw, information, round_length
from overtone.stats.votes import Votes, votes

CASES = [
    Case(f"i{n}|c", f"case{n}", f"script{n // 2}", ("sad", "happy", "")[n % 3], "c") for n in range(60)
]  # fmt: skip
Drawn = list[tuple[Case, str, str]]


def kept(drawn: Drawn) -> list[Pair]:
    return [Pair(f"p{n}", c.key, c.case, c.group, c.cue, a, b) for n, (c, a, b) in enumerate(drawn)]


def duels(drawn: Drawn) -> Counter[frozenset[str]]:
    return Counter(frozenset((a, b)) for _, a, b in drawn)


def test_every_two_runs_meet_equally_often_on_every_cue_and_on_both_sides() -> None:
    runs = ["w", "x", "y", "z"]
    drawn = draw(runs, CASES, [], 72, seed=1)
    assert set(duels(drawn).values()) == {12}
    by_cue = Counter((frozenset((a, b)), c.cue) for c, a, b in drawn)
    assert set(by_cue.values()) == {4}
    sides = Counter((a, b) for _, a, b in drawn)
    assert set(sides.values()) == {6}
    assert max(Counter(c.group for c, _, _ in drawn).values()) <= 4  # 72 pairs over 30 scripts: each two or three times


def test_no_two_runs_meet_twice_on_a_case_and_the_draw_ends_when_all_have_met() -> None:
    drawn = draw(["x", "y", "z"], CASES[:5], [], 1000, seed=1)
    assert len(drawn) == 15
    assert len({(c.key, frozenset((a, b))) for c, a, b in drawn}) == 15


def test_the_first_pairs_stay_when_more_are_drawn_at_once_or_later() -> None:
    runs = ["x", "y", "z"]
    many = draw(runs, CASES, [], 50, seed=3)
    few = draw(runs, CASES, [], 20, seed=3)
    assert many[:20] == few
    assert few + draw(runs, CASES, kept(few), 30, seed=3) == many
    assert draw(runs, CASES, [], 20, seed=4) != few
    assert draw(runs, CASES[::-1], [], 20, seed=3) == few, "the order in which cases are read does not matter"


def cast() -> Votes:
    """x and y are close, z is far behind; all met equally often."""
    rows = [("x", "y", "A")] * 10 + [("x", "y", "B")] * 10 + [("x", "z", "A")] * 19 + [("x", "z", "B")]
    rows += [("y", "z", "A")] * 19 + [("y", "z", "B")]
    return votes(*([row[k] for row in rows] for k in range(3)))  # type: ignore[misc]


def test_a_vote_between_equals_tells_a_quarter_and_one_with_a_sure_winner_less() -> None:
    tells, variance = information(cast(), ["x", "y", "z"])
    assert tells[0, 1] == pytest.approx(0.25)
    assert tells[0, 2] == tells[2, 0] == pytest.approx(tells[1, 2]) and tells[0, 2] < 0.1
    assert variance.shape == (3, 3) and (np.linalg.eigvalsh(variance) > 0).all()
    tied, _ = information(votes(["x"] * 6, ["y"] * 6, ["tie", "tie", "A", "B", "A", "B"]), ["x", "y"])
    p = 1 / 3  # of a tie: ν = 1
    assert tied[0, 1] == pytest.approx((1 - p) / 4, abs=1e-6)


def test_later_draws_prefer_the_pair_whose_outcome_is_uncertain_without_forgetting_the_others() -> None:
    runs = ["x", "y", "z"]
    first = draw(runs, CASES, [], round_length(3), seed=0)
    later = draw(runs, CASES, kept(first), 24, seed=0, cast=cast())
    met = duels(later)
    assert met[frozenset("xy")] > met[frozenset("xz")] + met[frozenset("yz")]
    assert all(met[frozenset(two)] for two in combinations(runs, 2))
    assert Counter(a for _, a, b in later if {a, b} == {"x", "y"})["x"] == pytest.approx(
        met[frozenset("xy")] / 2, abs=1
    )


def test_a_run_that_joins_later_is_drawn_until_it_has_caught_up() -> None:
    first = draw(["x", "y"], CASES, [], 10, seed=0)
    later = draw(["x", "y", "z"], CASES, kept(first), 20, seed=0)
    assert duels(later) == {frozenset("xz"): 10, frozenset("yz"): 10}


def test_sixty_runs_and_thousands_of_pairs_are_drawn_in_seconds() -> None:
    runs = [f"run{n}" for n in range(60)]
    cases = [Case(f"i{n}|c", f"case{n}", f"s{n}", f"cue{n % 39}", "c") for n in range(1000)]
    drawn = draw(runs, cases, [], 2000, seed=0)
    assert len(drawn) == 2000 and max(duels(drawn).values()) == 2


@pytest.mark.full
def test_looking_at_the_votes_brings_close_runs_apart_sooner_and_intervals_hold() -> None:
    from bench.arena_draws import measure

    alone, looking = measure(look=False), measure(look=True)
    assert looking.off < 0.95 * alone.off
    assert 0.925 < looking.held < 0.985 and 0.925 < alone.held < 0.985
