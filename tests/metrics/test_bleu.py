"""BLEU: parity with NLTK's sentence score and sacreBLEU's corpus score, and what happens at the edges."""

from __future__ import annotations

import pytest

from overtone.metrics._sentences import sentences
from overtone.metrics._treebank import words as tokens
from overtone.metrics.bleu import load, tokens_13a
from overtone.results import corpus_scores
from overtone.schema import Score, Turn
from tests.metrics.answers import answered, item
from tests.metrics.words import words


def scores(reply: str, reference: str) -> dict[str, Score]:
    row = load().score([answered(item("converse", references=(reference,)), reply)])[0]
    return {score.metric: score for score in row}


@pytest.mark.parametrize("metric", ["bleu", "bleu_corpus"])
def test_each_of_1500_pairs_has_the_value_of_the_reference_library(metric: str) -> None:
    expected = words().values(metric)
    assert len(expected) > 1400 and sum(0 < value < 1 for *_, value in expected) > 500
    for reply, reference, value in expected:
        assert scores(reply, reference)[metric].value == pytest.approx(value, abs=1e-6), (reply, reference)


def test_corpus_values_are_computed_from_details_as_sacrebleu_computes_them() -> None:
    found = words()
    assert max(size for _, size, _ in found.corpora) == 1500
    for start, size, value in found.corpora:
        part = [pair for pair in found.pairs[start : start + size] if str(pair[1]).strip()]
        details = [scores(str(pair[0]), str(pair[1]))["bleu_corpus"].detail for pair in part]
        rows = [(detail, "script") for detail in details]
        assert corpus_scores.bleu(rows, size).value == pytest.approx(value, abs=1e-6), (start, size)


def test_tokens_equal_nltks() -> None:
    for text, expected in words().tokens.items():
        assert tokens(text.lower()) == expected, text


def test_only_the_last_full_stop_of_a_sentence_stands_alone() -> None:
    assert tokens("mr. smith left. he can't stay.") == ["mr.", "smith", "left", ".", "he", "ca", "n't", "stay", "."]
    assert sentences('he left at 5. it rained. "really?" (yes.) no') == [
        "he left at 5. it rained.",
        '"really?"',
        "(yes.)",
        "no",
    ]


def test_13a_parts_symbols_but_not_numbers_or_apostrophes() -> None:
    assert tokens_13a("It's 1,000.5-2 &quot;ok&quot;, a.b  ") == [
        "It's",
        "1,000.5",
        "-",
        "2",
        '"',
        "ok",
        '"',
        ",",
        "a",
        ".",
        "b",
    ]


def test_an_empty_reply_has_zero_and_no_reference_is_unscored() -> None:
    assert [s.value for s in scores(" \n", "some words").values()] == [0.0, 0.0]
    for references in ((), ("",), (" ",)):
        row = load().score([answered(item("converse", references=references), "words")])[0]
        assert [(s.metric, s.value, s.reason) for s in row] == [
            ("bleu", None, "no reference"),
            ("bleu_corpus", None, "no reference"),
        ]


def test_the_same_words_have_one_and_case_counts_only_in_the_corpus_score() -> None:
    both = scores("HOW ARE YOU TODAY", "how are you today")
    assert both["bleu"].value == pytest.approx(1.0) and both["bleu_corpus"].value == 0.0
    assert [both["bleu"].detail[f"correct_{n}"] for n in (1, 2, 3, 4)] == [4, 3, 2, 1]


def test_each_turn_of_a_dialogue_is_compared_with_its_own_reference() -> None:
    of = item("converse", references=("nothing in common",))
    of = type(of)(
        **{f: getattr(of, f) for f in of.__struct_fields__} | {"turns": (Turn(None, reference="one two three four"),)}
    )
    assert load().score([answered(of, "one two three four")])[0][0].value == pytest.approx(1.0)


def test_a_score_says_how_it_was_computed() -> None:
    both = scores("a", "a")
    assert both["bleu"].signature == (
        "bleu|v2|n:4|smooth:method1|tok:like-nltk-3.10,other=13a,unspaced=char|case:lower|empty:0"
    )
    assert both["bleu_corpus"].signature.startswith("bleu_corpus|v2|n:4|smooth:exp|tok:13a,unspaced=char|case:mixed")


def test_only_conversation_is_scored() -> None:
    assert load().applies(item("converse"))
    assert not load().applies(item("choose")) and not load().applies(item("transcribe"))
