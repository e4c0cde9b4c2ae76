"""Audits on made-up judges: a fault that was put in is found, and a fair judge is not accused."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.judge_trust import audits
from overtone.judge_trust.people_agreement import agreement, ceiling, compared

N = 300
GROUPS = [f"g{n // 3}" for n in range(N)]
RNG = np.random.default_rng(7)
PEOPLE = RNG.integers(1, 6, N).astype(float)
LENGTHS = RNG.integers(5, 60, N).astype(float)
CHOICES = RNG.choice([0.0, 0.5, 1.0], N)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits, "DRAWS", 200)


def _noisy(values: np.ndarray, seed: int = 1) -> np.ndarray:
    return np.clip(values + np.random.default_rng(seed).integers(-1, 2, len(values)), 1, 5)


def test_a_judge_that_takes_the_first_is_found_and_one_that_does_not_is_not() -> None:
    rng = np.random.default_rng(3)
    biased = (rng.random(N) < 0.7).astype(float)
    fair = (rng.random(N) < 0.5).astype(float)
    turned = (rng.random(N) < 0.4).astype(float)
    found, turns = audits.position(biased, GROUPS, "d", turned=turned, turned_groups=GROUPS, reversed_=30)
    assert found.off and "it wins too often" in found.sentence
    assert turns.value == pytest.approx(turned.mean()) and turns.parts["from one to the other"] == 30 / N
    assert audits.position(fair, GROUPS, "d", turned=turned, turned_groups=GROUPS)[0].off is False
    assert audits.position(1 - biased, GROUPS, "d", turned=turned, turned_groups=GROUPS)[0].sentence.count("second")
    one_order = audits.first_place(np.ones(N), CHOICES, GROUPS, "d")
    assert one_order.off and "first more often" in one_order.sentence


def test_a_judge_that_pays_for_length_is_found_and_one_that_agrees_with_people_is_not() -> None:
    by_length = np.clip(np.round(PEOPLE + (LENGTHS - 32) / 15), 1, 5)
    found = audits.length_of_replies(by_length, LENGTHS, PEOPLE, GROUPS, "d", seed=0)
    assert found.off and found.value is not None and found.value > 0.3
    fair = audits.length_of_replies(_noisy(PEOPLE), LENGTHS, PEOPLE, GROUPS, "d", seed=0)
    assert fair.off is False
    assert audits.length_of_replies(np.full(N, 3.0), LENGTHS, PEOPLE, GROUPS, "d", seed=0).value is None


def test_in_pairs_length_is_measured_against_how_often_people_take_the_longer() -> None:
    longer = audits.length_in_pairs(np.ones(N), CHOICES, GROUPS, "d")
    assert longer.off and longer.parts["longer wins where people say tie"] == 1.0
    assert audits.length_in_pairs(CHOICES, CHOICES, GROUPS, "d").value == 0.0
    assert audits.length_in_pairs(np.array([]), np.array([]), [], "d").value is None


def test_a_judge_that_favours_its_own_family_is_found() -> None:
    own = np.arange(N) % 4 == 0
    gap = np.where(own, 0.8, 0.0) + np.random.default_rng(2).normal(0, 0.5, N)
    found = audits.self_preference(gap, own, GROUPS, "d", "gpt", seed=0)
    assert found.off and found.value == pytest.approx(0.8, abs=0.2) and "favours its family" in found.sentence
    assert audits.self_preference(gap, np.zeros(N, dtype=bool), GROUPS, "d", "gpt", seed=0).value is None
    assert audits.self_preference(gap[own], own[own], np.array(GROUPS)[own].tolist(), "d", "gpt", seed=0).off


def test_polarisation_is_the_use_of_the_ends_beyond_peoples() -> None:
    extreme = np.where(PEOPLE >= 3, 5.0, 1.0)
    found = audits.polarisation(extreme, PEOPLE, GROUPS, GROUPS, (1, 5), "d", seed=0)
    assert found.off and found.parts["ends, judge"] == 1.0
    assert found.parts["entropy, judge"] < found.parts["entropy, people"]  # type: ignore[operator]
    assert audits.polarisation(np.full(N, 3.0), PEOPLE, GROUPS, GROUPS, (1, 5), "d", seed=0).value < 0  # type: ignore[operator]
    assert audits.polarisation(PEOPLE, PEOPLE, GROUPS, GROUPS, (1, 5), "d", seed=0).off is False
    assert audits.entropy(np.full(9, 3.0), 5) == 0.0


def test_ties_are_counted_against_peoples_and_agreement_is_given_without_them() -> None:
    never = np.where(CHOICES == 0.5, 1.0, CHOICES)
    found = audits.ties(never, CHOICES, GROUPS, "d")
    assert found.off and "avoids ties" in found.sentence
    assert found.parts["agreement without ties"] == 1.0
    assert found.parts["agreement with ties"] == pytest.approx(float((CHOICES != 0.5).mean()))


def test_a_judge_of_words_alone_is_told_so() -> None:
    moves = np.random.default_rng(4).choice([-2.0, -1.0, 1.0, 2.0], N)
    deaf = audits.lexical_shortcut(np.zeros(N), moves, GROUPS, "d")
    assert deaf.off and "depend on the words alone" in deaf.sentence
    hears = audits.lexical_shortcut(moves, moves, GROUPS, "d")
    assert hears.value == 0 and hears.parts["moves with people"] == pytest.approx(1.0)
    assert audits.lexical_shortcut(np.array([]), np.array([]), [], "d").value is None


def test_one_impression_for_all_scales_is_a_halo() -> None:
    people = np.stack([PEOPLE, RNG.integers(1, 6, N), RNG.integers(1, 6, N)]).astype(float)
    found = audits.halo(np.stack([PEOPLE] * 3), people, GROUPS, seed=0)
    assert found.off and found.parts["judge"] == pytest.approx(1.0) and "affects all" in found.sentence
    assert audits.halo(people, people, GROUPS, seed=0).value == 0.0
    assert audits.halo(people[:1], people[:1], GROUPS, seed=0).value is None


def test_repeatability_counts_equal_answers_to_the_same_request() -> None:
    draws = np.array([[1.0, 2.0, 3.0, np.nan], [1.0, 3.0, 3.0, 4.0], [1.0, 3.0, np.nan, np.nan]])
    found = audits.repeatability(draws, ["a", "b", "c", "d"], "d", ordered=True)
    assert found.value == pytest.approx((3 + 1 + 1) / 7)
    assert found.parts["mean difference"] == pytest.approx(2 / 7)
    assert audits.repeatability(draws[:1], ["a", "b", "c", "d"], "d", ordered=True).value is None


def test_with_few_groups_there_is_a_value_and_no_claim() -> None:
    found = audits.ties(CHOICES, CHOICES, ["one"] * N, "d")
    assert found.value == 0 and found.low is None and found.off is None
    assert found.sentence.startswith("Not enough data for a sentence on: ties, d (1 of 10)")
    first, groups = np.ones(N), [str(n % 9) for n in range(N)]
    bias, _ = audits.position(first, groups, "d", turned=first, turned_groups=groups)
    assert bias.value == 1 and bias.low is not None and bias.off is None, "nine groups are too few for a claim"


def test_agreement_is_one_with_oneself_none_without_variation_and_near_nothing_by_chance() -> None:
    same = agreement(PEOPLE, PEOPLE, GROUPS, ordered=True, seed=0, draws=100)
    assert {round(m.value, 9) for m in same.values() if m.value is not None} == {1.0}
    chance = agreement(np.random.default_rng(9).permutation(PEOPLE), PEOPLE, GROUPS, ordered=True, seed=0, draws=200)
    for name in ("spearman", "kendall", "kappa", "alpha"):
        assert chance[name].low < 0 < chance[name].high  # type: ignore[operator]
    flat = agreement(np.full(N, 3.0), PEOPLE, GROUPS, ordered=True, seed=0, draws=20)
    assert flat["spearman"].value is None and flat["exact"].value is not None


def test_the_ceiling_compares_a_person_and_the_judge_with_the_same_others() -> None:
    raters = np.stack([PEOPLE, _noisy(PEOPLE, 5), _noisy(PEOPLE, 6)])
    raters[2, :30] = np.nan
    judge = np.random.default_rng(8).permutation(PEOPLE)
    found = ceiling(
        raters, judge, GROUPS, ["a", "b", "c"], ordered=True, seed=0, settle=lambda x: float(x.mean()), draws=100
    )
    assert found is not None and (found.raters, found.units) == (3, N)
    assert found.people["alpha"].value > 0.6 and abs(found.judge["alpha"].value) < 0.2  # type: ignore[operator, arg-type]
    assert found.difference["alpha"].value == pytest.approx(
        found.people["alpha"].value - found.judge["alpha"].value  # type: ignore[operator]
    )
    assert found.difference["alpha"].low > 0  # type: ignore[operator]
    assert found.pairs["a and b"] == pytest.approx(float((raters[0] == raters[1]).mean()))
    assert ceiling(raters[:1], judge, GROUPS, ["a"], ordered=True, seed=0, settle=lambda x: float(x.mean())) is None


def test_a_paired_difference_of_a_judge_with_itself_is_exactly_nothing() -> None:
    found = compared((_noisy(PEOPLE), PEOPLE), (_noisy(PEOPLE), PEOPLE), GROUPS, ordered=True, seed=0, draws=50)
    assert all((m.value, m.low, m.high) == (0.0, 0.0, 0.0) for m in found.difference.values())
