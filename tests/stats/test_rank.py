"""Bradley–Terry ratings: invariances, errors instead of wrong ratings, covariates, and coverage by simulation."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.stats import binomial, davidson, rank, votes
from overtone.stats.bootstrap import resamples
from overtone.stats.votes import Votes

NAMES = ("A", "tie", "B")
STRENGTH = np.array([1.0, 0.5, 0.2, 0.0, -0.4, -1.3])


def simulate(
    rng: np.random.Generator, strength: npt.NDArray[np.float64], cast: int, tie: float = 0.6, extra: Any = 0.0
) -> Votes:
    """Votes of the model itself; `extra` is added to the log-odds of A."""
    a = rng.integers(strength.size, size=cast)
    b = (a + rng.integers(1, strength.size, size=cast)) % strength.size
    half = (strength[a] - strength[b] + extra) / 2
    parts = np.stack([np.exp(half), np.full(cast, tie), np.exp(-half)], axis=1)
    chance = parts.cumsum(1) / parts.sum(1, keepdims=True)
    outcome = (rng.random((cast, 1)) > chance).sum(1)
    return votes.votes(a.tolist(), b.tolist(), [NAMES[o] for o in outcome])


def ratings(found: rank.Ranking) -> dict[Any, list[float]]:
    return {r.player: [r.rating.value, r.rating.error, r.rating.low, r.rating.high] for r in found.rated}


def same(one: rank.Ranking, other: rank.Ranking, tolerance: float = 1e-9) -> None:
    mine, theirs = ratings(one), ratings(other)
    assert mine.keys() == theirs.keys()
    for player, row in mine.items():
        assert row == pytest.approx(theirs[player], abs=tolerance)
    assert one.tie == pytest.approx(other.tie, rel=1e-8)


def test_two_players_have_the_closed_form() -> None:
    cast = votes.votes(["x"] * 10, ["y"] * 10, ["A"] * 6 + ["B"] * 2 + ["tie"] * 2)
    found = rank.bradley_terry(cast)
    assert found.difference("x", "y").value == pytest.approx(math.log(3))
    assert found.chance("x", "y") == pytest.approx((0.6, 0.2, 0.2))
    halved = rank.bradley_terry(cast, ties="half")
    assert halved.difference("x", "y").value == pytest.approx(math.log(7 / 3)) and halved.tie == 0
    assert [r.player for r in found.rated] == ["x", "y"]
    assert sum(r.rating.value for r in found.rated) == pytest.approx(0)


@given(st.integers(0, 10_000), st.sampled_from(["davidson", "half"]), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_names_order_and_sides_do_not_matter(seed: int, ties: rank.Ties, random: Any) -> None:
    cast = simulate(np.random.default_rng(seed), STRENGTH[:4], 120)
    names = [f"m{player}" for player in cast.players]
    random.shuffle(names)
    order = list(range(len(cast)))
    random.shuffle(order)
    rows = []
    for at in order:
        a, b, outcome = names[cast.a[at]], names[cast.b[at]], int(cast.outcome[at])
        rows.append((a, b, NAMES[outcome]) if random.random() < 0.5 else (b, a, NAMES[2 - outcome]))
    other = votes.votes([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])
    one = ratings(rank.bradley_terry(cast, ties=ties))
    two = ratings(rank.bradley_terry(other, ties=ties))
    for at, player in enumerate(cast.players):
        assert one[player] == pytest.approx(two[names[at]], abs=1e-8)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_copies_of_votes_change_no_rating_and_within_clusters_no_interval(seed: int) -> None:
    cast = simulate(np.random.default_rng(seed), STRENGTH[:4], 100)
    copied = Votes(cast.players, *(np.tile(x, 3) for x in (cast.a, cast.b, cast.outcome)))
    clusters = list(range(100))
    same(rank.bradley_terry(cast, clusters=clusters), rank.bradley_terry(copied, clusters=clusters * 3))
    alone = rank.bradley_terry(copied)
    once = rank.bradley_terry(cast)
    assert alone.difference(0, 1).value == pytest.approx(once.difference(0, 1).value, abs=1e-9)
    # a third of the variance, but for the corrections of 100 and of 300 clusters
    expected = once.difference(0, 1).error / math.sqrt(3) * math.sqrt(300 / 299 * 99 / 100)
    assert alone.difference(0, 1).error == pytest.approx(expected)


def test_ties_that_never_happen_leave_plain_bradley_terry() -> None:
    cast = simulate(np.random.default_rng(1), STRENGTH, 400, tie=0)
    found = rank.bradley_terry(cast)
    assert found.tie == 0
    same(found, rank.bradley_terry(cast, ties="half"))


def test_bootstrap_and_sandwich_agree_where_votes_are_many() -> None:
    cast = simulate(np.random.default_rng(2), STRENGTH, 3000)
    found = rank.bradley_terry(cast)
    cells = davidson.cells(cast, np.empty((len(cast), 0)), tied=True)
    seen = np.stack([davidson.counts(cells, row) for row in np.concatenate([*resamples(3000, seed=1, draws=600)])])
    drawn, done = davidson.solve(cells, seen, np.zeros((600, cells.parameters)), prior=0, steps=100)
    assert done.all()
    values = drawn[:, : cells.players]
    for player, own in zip(cast.players, (values - values.mean(1, keepdims=True)).T, strict=True):
        rating = found.of(player).rating
        assert own.std(ddof=1) == pytest.approx(rating.error, rel=0.12)
        assert np.quantile(own, (0.025, 0.975)) == pytest.approx((rating.low, rating.high), abs=0.5 * rating.error)


def test_a_player_who_never_loses_is_an_error_unless_a_prior_is_given() -> None:
    cast = votes.votes(["x", "x", "y", "z"], ["y", "z", "z", "y"], ["A", "A", "A", "A"])
    with pytest.raises(ValueError, match="x does not lose or tie once against the others"):
        rank.bradley_terry(cast)
    found = rank.bradley_terry(cast, prior=0.5)
    assert found.rated[0].player == "x" and 0 < found.rated[0].rating.value < 5
    weaker = rank.bradley_terry(cast, prior=5)
    assert 0 < weaker.rated[0].rating.value < found.rated[0].rating.value
    groups = votes.votes(["x", "y", "u", "v"], ["y", "x", "v", "u"], ["A", "A", "A", "A"])
    with pytest.raises(ValueError, match="x, y; u, v"):
        rank.bradley_terry(groups)


def test_a_vanishing_prior_is_maximum_likelihood() -> None:
    cast = simulate(np.random.default_rng(3), STRENGTH, 500)
    same(rank.bradley_terry(cast, prior=1e-9), rank.bradley_terry(cast), 1e-6)


def solved(cast: Votes, *weights: np.ndarray) -> tuple[np.ndarray, list[bool]]:
    """Fit the votes once for every weighting of them; return the parameters and which fits converged."""
    cells = davidson.cells(cast, np.empty((len(cast), 0)), tied=bool((cast.outcome == votes.TIE).any()))
    seen = np.stack([davidson.counts(cells, row.astype(float)) for row in weights])
    found, done = davidson.solve(cells, seen, np.zeros((len(seen), cells.parameters)), prior=0, steps=100)
    return found, done.tolist()


def test_a_draw_without_finite_ratings_does_not_converge() -> None:
    cast = votes.votes(["x", "y", "z"] * 2, ["y", "z", "x"] * 2, ["A"] * 6)
    _, done = solved(cast, np.ones(6), np.array([2, 2, 0, 1, 1, 0]))  # in the second, x never loses
    assert done == [True, False]


def test_a_draw_without_ties_is_a_draw_like_others() -> None:
    cast = simulate(np.random.default_rng(6), STRENGTH[:4], 300, tie=0.012)
    assert 1 <= (cast.outcome == votes.TIE).sum() <= 3
    found, done = solved(cast, np.ones(300), cast.outcome != votes.TIE)
    assert done == [True, True] and np.exp(found[0, -1]) > 0.001 > np.exp(found[1, -1])


def test_a_longer_reply_is_not_a_better_model_once_length_is_held_fixed() -> None:
    rng = np.random.default_rng(7)
    talkative = np.array([1.0, 0, 0, 0, 0, 0])  # the first player's replies are longer
    a = rng.integers(6, size=4000)
    b = (a + rng.integers(1, 6, size=4000)) % 6
    longer = 10 * (talkative[a] - talkative[b] + rng.normal(size=4000))
    chance = 1 / (1 + np.exp(-0.08 * longer - 0.3))
    winner = np.where(rng.random(4000) < chance, "A", "B").tolist()
    cast = votes.votes(a.tolist(), b.tolist(), winner)
    fooled, found = rank.bradley_terry(cast), rank.bradley_terry(cast, covariates={"seconds": longer}, side=True)
    assert fooled.rated[0].player == 0 and fooled.of(0).rating.low > 0.3
    assert found.of(0).rating.low < 0 < found.of(0).rating.high
    assert found.covariates["seconds"].low < 0.08 < found.covariates["seconds"].high
    assert found.covariates["side"].low < 0.3 < found.covariates["side"].high


def test_the_unit_of_a_covariate_does_not_matter() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=500)
    cast = simulate(rng, STRENGTH, 500, extra=x)
    one = rank.bradley_terry(cast, covariates={"x": x})
    other = rank.bradley_terry(cast, covariates={"x": 1000 * x})
    same(one, other, 1e-7)
    assert one.covariates["x"].value == pytest.approx(1000 * other.covariates["x"].value)


def test_a_vote_seen_from_the_other_side_is_the_same_vote() -> None:
    rng = np.random.default_rng(16)
    x = rng.normal(size=400)
    cast = simulate(rng, STRENGTH, 400, extra=0.5 * x)
    swap = rng.random(400) < 0.5
    other = Votes(
        cast.players,
        np.where(swap, cast.b, cast.a),
        np.where(swap, cast.a, cast.b),
        np.where(swap, 2 - cast.outcome, cast.outcome),
    )
    clusters = (np.arange(400) // 4).tolist()
    one = rank.bradley_terry(cast, covariates={"x": x}, clusters=clusters)
    two = rank.bradley_terry(other, covariates={"x": np.where(swap, -x, x)}, clusters=clusters)
    same(one, two)
    assert one.covariates["x"].value == pytest.approx(two.covariates["x"].value)
    assert one.covariates["x"].error == pytest.approx(two.covariates["x"].error)


def test_covariates_that_explain_everything_or_nothing_new_are_errors() -> None:
    rng = np.random.default_rng(9)
    cast = simulate(rng, STRENGTH, 300, tie=0)
    who_won = np.where(cast.outcome == 0, 1.0, -1.0)
    player = (cast.a == 0).astype(float) - (cast.b == 0)
    for name, values in (("verdict", who_won), ("player", player)):
        with pytest.raises(ValueError, match=f"no convergence.*{name}"):
            rank.bradley_terry(cast, covariates={name: values})
    with pytest.raises(ValueError, match="0 in every vote"):
        rank.bradley_terry(cast, covariates={"x": np.zeros(300)})
    with pytest.raises(ValueError, match="one finite number for each of the 300 votes"):
        rank.bradley_terry(cast, covariates={"x": [1.0]})


def test_places_say_what_the_votes_leave_open() -> None:
    cast = simulate(np.random.default_rng(10), np.array([1.5, 0.02, 0.0, -1.5]), 2000)
    found = rank.bradley_terry(cast)
    assert [r.place for r in found.rated] == [1, 2, 3, 4]
    assert found.of(0).places == (1, 1) and found.of(3).places == (4, 4)
    assert found.of(1).places == found.of(2).places == (2, 3)


def test_with_one_cluster_ratings_have_no_interval() -> None:
    cast = simulate(np.random.default_rng(11), STRENGTH, 300)
    found = rank.bradley_terry(cast, clusters=["same"] * 300)
    assert all(math.isnan(r.rating.low) and r.rating.value == r.rating.value for r in found.rated)


def test_wrong_settings_are_refused() -> None:
    cast = simulate(np.random.default_rng(12), STRENGTH, 300)
    with pytest.raises(ValueError, match="300 votes but 2 cluster labels"):
        rank.bradley_terry(cast, clusters=[1, 2])
    with pytest.raises(ValueError, match="davidson, half"):
        rank.bradley_terry(cast, ties="drop")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="prior of at least 0"):
        rank.bradley_terry(cast, prior=-1)
    with pytest.raises(KeyError):
        rank.bradley_terry(cast).of("nobody")


def test_intervals_of_independent_votes_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(13)
    replicates, hits = 300, 0
    for _ in range(replicates):
        at = rank.bradley_terry(simulate(rng, STRENGTH, 300)).difference(0, 3)
        hits += at.low <= 1.0 <= at.high
    assert binomial.at_most(hits, replicates, 0.94) > 0.001 and binomial.at_least(hits, replicates, 0.97) > 0.001


def test_intervals_of_raters_with_a_taste_need_their_clusters() -> None:
    rng = np.random.default_rng(15)
    truth = rank.bradley_terry(_leaning(rng, raters=100_000, each=1)).difference(0, 2).value
    replicates, hits, without = 300, 0, 0
    for _ in range(replicates):
        cast = _leaning(rng, raters=60, each=8)
        at = rank.bradley_terry(cast, clusters=(np.arange(480) // 8).tolist()).difference(0, 2)
        blind = rank.bradley_terry(cast).difference(0, 2)
        hits += at.low <= truth <= at.high
        without += blind.low <= truth <= blind.high
    assert binomial.at_most(hits, replicates, 0.94) > 0.001 and binomial.at_least(hits, replicates, 0.97) > 0.001
    assert without < 0.9 * replicates


def _leaning(rng: np.random.Generator, raters: int, each: int) -> Votes:
    """Votes of raters each of whom likes player 0 more or less than others do."""
    strength = np.array([0.5, 0.0, -0.5])
    taste = np.repeat(rng.normal(0, 1.2, raters), each)
    a = rng.integers(3, size=taste.size)
    b = (a + rng.integers(1, 3, size=taste.size)) % 3
    own = taste * ((a == 0).astype(float) - (b == 0))
    chance = 1 / (1 + np.exp(-(strength[a] - strength[b] + own)))
    return votes.votes(a.tolist(), b.tolist(), np.where(rng.random(taste.size) < chance, "A", "B").tolist())


def test_ranking_sixty_players_takes_seconds() -> None:
    rng = np.random.default_rng(14)
    cast = simulate(rng, rng.normal(0, 0.7, 60), 9000)
    start = time.perf_counter()
    rank.bradley_terry(cast)
    assert time.perf_counter() - start < 5
