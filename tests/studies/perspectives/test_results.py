"""Packed results: choices are exact, ratings nearly, and files grow without changing what is in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overtone.errors import DataError
from overtone.studies.perspectives import results as store
from overtone.studies.perspectives.answers import Key
from overtone.studies.perspectives.design import SCORINGS, Job, Study

STUDY = Study("design", {})
RESULTS = Path(__file__).parents[3] / "experiments/perspectives/results"


def _result(key: Key, arm: str, part: str = "1") -> store.Result:
    rng = np.random.default_rng(len(arm) + int(part))
    job = Job("document", part, arm, 1)
    there = key.answers["open"].lengths > 0
    arrays = {
        f"open/{condition}": np.where(there, -rng.exponential(0.3, there.shape), -np.inf).astype(np.float32)
        for condition in ("words", "heard", "told", "none")
    }
    arrays["emobank"] = rng.uniform(1, 5, (20, 2, 3)).astype(np.float32)
    arrays["perplexity"] = rng.uniform(2, 4, 3).astype(np.float32)
    about = {"split": "document", "part": part, "arm": arm, "seed": 1, "tuned": False, "study": "design", "data": "toy"}
    return store.Result(job, about, arrays)


def test_every_choice_is_that_of_the_full_numbers(key: Key, tmp_path: Path) -> None:
    results = [_result(key, arm) for arm in ("both", "merged", "permuted")]
    assert any(len(rows) for r in results for rows in store.exact_rows(r.arrays, key.answers).values())
    store.add(results, tmp_path, key.answers)
    again = store.read(tmp_path, STUDY, "toy")
    questions = key.answers["open"]
    for result in results:
        kept = again[result.job].arrays
        for condition in ("words", "heard", "told"):
            for scoring in SCORINGS:
                before, after = (questions.chosen(a, "open", condition, scoring) for a in (result.arrays, kept))
                assert before.tolist() == after.tolist()
            both = kept[f"open/{condition}"], result.arrays[f"open/{condition}"]
            assert np.array_equal(*map(np.isneginf, both))
            assert np.abs(np.exp(both[0]) - np.exp(both[1])).max() < 0.07
        assert np.abs(kept["emobank"] - result.arrays["emobank"]).max() < 4e-5
        assert np.array_equal(kept["perplexity"], result.arrays["perplexity"])
        assert again[result.job].about == result.about


def test_a_file_grows_without_changing_what_it_has(key: Key, tmp_path: Path) -> None:
    store.add([_result(key, "both")], tmp_path, key.answers)
    first = store.read(tmp_path, STUDY, "toy")
    (path,) = store.add([_result(key, "merged"), _result(key, "both", "2")], tmp_path, key.answers)
    grown = store.read(tmp_path, STUDY, "toy")
    assert len(grown) == 3
    for name, values in first[Job("document", "1", "both", 1)].arrays.items():
        assert np.array_equal(grown[Job("document", "1", "both", 1)].arrays[name], values)
    before = path.read_bytes()
    store.add(grown.values(), tmp_path, key.answers)
    assert path.read_bytes() == before


def test_results_of_other_data_are_refused(key: Key, tmp_path: Path) -> None:
    store.add([_result(key, "both")], tmp_path, key.answers)
    with pytest.raises(DataError, match="another study"):
        store.read(tmp_path, Study("other", {}), "toy")


def test_the_repository_has_the_results_of_this_design() -> None:
    found = [r for path in RESULTS.glob("*.xz") for r in store.read_file(path)]
    assert len({r.job for r in found}) == len(found) >= 105
    assert {r.about["study"] for r in found} == {Study.read().sha256}
    assert len({r.about["data"] for r in found}) == 1
    assert all(r.job.key == r.about["key"] for r in found)


def test_the_base_model_that_rated_more_rows_does_not_share_a_file(key: Key, tmp_path: Path) -> None:
    base = _result(key, "base")
    base.arrays["emobank"] = np.full((30, 2, 3), 3.0, np.float32)
    paths = store.add([_result(key, "both"), base], tmp_path, key.answers)
    assert sorted(path.name for path in paths) == ["base.xz", "document.1.xz"]
    assert len(store.read(tmp_path, STUDY, "toy")[base.job].arrays["emobank"]) == 30
