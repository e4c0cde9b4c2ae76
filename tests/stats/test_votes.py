"""Votes: how they are read, and that votes which cannot rank everybody are refused with the players' names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import davidson, votes
from overtone.stats.votes import Votes

CAST = st.lists(
    st.tuples(st.sampled_from([(0, 1), (0, 2), (1, 2), (2, 0)]), st.sampled_from(["A", "tie", "B"])),
    min_size=1,
    max_size=9,
)


def cast(*rows: str) -> Votes:
    """Votes written as "x>y", "x=y"."""
    split = [(row[0], row[2], {">": "A", "<": "B", "=": "tie"}[row[1]]) for row in rows]
    return votes.votes([a for a, _, _ in split], [b for _, b, _ in split], [w for _, _, w in split])


def refusal(rows: Sequence[str], davidson: bool = True) -> str:
    with pytest.raises(ValueError) as error:
        votes.check(cast(*rows), davidson=davidson)
    return str(error.value)


def test_wins_and_ties_are_counted_from_both_sides() -> None:
    found = cast("x>y", "y<x", "y>x", "x=z", "z=x")
    assert found.players == ("x", "y", "z") and len(found) == 5
    assert votes.wins(found).tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]
    assert votes.ties(found).tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]


def test_wrong_votes_are_refused() -> None:
    with pytest.raises(ValueError, match="vote 1 compares x with itself"):
        votes.votes(["x", "x"], ["y", "x"], ["A", "B"])
    with pytest.raises(ValueError, match="unknown winner left; known: A, B, tie"):
        votes.votes(["x"], ["y"], ["left"])
    with pytest.raises(ValueError, match="every vote needs all three"):
        votes.votes(["x"], ["y"], [])


def test_groups_that_never_met_are_named() -> None:
    assert "no vote compares these groups with each other: u, v; x, y, z" in refusal(
        ["x>y", "y>z", "z>x", "u>v", "v>u"]
    )


def test_somebody_who_never_loses_or_never_wins_is_named() -> None:
    assert "x does not lose or tie once against the others" in refusal(["x>y", "y>z", "z>y", "x>z"])
    assert "z does not win or tie once against the others" in refusal(["x>y", "y>x", "x>z", "y=x"])
    two = refusal(["x>y", "y>x", "u>v", "v>u", "v>w", "w>u", "x>u", "y>v"])
    assert "x, y do not lose or tie once against the others" in two
    votes.check(cast("x>y", "y>z", "z>x"), davidson=True)


def test_ties_alone_say_nothing_and_no_votes_say_nothing() -> None:
    assert "every vote is a tie" in refusal(["x=y", "y=z"])
    votes.check(cast("x=y"), davidson=False)
    with pytest.raises(ValueError, match="no votes"):
        votes.check(votes.votes([], [], []), davidson=True)


def test_wins_that_ties_do_not_contradict_have_no_finite_ratings_with_ties_as_an_outcome() -> None:
    # one win and one tie: odds for the other side can go to nothing while win and tie stay equally likely
    assert "perfectly ordered" in refusal(["x>y", "x=y"])
    votes.check(cast("x>y", "x=y"), davidson=False)
    votes.check(cast("x>y", "y>z", "x=z", "y=z", "x=y"), davidson=True)  # two steps up, and yet a tie


@given(CAST)
@settings(max_examples=150, deadline=None)
def test_the_check_refuses_exactly_the_votes_whose_likelihood_has_no_top(
    rows: list[tuple[tuple[int, int], str]],
) -> None:
    """By brute force: a direction in which the likelihood never falls, among those with whole steps."""
    found = votes.votes([a for (a, _), _ in rows], [b for (_, b), _ in rows], [w for _, w in rows])
    size, tied = len(found.players), bool((found.outcome == votes.TIE).any())
    endless = tied and bool((found.outcome == votes.TIE).all())
    steps = range(9)
    for ratings in itertools.product(steps, repeat=size - 1):
        theta = np.array([4, *ratings])
        for half_tie in (0, 1) if tied else (None,):
            if (theta == 4).all() and not half_tie:
                continue
            d = theta[found.a] - theta[found.b]
            d = np.where(found.outcome == 2, -d, d)
            ties = found.outcome == votes.TIE
            tie = -math.inf if half_tie is None else half_tie
            wins_hold = ((d >= 0) & (d >= 2 * tie))[~ties].all()
            ties_hold = (np.abs(d) <= 2 * tie)[ties].all()
            endless |= bool(wins_hold and ties_hold)
    try:
        votes.check(found, davidson=True)
        refused = False
    except ValueError:
        refused = True
    assert refused == endless
    cells = davidson.cells(found, np.empty((len(found), 0)), tied=tied)
    start = np.zeros((1, cells.parameters))
    _, done = davidson.solve(cells, davidson.counts(cells)[None], start, prior=0, steps=60)
    assert done[0] == (not endless)  # and Newton's method finds the same, without being told
