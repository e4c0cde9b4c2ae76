"""Corpus scores from sums: the jackknife against what is known exactly and against a bootstrap; BLEU by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overtone.stats import bootstrap, cluster, corpus_sums

RNG = np.random.default_rng(3)


def test_for_a_mean_the_jackknife_is_the_textbook_error() -> None:
    values = RNG.normal(size=40)
    found = corpus_sums.jackknife(np.c_[values, np.ones(40)], range(40), lambda s: float(s[0] / s[1]))
    assert found.value == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / math.sqrt(40))
    assert found.high - found.value == pytest.approx(cluster.student_quantile(0.975, 39) * found.error)


def test_copies_within_a_cluster_add_no_certainty() -> None:
    values = RNG.normal(size=20)
    once = corpus_sums.jackknife(np.c_[values, np.ones(20)], range(20), lambda s: float(s[0] / s[1]))
    rows = np.repeat(np.c_[values, np.ones(20)], 5, axis=0)
    again = corpus_sums.jackknife(rows, list(np.repeat(np.arange(20), 5)), lambda s: float(s[0] / s[1]))
    assert (again.value, again.error) == (pytest.approx(once.value), pytest.approx(once.error))
    assert (again.rows, again.clusters) == (100, 20)


def test_for_bleu_it_agrees_with_a_clustered_bootstrap() -> None:
    skill = np.repeat(RNG.uniform(0.2, 0.8, size=80), 3)  # three rows a script, alike in difficulty
    total = RNG.integers(10, 30, size=240)[:, None] - np.arange(4)
    correct = RNG.binomial(total, skill[:, None] ** np.arange(1, 5))
    rows = np.c_[total[:, 0], RNG.integers(10, 30, size=240), correct, total].astype(np.float64)
    groups = list(np.repeat(np.arange(80), 3))

    def score(s: corpus_sums.Sums) -> float:
        return corpus_sums.bleu(s[0], s[1], list(s[2:6]), list(s[6:]))

    left_out = corpus_sums.jackknife(rows, groups, score)
    drawn = bootstrap.clustered(lambda at: score(rows[at].sum(axis=0)), groups, seed=1, draws=1000)
    alone = corpus_sums.jackknife(rows, range(240), score)
    assert left_out.value == pytest.approx(drawn.value)
    assert left_out.high - left_out.low == pytest.approx(drawn.high - drawn.low, rel=0.12)
    assert left_out.error > 1.3 * alone.error


def test_one_cluster_has_a_value_and_no_interval_and_nothing_has_none() -> None:
    found = corpus_sums.jackknife([[1.0, 2.0], [1.0, 2.0]], ["a", "a"], lambda s: float(s[0] / s[1]))
    assert found.value == 0.5 and math.isnan(found.low) and math.isnan(found.error)
    assert math.isnan(corpus_sums.jackknife(np.zeros((0, 2)), [], lambda s: 1.0).value)
    with pytest.raises(ValueError, match="3 cluster labels"):
        corpus_sums.jackknife([[1.0, 2.0]], ["a", "b", "c"], lambda s: 1.0)


def test_bleu_of_counts_worked_out_by_hand() -> None:
    assert corpus_sums.bleu(4, 4, (4, 3, 2, 1), (4, 3, 2, 1)) == pytest.approx(1.0)
    assert corpus_sums.bleu(4, 8, (4, 3, 2, 1), (4, 3, 2, 1)) == pytest.approx(math.exp(-1))
    halves = (2 / 4) * (1 / 3) * (1 / (2 * 2)) * (1 / (4 * 1))  # two orders without a match: a half, a quarter
    assert corpus_sums.bleu(4, 4, (2, 1, 0, 0), (4, 3, 2, 1)) == pytest.approx(halves**0.25)
    assert corpus_sums.bleu(4, 4, (0, 0, 0, 0), (4, 3, 2, 1)) == 0.0
    assert corpus_sums.bleu(3, 3, (3, 2, 1, 0), (3, 2, 1, 0)) == 0.0
    assert corpus_sums.brevity(0, 3) == 0.0
