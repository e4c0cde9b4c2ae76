from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from overtone.benchmarks import Selection
from overtone.benchmarks.emobank import SUITE, load
from overtone.benchmarks.emobank.bank_files import read_bank
from overtone.benchmarks.emobank.ceilings import gap_ceilings, rater_ceilings
from overtone.benchmarks.emobank.rating_questions import asked
from overtone.schema import Condition
from overtone.tasks import conditions, load_prompts, rate


def test_each_sentence_is_asked_from_both_perspectives_in_the_words_of_training(small: Path) -> None:
    benchmark = load(small)
    items = list(benchmark.items(Selection()))
    assert len(items) == 60 and len({item.id for item in items}) == 60
    prompts = load_prompts("any", benchmark.prompts)
    for item, who in zip(items[:2], ("reader", "writer"), strict=True):
        assert [c.name for c in conditions(item, ("task", "likelihood"), ("audio",))] == [
            "task/transcript",
            "likelihood/transcript",
        ]
        (message,) = rate.messages(item, Condition.parse("task/transcript"), 0, (), None, prompts)
        assert message.parts == (asked(who, "Sentence s0."),)
        assert load_prompts("any", {}).texts["rate.user"] == prompts.texts["rate.user"]
        assert [len(step) for step in rate.continuations(item)] == [9, 9, 9]
    first = items[0]
    assert (first.source, first.topic, first.group) == ("test", "letters", "letters 0")
    assert first.references == (" ".join(f"{v:g}" for v in read_bank(small).means["reader"][0]),)


@pytest.mark.shared
def test_released_data_has_the_known_numbers(released: Path) -> None:
    bank = read_bank(released)
    assert len(bank) == 10_062 and [bank.splits.count(s) for s in ("train", "dev", "test")] == [8062, 1000, 1000]
    r = [np.corrcoef(bank.means["reader"][:, d], bank.means["writer"][:, d])[0, 1] for d in range(3)]
    assert r == pytest.approx([0.661, 0.296, 0.224], abs=0.0006)
    reader, writer = rater_ceilings(bank, "reader"), rater_ceilings(bank, "writer")
    assert reader == pytest.approx([0.840, 0.563, 0.559], abs=0.003)
    assert writer == pytest.approx([0.801, 0.536, 0.498], abs=0.003)
    assert gap_ceilings(bank) == pytest.approx([0.24, 0.0, 0.23], abs=0.006)
    (_, shown), *_ = SUITE.published[0].rows
    assert shown == pytest.approx([*reader, *writer], abs=0.0006)
    for who, dropped in (("reader", 5130), ("writer", 4809)):
        with (released / f"individual_{who}_ratings.csv").open(newline="") as file:
            assert sum([row["V"], row["A"], row["D"]] == ["1"] * 3 for row in csv.DictReader(file)) == dropped


@pytest.mark.shared
def test_every_official_test_document_is_also_learnt_from(released: Path) -> None:
    bank = read_bank(released)
    learnt, held = bank.rows("official")
    assert {bank.documents[i] for i in held} <= {bank.documents[i] for i in learnt}
    for fold in range(5):
        learnt, held = bank.rows("document", str(fold))
        assert not {bank.clusters[i] for i in held} & {bank.clusters[i] for i in learnt}
