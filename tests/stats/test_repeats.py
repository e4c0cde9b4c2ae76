"""The noise between runs: models of known randomness give back their noise, and intervals that cover it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overtone.stats.repeats import NORMAL, noise_of_mean, within_variance


def simulated(
    rng: np.random.Generator, scripts: int, questions: int, times: int
) -> tuple[list[float], list[tuple[int, int]], list[int], float]:
    """Right and wrong answers to questions whose chances vary between scripts, and the true noise of one repeat."""
    easy = rng.beta(2, 1, scripts)
    chances = np.clip(easy[:, None] + rng.normal(0, 0.1, (scripts, questions)), 0.02, 0.98)
    right = rng.random((times, scripts, questions)) < chances
    places = [(s, q) for _ in range(times) for s in range(scripts) for q in range(questions)]
    truth = math.sqrt(float((chances * (1 - chances)).sum())) / chances.size
    return right.astype(float).ravel().tolist(), places, [script for script, _ in places], truth


@pytest.mark.parametrize(("scripts", "questions", "times"), [(10, 3, 2), (20, 1, 3), (40, 3, 3)])
def test_the_interval_covers_the_true_noise_and_the_variance_is_unbiased(
    scripts: int, questions: int, times: int
) -> None:
    rng = np.random.default_rng(scripts)
    covered, squares, truths = 0, 0.0, 0.0
    for _ in range(200):
        values, items, groups, truth = simulated(rng, scripts, questions, times)
        noise = noise_of_mean(within_variance(values, items, groups), scripts * questions)
        covered += noise.low <= truth <= noise.high
        squares, truths = squares + noise.value**2, truths + truth**2
    assert covered >= 0.93 * 200
    assert squares / truths == pytest.approx(1.0, abs=0.05)


def test_two_runs_of_one_model_differ_by_more_than_the_noise_in_one_of_twenty_cases() -> None:
    rng = np.random.default_rng(1)
    chances = rng.beta(2, 1, 60)
    beyond = 0
    for _ in range(400):
        first, second = (rng.random((3, 60)) < chances for _ in range(2))
        difference = first.astype(float) - second
        items = [n for _ in range(3) for n in range(60)]
        variance = within_variance(difference.ravel().tolist(), items, items)
        beyond += abs(difference.mean()) > NORMAL * noise_of_mean(variance, difference.size).value
    assert 0.02 <= beyond / 400 <= 0.08


def test_the_variance_is_that_of_each_item_by_hand() -> None:
    values, items, groups = [1.0, 3.0, 5.0, 5.0, 2.0], ["a", "a", "b", "b", "c"], ["s", "s", "t", "t", "u"]
    found = within_variance(values, items, groups)
    assert (found.value, found.rows, found.clusters) == (1.0, 2, 2), "(2 + 0) ÷ 2; c has one value"
    assert noise_of_mean(found, 25).value == pytest.approx(0.2)


def test_values_that_never_change_have_no_noise_and_no_interval() -> None:
    found = noise_of_mean(within_variance([1.0, 1.0, 0.0, 0.0], list("aabb"), list("sstt")), 2)
    assert found.value == 0.0 and math.isnan(found.low) and math.isnan(found.high)


def test_without_repeats_nothing_is_known() -> None:
    found = within_variance([1.0, 0.0], ["a", "b"], ["s", "t"])
    assert math.isnan(found.value) and found.rows == 0
    assert math.isnan(noise_of_mean(found, 2).value) and math.isnan(noise_of_mean(found, 0).value)
