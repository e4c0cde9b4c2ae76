"""ROUGE-L: parity with rouge_score, with and without stems, and what happens at the edges."""

from __future__ import annotations

import pytest

from overtone.metrics._porter import stem
from overtone.metrics.rouge import load
from overtone.schema import Score
from tests.metrics.answers import answered, item
from tests.metrics.words import words


def scores(reply: str, reference: str) -> dict[str, Score]:
    row = load().score([answered(item("converse", references=(reference,)), reply)])[0]
    return {score.metric: score for score in row}


@pytest.mark.parametrize("metric", ["rouge_l", "rouge_l_stemmed"])
def test_each_of_1500_pairs_has_rouge_scores_value(metric: str) -> None:
    expected = words().values(metric)
    assert len(expected) > 1400 and sum(0 < value < 1 for *_, value in expected) > 500
    for reply, reference, value in expected:
        assert scores(reply, reference)[metric].value == pytest.approx(value, abs=1e-6), (reply, reference)


def test_stems_equal_nltks() -> None:
    expected = words().stems
    assert len(expected) > 1000
    assert {word: stem(word) for word in expected} == expected


def test_stemming_tells_the_two_scores_apart() -> None:
    both = scores("he walks happily", "he walked happily")
    assert both["rouge_l"].value == pytest.approx(2 / 3) and both["rouge_l_stemmed"].value == pytest.approx(1.0)
    assert both["rouge_l"].detail == {"common": 2, "reply_words": 3, "reference_words": 3}
    assert "|stem:no|" in both["rouge_l"].signature and "|stem:porter" in both["rouge_l_stemmed"].signature


def test_a_reply_without_words_has_zero_and_no_reference_is_unscored() -> None:
    assert [s.value for s in scores("?!", "some words").values()] == [0.0, 0.0]
    row = load().score([answered(item("converse", references=(" ",)), "words")])[0]
    assert [(s.value, s.reason) for s in row] == [(None, "no reference")] * 2


def test_only_conversation_is_scored() -> None:
    assert load().applies(item("converse")) and not load().applies(item("transcribe"))
