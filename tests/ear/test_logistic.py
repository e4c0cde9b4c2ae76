"""Logistic regression: its minimum, its penalty, and rows that say nothing about a class."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.ear import logistic


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=240)
    return rng.standard_normal((240, 6)) + 1.5 * np.eye(3, 6)[classes], classes


def everything(classes: np.ndarray) -> np.ndarray:
    return np.ones((classes.size, 3), bool)


def loss(fitted: np.ndarray, x: np.ndarray, classes: np.ndarray, strength: float) -> float:
    scores = x @ fitted[:, :-1].T + fitted[:, -1]
    log_total = np.log(np.exp(scores).sum(1))
    own = scores[np.arange(classes.size), classes]
    return float((log_total - own).mean() + strength / 2 * np.square(fitted[:, :-1]).sum())


def test_no_small_change_of_any_weight_lowers_the_loss() -> None:
    x, classes = problem()
    fitted = logistic.fit(x, classes, everything(classes), np.ones(240), 0.1)
    least = loss(fitted, x, classes, 0.1)
    rng = np.random.default_rng(1)
    for _ in range(50):
        assert loss(fitted + 0.05 * rng.standard_normal(fitted.shape), x, classes, 0.1) > least


def test_a_start_elsewhere_leads_to_the_same_minimum() -> None:
    x, classes = problem()
    one = logistic.fit(x, classes, everything(classes), np.ones(240), 0.1)
    start = np.random.default_rng(2).standard_normal(one.shape)
    other = logistic.fit(x, classes, everything(classes), np.ones(240), 0.1, start)
    assert other[:, :-1] == pytest.approx(one[:, :-1], abs=0.01)


def test_a_stronger_penalty_gives_smaller_weights() -> None:
    x, classes = problem()
    sizes = [
        np.abs(logistic.fit(x, classes, everything(classes), np.ones(240), strength)[:, :-1]).sum()
        for strength in (0.01, 0.1, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_rows_that_cannot_have_a_class_do_not_push_it_away() -> None:
    x, classes = problem()
    two = classes < 2
    possible = everything(classes)
    possible[:120, 2] = False  # a corpus without the third class
    kept = two | (np.arange(240) >= 120)
    masked = logistic.fit(x[kept], classes[kept], possible[kept], np.ones(kept.sum()), 0.1)
    told = logistic.fit(x[kept], classes[kept], everything(classes)[kept], np.ones(kept.sum()), 0.1)
    assert masked[2, -1] > told[2, -1]  # the bias of a class that is not said to be absent is higher


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    x, classes = problem()
    weights = np.ones(240)
    weights[:40] = 2
    twice = np.concatenate([x, x[:40]]), np.concatenate([classes, classes[:40]])
    one = logistic.fit(x, classes, everything(classes), weights, 0.1)
    other = logistic.fit(*twice, everything(twice[1]), np.ones(280), 0.1)
    assert one[:, :-1] == pytest.approx(other[:, :-1], abs=0.01)
