"""Win rates: what counts as a comparison, and that clusters widen the interval."""

from __future__ import annotations

import pytest

from overtone.stats import cluster, votes, winrate

CAST = votes.votes(["x", "x", "x", "y", "x"], ["y", "y", "y", "x", "z"], ["A", "A", "tie", "A", "B"])


def test_a_tie_counts_against_or_as_half() -> None:
    assert winrate.win_rates(CAST)["x"].value == pytest.approx(2 / 5)
    assert winrate.win_rates(CAST, ties="half")["x"].value == pytest.approx(2.5 / 5)
    assert winrate.win_rates(CAST)["y"].value == pytest.approx(1 / 4)
    assert winrate.win_rates(CAST)["z"].value == 1 and winrate.win_rates(CAST)["x"].rows == 5


def test_halves_of_all_players_add_up() -> None:
    rates = winrate.win_rates(CAST, ties="half")
    assert sum(rate.value * rate.rows for rate in rates.values()) == pytest.approx(len(CAST))


def test_the_interval_is_that_of_a_clustered_proportion() -> None:
    found = winrate.win_rates(CAST, clusters=["s", "s", "t", "t", "u"])["x"]
    assert found == cluster.proportion([1, 1, 0, 0, 0], ["s", "s", "t", "t", "u"])


def test_an_unknown_rule_for_ties_is_refused() -> None:
    with pytest.raises(ValueError, match="against, half"):
        winrate.win_rates(CAST, ties="ignore")  # type: ignore[arg-type]
