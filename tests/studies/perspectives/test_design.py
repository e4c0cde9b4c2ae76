"""The study's arms, splits and jobs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from overtone.errors import DataError
from overtone.rated_sentences import Bank
from overtone.studies.perspectives.design import PROMPTS, TOML, Job, Study, job_rows, labels, soft_digits

ROWS = np.arange(60)


def test_both_learns_each_perspective_under_its_own_prompt(bank: Bank) -> None:
    learnt = labels(bank, "both", ROWS, 0)
    assert PROMPTS["both"] == ("reader", "writer")
    assert np.array_equal(learnt[:, 0], bank.means["reader"])
    assert np.array_equal(learnt[:, 1], bank.means["writer"])


@pytest.mark.parametrize("arm", ["reader", "writer"])
def test_one_perspective_is_learnt_twice_under_its_prompt(bank: Bank, arm: str) -> None:
    learnt = labels(bank, arm, ROWS, 0)
    assert PROMPTS[arm] == (arm, arm)
    assert np.array_equal(learnt[:, 0], bank.means[arm]) and np.array_equal(learnt[:, 1], bank.means[arm])


def test_merged_is_the_mean_of_all_ratings(bank: Bank) -> None:
    learnt = labels(bank, "merged", ROWS, 0)
    n = {who: np.array([len(r) for r in bank.ratings[who]])[:, None] for who in bank.ratings}
    weighted = sum(bank.means[who] * n[who] for who in n) / (n["reader"] + n["writer"])
    assert np.allclose(learnt[:, 0], weighted) and np.array_equal(learnt[:, 0], learnt[:, 1])


def test_matched_is_a_mean_of_two_readers_and_three_writers(bank: Bank) -> None:
    marked = Bank(
        bank.ids, bank.documents, bank.genres, bank.splits, bank.means,
        {"reader": [np.full((5, 3), 1.0)] * 60, "writer": [np.full((5, 3), 4.0)] * 60},
    )  # fmt: skip
    assert np.allclose(labels(marked, "matched", ROWS, 0), (2 * 1 + 3 * 4) / 5)


def test_matched_draws_other_ratings_with_another_seed(bank: Bank) -> None:
    first, again, other = (labels(bank, "matched", ROWS, seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_pseudo_splits_the_pool_into_sets_of_the_original_sizes(bank: Bank) -> None:
    learnt = labels(bank, "pseudo", ROWS, 0)
    for i in ROWS:
        reader, writer = bank.ratings["reader"][i], bank.ratings["writer"][i]
        total = learnt[i, 0] * len(reader) + learnt[i, 1] * len(writer)
        assert np.allclose(total, reader.sum(0) + writer.sum(0))


def test_pseudo_labels_have_no_perspective(bank: Bank) -> None:
    """With readers at 1 and writers at 5, both pseudo sets have the same mean over many seeds."""
    apart = Bank(
        bank.ids, bank.documents, bank.genres, bank.splits, bank.means,
        {"reader": [np.full((5, 3), 1.0)] * 60, "writer": [np.full((5, 3), 5.0)] * 60},
    )  # fmt: skip
    mean = np.mean([labels(apart, "pseudo", ROWS, seed).mean((0, 2)) for seed in range(20)], 0)
    assert abs(mean[0] - mean[1]) < 0.1


def test_shuffled_exchanges_the_labels_of_about_half_the_sentences(bank: Bank) -> None:
    both, shuffled = labels(bank, "both", ROWS, 0), labels(bank, "shuffled", ROWS, 0)
    kept = (shuffled == both).all((1, 2))
    exchanged = (shuffled == both[:, ::-1]).all((1, 2))
    assert (kept | exchanged).all()
    assert 15 < exchanged.sum() < 45


def test_permuted_moves_a_sentences_two_labels_to_another_sentence_together(bank: Bank) -> None:
    both, permuted = labels(bank, "both", ROWS, 0), labels(bank, "permuted", ROWS, 0)
    assert Counter(map(bytes, both)) == Counter(map(bytes, permuted))
    assert (permuted == both).all((1, 2)).sum() < 10


def test_no_document_is_in_two_folds_and_folds_have_about_the_same_size(bank: Bank) -> None:
    folds = bank.folds()
    by_document: dict[str, set[int]] = {}
    for document, fold in zip(bank.clusters, folds, strict=True):
        by_document.setdefault(document, set()).add(int(fold))
    assert all(len(found) == 1 for found in by_document.values())
    assert np.bincount(folds, minlength=5).max() <= 16


def test_a_held_out_genre_is_not_learnt(bank: Bank) -> None:
    learnt, held = job_rows(bank, Job("genre", "blog", "both", 0))
    assert {bank.genres[i] for i in held} == {"blog"} and "blog" not in {bank.genres[i] for i in learnt}
    assert len(learnt) + len(held) == len(bank)


def test_the_seed_names_the_fold_that_is_held_out(bank: Bank) -> None:
    held = [job_rows(bank, Job("document", str(seed), "both", seed))[1] for seed in range(5)]
    assert sorted(np.concatenate(held).tolist()) == list(range(60))


def test_jobs_cover_the_design_once_with_whole_seeds_first() -> None:
    groups = Study.read().jobs(["a", "b", "c", "d", "e", "f", "g"])
    keys = [job.key for group in groups for job in group]
    assert len(keys) == len(set(keys)) == 1 + 5 * (8 + 4 * 7) + 5 * 9 + 5 * 8
    assert all(len({job.group for job in group}) == 1 for group in groups)
    assert [group[0].seed for group in groups[1:41]] == sorted(group[0].seed for group in groups[1:41])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('arms = ["both", "merged", "shuffled", "pseudo"]', 'arms = ["boht"]', "unknown arms: boht"),
        ("seeds = [0, 1, 2, 3, 4]", "seeds = [0, 0]", "a number twice"),
        ("seeds = [0, 1, 2, 3, 4]", 'seeds = "five"', "list of whole numbers"),
        ("alpha = 0.05", "alpha = 5", "`alpha`"),
        ("margin_open = 0.04", "", "`margin_open`"),
        ("steps = 750", "steps = 0", "`steps`"),
        ('control = "merged"', 'control = "mergde"', "unknown arms: mergde"),
        ("[splits.official]", "[splits.oficial]", "the splits must be"),
        ("[tests]", "[test]", r"no table \[tests\]"),
        ("[tests]", "[tests", "not a study file"),
    ],
)
def test_a_damaged_design_is_refused_with_its_reason(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TOML.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=said):
        Study.read(path)


def test_a_missing_design_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.toml"):
        Study.read(tmp_path / "nowhere.toml")


def test_the_design_of_the_published_results_is_unchanged() -> None:
    assert Study.read().sha256.startswith("ba7d1a81f19c")


def test_more_seeds_than_the_file_fixes_are_refused() -> None:
    assert sum(map(len, Study.read().jobs(["a"], seeds=2))) == 1 + 2 * (8 + 4) + 2 * 9 + 2 * 8
    with pytest.raises(DataError, match="fixes 5"):
        Study.read().jobs(["a"], seeds=6)


@pytest.mark.parametrize("label", [1.0, 2.3, 3.0, 4.99, 5.0])
def test_the_expected_soft_digit_is_the_label(label: float) -> None:
    pairs = soft_digits(label)
    assert sum(weight for _, weight in pairs) == pytest.approx(1)
    assert (sum(digit * weight for digit, weight in pairs) + 1) / 2 == pytest.approx(label)
    assert all(1 <= digit <= 9 and weight >= 0 for digit, weight in pairs)
