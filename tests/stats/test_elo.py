"""Elo by hand, and what must be known of it: the order of the votes matters."""

from __future__ import annotations

import pytest

from overtone.stats import elo, votes


def test_two_votes_by_hand() -> None:
    found = elo.elo(votes.votes(["x", "y"], ["y", "x"], ["A", "tie"]))
    # x gains 2; then y, expected to win 0.49712, gains 4 · (0.5 − 0.49712)
    expected = 1 / (1 + 10 ** (4 / 400))
    assert found["x"] == pytest.approx(1002 - 4 * (0.5 - expected))
    assert sum(found.values()) == pytest.approx(2000)


def test_the_order_of_the_votes_changes_the_ratings() -> None:
    one = elo.elo(votes.votes(["x", "x", "y"], ["y", "y", "x"], ["A", "A", "A"]), k=32)
    other = elo.elo(votes.votes(["y", "x", "x"], ["x", "y", "y"], ["A", "A", "A"]), k=32)
    assert one["x"] < other["x"]


def test_the_start_and_the_scale_are_only_units() -> None:
    cast = votes.votes(["x", "y", "x"], ["y", "z", "z"], ["A", "tie", "B"])
    one, other = elo.elo(cast), elo.elo(cast, k=8, scale=800, start=0)
    assert {p: 2 * (r - 1000) for p, r in one.items()} == pytest.approx(other)
    with pytest.raises(ValueError, match="above 0"):
        elo.elo(cast, k=0)
