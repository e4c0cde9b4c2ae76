"""The study's arms, splits and jobs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from experiments.perspectives.design import PROMPTS, Bank, Job, Study, soft_digits

ROWS = np.arange(60)


def test_both_learns_each_perspective_under_its_own_prompt(bank: Bank) -> None:
    labels = bank.labels("both", ROWS, 0)
    assert PROMPTS["both"] == ("reader", "writer")
    assert np.array_equal(labels[:, 0], bank.means["reader"])
    assert np.array_equal(labels[:, 1], bank.means["writer"])


@pytest.mark.parametrize("arm", ["reader", "writer"])
def test_one_perspective_is_learnt_twice_under_its_prompt(bank: Bank, arm: str) -> None:
    labels = bank.labels(arm, ROWS, 0)
    assert PROMPTS[arm] == (arm, arm)
    assert np.array_equal(labels[:, 0], bank.means[arm]) and np.array_equal(labels[:, 1], bank.means[arm])


def test_merged_is_the_mean_of_all_ratings(bank: Bank) -> None:
    labels = bank.labels("merged", ROWS, 0)
    n = {who: np.array([len(r) for r in bank.ratings[who]])[:, None] for who in bank.ratings}
    weighted = sum(bank.means[who] * n[who] for who in n) / (n["reader"] + n["writer"])
    assert np.allclose(labels[:, 0], weighted) and np.array_equal(labels[:, 0], labels[:, 1])


def test_matched_is_a_mean_of_two_readers_and_three_writers(bank: Bank) -> None:
    marked = Bank(
        bank.ids, bank.documents, bank.genres, bank.splits, bank.means,
        {"reader": [np.full((5, 3), 1.0)] * 60, "writer": [np.full((5, 3), 4.0)] * 60},
    )  # fmt: skip
    assert np.allclose(marked.labels("matched", ROWS, 0), (2 * 1 + 3 * 4) / 5)


def test_matched_draws_other_ratings_with_another_seed(bank: Bank) -> None:
    first, again, other = (bank.labels("matched", ROWS, seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_pseudo_splits_the_pool_into_sets_of_the_original_sizes(bank: Bank) -> None:
    labels = bank.labels("pseudo", ROWS, 0)
    for i in ROWS:
        reader, writer = bank.ratings["reader"][i], bank.ratings["writer"][i]
        total = labels[i, 0] * len(reader) + labels[i, 1] * len(writer)
        assert np.allclose(total, reader.sum(0) + writer.sum(0))


def test_pseudo_labels_have_no_perspective(bank: Bank) -> None:
    """With readers at 1 and writers at 5, both pseudo sets have the same mean over many seeds."""
    apart = Bank(
        bank.ids, bank.documents, bank.genres, bank.splits, bank.means,
        {"reader": [np.full((5, 3), 1.0)] * 60, "writer": [np.full((5, 3), 5.0)] * 60},
    )  # fmt: skip
    mean = np.mean([apart.labels("pseudo", ROWS, seed).mean((0, 2)) for seed in range(20)], 0)
    assert abs(mean[0] - mean[1]) < 0.1


def test_shuffled_exchanges_the_labels_of_about_half_the_sentences(bank: Bank) -> None:
    both, shuffled = bank.labels("both", ROWS, 0), bank.labels("shuffled", ROWS, 0)
    kept = (shuffled == both).all((1, 2))
    exchanged = (shuffled == both[:, ::-1]).all((1, 2))
    assert (kept | exchanged).all()
    assert 15 < exchanged.sum() < 45


def test_permuted_moves_a_sentences_two_labels_to_another_sentence_together(bank: Bank) -> None:
    both, permuted = bank.labels("both", ROWS, 0), bank.labels("permuted", ROWS, 0)
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
    learnt, held = bank.rows(Job("genre", "blog", "both", 0))
    assert {bank.genres[i] for i in held} == {"blog"} and "blog" not in {bank.genres[i] for i in learnt}
    assert len(learnt) + len(held) == len(bank)


def test_the_seed_names_the_fold_that_is_held_out(bank: Bank) -> None:
    held = [bank.rows(Job("document", str(seed), "both", seed))[1] for seed in range(5)]
    assert sorted(np.concatenate(held).tolist()) == list(range(60))


def test_jobs_cover_the_design_once_with_whole_seeds_first() -> None:
    groups = Study.read().jobs(["a", "b", "c", "d", "e", "f", "g"])
    keys = [job.key for group in groups for job in group]
    assert len(keys) == len(set(keys)) == 1 + 5 * (8 + 4 * 7) + 5 * 9 + 5 * 8
    assert all(len({job.group for job in group}) == 1 for group in groups)
    assert [group[0].seed for group in groups[1:41]] == sorted(group[0].seed for group in groups[1:41])


def test_a_design_with_an_unknown_arm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('[arms]\nboth = ""\n[splits.genre]\narms = ["boht"]\n')
    with pytest.raises(ValueError, match="boht"):
        Study.read(path)


@pytest.mark.parametrize("label", [1.0, 2.3, 3.0, 4.99, 5.0])
def test_the_expected_soft_digit_is_the_label(label: float) -> None:
    pairs = soft_digits(label)
    assert sum(weight for _, weight in pairs) == pytest.approx(1)
    assert (sum(digit * weight for digit, weight in pairs) + 1) / 2 == pytest.approx(label)
    assert all(1 <= digit <= 9 and weight >= 0 for digit, weight in pairs)
