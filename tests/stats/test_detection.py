"""d′ and criterion against values computed by hand, by the standard library, and by simulation."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from overtone.stats.detection import corrected, criterion, d_prime, detect


def test_textbook_values_come_out() -> None:
    # z(0.84134) = 1 and z(0.15866) = −1, from the table of the normal distribution
    assert d_prime(0.8413447, 0.1586553) == pytest.approx(2.0, abs=1e-5)
    assert criterion(0.8413447, 0.1586553) == pytest.approx(0.0, abs=1e-5)
    assert criterion(0.8413447, 0.5) == pytest.approx(-0.5, abs=1e-5), "says yes too readily"
    assert d_prime(0.3, 0.3) == 0


def test_the_correction_adds_half_and_one() -> None:
    # 10 of 10 hits, 0 of 20 false alarms: H = 10.5/11, F = 0.5/21; z = 1.6906 and −1.9808 by table
    assert (corrected(10, 10), corrected(0, 20)) == (10.5 / 11, 0.5 / 21)
    found = detect([1] * 10 + [0] * 20, [True] * 10 + [False] * 20, list(range(30)))
    assert found.d_prime.value == pytest.approx(1.6906 + 1.9808, abs=1e-3)
    assert found.criterion.value == pytest.approx(-(1.6906 - 1.9808) / 2, abs=1e-3)
    assert found.hit_rate.value == 1 and found.false_alarm_rate.value == 0, "the rates themselves are not corrected"


def test_values_equal_those_of_the_standard_librarys_normal() -> None:
    normal = NormalDist()
    rng = np.random.default_rng(3)
    said, there = rng.random(200) < 0.6, rng.random(200) < 0.5
    found = detect(said.astype(float), [bool(t) for t in there], list(range(200)))
    h = normal.inv_cdf(float((said[there].sum() + 0.5) / (there.sum() + 1)))
    f = normal.inv_cdf(float((said[~there].sum() + 0.5) / ((~there).sum() + 1)))
    assert found.d_prime.value == pytest.approx(h - f, abs=1e-9)
    assert found.criterion.value == pytest.approx(-(h + f) / 2, abs=1e-9)


def test_the_error_of_independent_trials_is_gourevitch_and_galanters() -> None:
    # var d′ = H(1−H)/(n φ(zH)²) + F(1−F)/(m φ(zF)²) with n = m = 1000, H = 0.8, F = 0.3;
    # φ(0.8416) = 0.2800 and φ(−0.5244) = 0.3477 by table
    said = [1] * 800 + [0] * 200 + [1] * 300 + [0] * 700
    found = detect(said, [True] * 1000 + [False] * 1000, list(range(2000)))
    by_hand = math.sqrt(0.16 / (1000 * 0.2800**2) + 0.21 / (1000 * 0.3477**2))
    assert found.d_prime.error == pytest.approx(by_hand, rel=0.01)
    assert found.d_prime.low < found.d_prime.value < found.d_prime.high


def test_copies_of_a_trial_within_a_cluster_add_no_certainty() -> None:
    rng = np.random.default_rng(5)
    said, there = rng.random(80) < 0.5, [i % 2 == 0 for i in range(80)]
    once = detect(said.astype(float), there, list(range(80)))
    tenfold = detect(
        np.repeat(said, 10).astype(float), np.repeat(there, 10).tolist(), np.repeat(range(80), 10).tolist()
    )
    assert tenfold.d_prime.error == pytest.approx(once.d_prime.error, rel=0.1)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    there = np.arange(400) % 2 == 0
    covered = 0
    for _ in range(300):
        heard = rng.normal(size=400) + np.where(there, 1.2, 0.0) > 0.4
        found = detect(heard.astype(float), there.tolist(), (np.arange(400) // 2).tolist()).d_prime
        covered += found.low <= 1.2 <= found.high
    assert 0.92 <= covered / 300 <= 0.985


def test_rows_that_all_agree_leave_an_interval_with_a_width() -> None:
    found = detect([1.0] * 20 + [0.0] * 20, [True] * 20 + [False] * 20, list(range(20)) * 2).d_prime
    assert found.high - found.low > 1


def test_without_signals_or_without_noise_there_is_no_d_prime() -> None:
    for there in (True, False):
        found = detect([1.0, 0.0], [there, there], ["a", "b"])
        assert math.isnan(found.d_prime.value) and math.isnan(found.criterion.value)
    with pytest.raises(ValueError, match="do not match"):
        detect([1.0], [True, False], ["a"])
