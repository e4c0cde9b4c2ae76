"""The corrected mean: its formula, its limits, its coverage by simulation, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.coverage import FROM, LABELLED, PAGE, REQUIRED, SETTINGS, TRUTH, Setting, draw, legend, measure, name, totals
from overtone.stats import cluster, ppi
from overtone.stats.binomial import at_most

REPLICATES = 300


def run(seed: int = 0, scripts: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Human scores, the judge's, and clusters of three."""
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 6, scripts * 3).astype(float)
    judge = np.clip(human + rng.integers(0, 3, human.size), 1, 5)
    return human, judge, np.repeat(np.arange(scripts), 3)


def test_the_value_is_the_labels_mean_moved_by_what_the_judge_sees_elsewhere() -> None:
    human, judge, ids = run()
    some = ids < 50
    found = ppi.mean(judge, list(ids), judge[some], human[some], list(ids[some]))
    moved = human[some].mean() + found.weight * (judge.mean() - judge[some].mean())
    assert found.value == pytest.approx(moved)
    assert 0.5 < found.weight <= 1
    assert found.low < human.mean() < found.high < judge.mean(), "the judge is too kind"
    assert found.high - found.low < found.human_only.high - found.human_only.low
    assert (found.rows, found.labelled, found.clusters, found.labelled_clusters) == (600, 150, 200, 50)
    assert found.judge_only == cluster.mean(judge, list(ids))
    assert found.human_only == cluster.mean(human[some], list(ids[some]))


def test_the_weight_makes_the_variance_least() -> None:
    human, judge, ids = run(scripts=400)
    some = ids < 100
    found = ppi.mean(judge, list(ids), judge[some], human[some], list(ids[some]))

    def error(weight: float) -> float:
        n, rows = some.sum(), ids.size
        mixed = human - weight * judge
        pull = np.where(some, (mixed - mixed[some].mean()) / n, 0) + weight * (judge - judge.mean()) / rows
        return cluster.clustered_error(pull, list(ids))

    best = min(np.linspace(0, 1, 201), key=error)
    assert found.weight == pytest.approx(best, abs=0.006)
    assert error(found.weight) <= found.error < 1.1 * error(found.weight)


def test_with_every_row_labelled_the_judge_is_not_used() -> None:
    human, judge, ids = run(scripts=60)
    found = ppi.mean(judge, list(ids), judge, human, list(ids))
    assert (found.weight, found.value) == (0, pytest.approx(human.mean()))
    assert found.error == pytest.approx(found.human_only.error, rel=0.06)


def test_a_judge_that_says_nothing_or_the_opposite_leaves_the_labels_mean() -> None:
    human, _, ids = run()
    some = ids < 60
    for useless in (np.full(human.size, 3.0), 6 - human):
        found = ppi.mean(useless, list(ids), useless[some], human[some], list(ids[some]))
        assert (found.weight, found.value) == (0, pytest.approx(human[some].mean()))
        assert found.error < 1.1 * found.human_only.error


def test_a_perfect_judge_is_as_good_as_labelling_nearly_everything_but_never_certain() -> None:
    human, _, ids = run()
    some = ids < 100
    found = ppi.mean(human, list(ids), human[some], human[some], list(ids[some]))
    assert (found.weight, found.value) == (1, pytest.approx(human.mean()))
    assert found.judge_only.error < found.error < 1.1 * found.judge_only.error
    same = ppi.mean([4.0] * 600, list(ids), [4.0] * 300, [4.0] * 299 + [5.0], list(ids[some]))
    assert same.error >= 1 / 300, "one slip more may always come"


def test_a_shift_or_another_unit_of_the_scores_changes_the_result_alike_and_a_biased_judge_changes_nothing() -> None:
    human, judge, ids = run()
    some = ids < 50
    plain, other = list(ids), list(ids[some])
    found = ppi.mean(judge, plain, judge[some], human[some], other)
    kinder = ppi.mean(judge + 2, plain, judge[some] + 2, human[some], other)
    assert (kinder.value, kinder.low, kinder.weight) == pytest.approx((found.value, found.low, found.weight))
    scaled = ppi.mean(10 * judge, plain, 10 * judge[some], 10 * human[some] + 1, other)
    assert (scaled.value, scaled.high) == pytest.approx((10 * found.value + 1, 10 * found.high + 1))
    order = np.random.default_rng(0).permutation(ids.size)
    mixed = ppi.mean(judge[order], list(ids[order]), judge[some], human[some], other)
    assert (mixed.value, mixed.error) == pytest.approx((found.value, found.error))


def test_ten_copies_of_every_row_add_no_certainty() -> None:
    human, judge, ids = run()
    some = ids < 50
    once = ppi.mean(judge, list(ids), judge[some], human[some], list(ids[some]))
    copied = [np.tile(x, 10) for x in (judge, ids, judge[some], human[some], ids[some])]
    many = ppi.mean(copied[0], list(copied[1]), copied[2], copied[3], list(copied[4]))
    assert (many.value, many.weight) == pytest.approx((once.value, once.weight))
    assert many.error == pytest.approx(once.error, rel=1e-6)


def test_labels_from_elsewhere_are_taken_as_clusters_of_their_own() -> None:
    human, judge, ids = run()
    some = ids < 50
    found = ppi.mean(judge[~some], list(ids[~some]), judge[some], human[some], list(ids[some]))
    assert (found.rows, found.clusters, found.labelled_clusters) == (450, 150, 50)
    assert found.low < human.mean() < found.high


def test_the_bench_and_the_function_compute_the_same() -> None:
    rng = np.random.default_rng(1)
    human, judge, there = draw(rng, Setting("moody", 0.5, rows=200), 2, 100)
    value, error, weight = ppi.solve(totals(human, judge, there, 20, partly=False), 1.0)
    for at in range(2):
        clusters, places = np.nonzero(there[at])
        y, f = human[at][clusters, places].astype(float), judge[at][clusters, places].astype(float)
        some = clusters < 20
        found = ppi.mean(f, list(clusters), f[some], y[some], list(clusters[some]))
        assert (found.value, found.error, found.weight) == pytest.approx((value[at], error[at], weight[at]))


@pytest.mark.parametrize("setting", [s for s in SETTINGS if s.rows == 2000 and s.alike == 0.5], ids=name)
def test_the_interval_covers_the_truth_with_two_hundred_labelled_clusters(setting: Setting) -> None:
    found = measure(setting, REPLICATES, seed=5, labelled=(200,))[200]
    hits = int(sum(found.hits))
    assert at_most(hits, REPLICATES, 0.95) > 0.001, f"{hits} of {REPLICATES}"
    assert hits / REPLICATES < 0.995, "an interval that always holds the truth is too wide"


def test_the_simulation_would_notice_an_interval_that_forgets_the_judges_error() -> None:
    rng = np.random.default_rng(2)
    _, judge, there = draw(rng, Setting("biased", 0.5), REPLICATES, 1000)
    judged = (judge * there).sum((1, 2)) / there.sum((1, 2))
    assert (np.abs(judged - TRUTH) > 0.2).all(), "the judge alone is far off"
    assert at_most(round(0.90 * REPLICATES), REPLICATES, 0.95) < 0.001, "300 replicates can tell 90 % from 95 %"


def test_the_page_shows_every_setting_and_keeps_its_promise() -> None:
    page = PAGE.read_text()
    assert legend() in page
    for setting in SETTINGS:
        row = next(line for line in page.splitlines() if line.startswith(f"| {name(setting)} |"))
        shown = [float(cell.split("%")[0]) for cell in row.split("|")[2:-1]]
        assert len(shown) == len(LABELLED)
        assert all(share >= 100 * REQUIRED for share, count in zip(shown, LABELLED, strict=True) if count >= FROM), row


def test_too_few_labels_and_bad_numbers_are_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"labels in 1 cluster: .* at least two clusters"):
        ppi.mean([1, 2, 3], "abc", [1, 2], [1, 2], "aa")
    with pytest.raises(ValueError, match="labels in 0 clusters"):
        ppi.mean([1, 2, 3], "abc", [], [], "")
    with pytest.raises(ValueError, match="judge first"):
        ppi.mean([], "", [1, 2], [1, 2], "ab")
    with pytest.raises(ValueError, match="human labels include a number that is not finite"):
        ppi.mean([1, 2, 3], "abc", [1, 2], [1, math.nan], "ab")
    with pytest.raises(ValueError, match="all three for every labelled row"):
        ppi.mean([1, 2, 3], "abc", [1, 2], [1], "ab")
    with pytest.raises(ValueError, match="3 judge scores but 2 cluster labels"):
        ppi.mean([1, 2, 3], "ab", [1, 2], [1, 2], "ab")
    with pytest.raises(ValueError, match="outside 1 to 5"):
        ppi.mean([1, 2, 3], "abc", [1, 2], [1, 7], "ab", scale=(1, 5))
