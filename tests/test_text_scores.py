"""Metrics of text pairs as functions: the numbers of the metrics that runs use, with the parts behind them."""

from __future__ import annotations

import jiwer
import pytest

import overtone
from overtone.errors import UsageError
from overtone.metrics import bleu, wer

REFERENCES = ["the cat sat on the mat", "hello there general", "she sells sea shells by the shore"]
HYPOTHESES = ["the cat sat on mat", "hello their general kenobi", "she sells sea shells by the shore"]


def test_wer_is_the_rate_of_the_whole_corpus_with_its_counts() -> None:
    found = overtone.wer(REFERENCES, HYPOTHESES, normalise=False)
    expected = jiwer.process_words(REFERENCES, HYPOTHESES)
    assert found.value == float(found) == pytest.approx(expected.wer)
    assert (found.substitutions, found.deletions, found.insertions, found.hits) == (
        expected.substitutions,
        expected.deletions,
        expected.insertions,
        expected.hits,
    )
    assert found.reference_words == 16
    assert found.pairs == len(found.scores) == 3
    assert found.signature == wer.RAW
    assert "substitutions=1" in repr(found)


def test_wer_normalises_by_default_and_counts_characters_in_chinese() -> None:
    assert overtone.wer("I'm here!", "I am here").value == 0
    assert overtone.wer("今天天气很好", "今天天汽很好").value == pytest.approx(1 / 6)


def test_bleu_has_the_corpus_score_its_precisions_and_the_mean_of_sentences() -> None:
    found = overtone.bleu(REFERENCES, HYPOTHESES)
    assert found.signature == bleu.CORPUS
    assert found.precisions[0] == pytest.approx(14 / 16)
    assert found.mean == pytest.approx(
        sum(overtone.bleu(r, h).mean for r, h in zip(REFERENCES, HYPOTHESES, strict=True)) / 3
    )
    assert 0 < found.value < 1
    assert overtone.bleu(REFERENCES, REFERENCES).value == pytest.approx(1)


def test_rouge_l_has_precision_and_recall() -> None:
    found = overtone.rouge_l("the cat sat on the mat", "the cat sat on mat")
    assert (found.precision, found.recall) == (1.0, pytest.approx(5 / 6))
    assert found.value == pytest.approx(10 / 11)
    assert overtone.rouge_l("he jumps", "he jumped", stemmed=True).value == 1


@pytest.mark.local
def test_bertscore_has_precision_and_recall() -> None:
    found = overtone.bertscore(REFERENCES, HYPOTHESES)
    assert 0.5 < found.precision < 1
    assert 0.5 < found.recall < 1
    assert found.scores[2].value == pytest.approx(1, abs=1e-5)


def test_a_pair_that_cannot_be_scored_has_a_reason_and_does_not_count() -> None:
    found = overtone.wer(["a b", ""], ["a c", "x"])
    assert found.value == 0.5
    assert (found.scores[1].value, found.scores[1].reason) == (None, "empty reference")


@pytest.mark.parametrize(
    ("references", "hypotheses", "message"),
    [
        ([], [], "no texts"),
        ("a", ["b", "c"], "1 references but 2 hypotheses"),
        ([1], ["a"], r"references\[0\] is int"),
        ("", "a", "empty reference"),
    ],
)
def test_unusable_texts_are_refused(references: object, hypotheses: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        overtone.wer(references, hypotheses)  # type: ignore[arg-type]
