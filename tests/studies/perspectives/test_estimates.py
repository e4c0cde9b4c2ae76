"""The study's estimates: influence, clusters, seeds, verdicts."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.rated_sentences import Array
from overtone.studies.perspectives.answers import Key
from overtone.studies.perspectives.design import Job
from overtone.studies.perspectives.estimates import Cell, Estimate, difference, estimate, pearson
from overtone.studies.perspectives.outcomes import Outcome, Reader, cells
from overtone.studies.perspectives.verdicts import verdict

TESTS = {"alpha": 0.05, "equivalence": 0.90}


def test_influence_on_r_is_what_leaving_an_item_out_changes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    r, influence = pearson(x, y)
    assert r == pytest.approx(np.corrcoef(x, y)[0, 1])
    without = np.array([np.corrcoef(np.delete(x, i), np.delete(y, i))[0, 1] for i in range(400)])
    assert np.corrcoef(influence, r - without)[0, 1] > 0.999
    assert influence.sum() == pytest.approx(0, abs=1e-9)


def _cells(
    rng: np.random.Generator, seeds: int, items: int, per_cluster: int, shift: float
) -> dict[tuple[str, int], Cell]:
    """Paired differences with a cluster effect, shared by the seeds, and a seed effect."""
    of_cluster = np.repeat(rng.normal(0, 0.3, items // per_cluster), per_cluster)
    names = np.array([str(i // per_cluster) for i in range(items)])
    out = {}
    for seed in range(seeds):
        values = shift + of_cluster + rng.normal(0, 0.3, items) + rng.normal(0, 0.05)
        out["", seed] = Cell(float(values.mean()), values - values.mean(), names)
    return out


def test_intervals_hold_their_level_with_clusters_and_seeds() -> None:
    rng = np.random.default_rng(1)
    intervals = [estimate(_cells(rng, 5, 400, 8, 0.0)).interval(0.95) for _ in range(300)]
    held = np.mean([low <= 0 <= high for low, high in intervals])
    assert 0.91 < held < 0.985


def test_clusters_widen_the_interval() -> None:
    cells_ = _cells(np.random.default_rng(2), 5, 400, 8, 0.0)
    apart = {at: Cell(c.value, c.influence, np.arange(400)) for at, c in cells_.items()}
    assert estimate(cells_).error > 1.3 * estimate(apart).error


def test_a_fold_per_seed_is_judged_by_the_spread_over_the_folds() -> None:
    values = [0.01, 0.03, 0.02, 0.04, 0.0]
    folds = {(str(i), i): Cell(v, np.zeros(4), np.array(list("abcd"))) for i, v in enumerate(values)}
    e = estimate(folds)
    assert (e.value, e.df) == (pytest.approx(0.02), 4)
    assert e.error == pytest.approx(np.std(values, ddof=1) / np.sqrt(5))


def test_a_difference_uses_the_cells_that_both_arms_have() -> None:
    a = {("g", seed): Cell(0.5, np.array([0.1, -0.1]), np.array(["a", "b"])) for seed in range(3)}
    b = {("g", seed): Cell(0.4, np.array([0.2, -0.2]), np.array(["a", "b"])) for seed in range(1, 5)}
    found = difference(a, b)
    assert sorted(found) == [("g", 1), ("g", 2)]
    assert found["g", 1].value == pytest.approx(0.1) and found["g", 1].influence.tolist() == pytest.approx([-0.1, 0.1])


@pytest.mark.parametrize(
    ("value", "error", "seeds", "expected"),
    [
        (0.03, 0.005, 5, "improves"),
        (-0.03, 0.005, 5, "worse"),
        (0.001, 0.005, 5, "equivalent within ±0.02"),
        (0.01, 0.01, 5, "undecided with 5 seeds"),
        (0.03, 0.005, 1, "undecided with one seed"),
    ],
)
def test_a_verdict_names_what_is_decided(value: float, error: float, seeds: int, expected: str) -> None:
    e = Estimate(value, error, 50, seeds, error**2 / 2, seeds)
    assert verdict(e, e.p, 0.02, TESTS).text.startswith(expected)


def test_the_base_model_is_read_on_the_rows_that_other_arms_were_tested_on(key: Key) -> None:
    rng = np.random.default_rng(3)
    results: dict[Job, dict[str, Array]] = {Job("official", "", "base", 0): {"emobank": rng.random((60, 2, 3))}}
    for seed in range(2):
        job = Job("genre", "blog", "both", seed)
        results[job] = {"emobank": results[Job("official", "", "base", 0)]["emobank"][key.tested(job)]}
    found = cells(results, Outcome("genre V", "r", "genre", True, Reader(key).emobank("V", "r")))
    assert set(found["base"]) == set(found["both"]) == {("blog", 0), ("blog", 1)}
    assert found["base"]["blog", 1].value == pytest.approx(found["both"]["blog", 1].value)


def test_an_option_is_judged_less_its_likelihood_without_the_words(key: Key) -> None:
    questions = key.answers["dream"]
    words = np.full((12, 4), -10.0)
    none = words.copy()
    for i, gold in enumerate(questions.gold):
        none[i, gold] = -20.0  # unlikely by itself, so the words speak for it
    words[1::2, 3] = none[1::2, 3] = -np.inf
    arrays = {"dream/words": words, "dream/none": none}
    job = Job("document", "0", "both", 0)
    assert Reader(key).choice("dream", "words", "less")(arrays, job).value == 1
    assert Reader(key).choice("dream", "words", "sum")(arrays, job).value < 0.5
