"""MMAU's string match, quirk by quirk."""

from __future__ import annotations

import msgspec
import pytest

from overtone.benchmarks.mmau.word_match import load, tokens
from tests.metrics.answers import answered, item

CHOICES = ("A child", "A woman", "An adult man", "A teenager")


def matches(text: str, choices: tuple[str, ...] = CHOICES, answer: str = "A child") -> float | None:
    made = msgspec.structs.replace(item("choose", options=choices), benchmark="mmau", references=(answer,))
    (score,) = load().score([answered(made, text)])[0]
    assert score.metric == "mmau_match" and score.signature == "mmau_match|v1"
    return score.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A child", 1.0),
        ("a CHILD!", 1.0),
        ("I hear a child laughing", 1.0),
        ("child", 0.0),  # the article is a word of the answer
        ("A", 0.0),  # a bare letter
        ("(A) A child", 1.0),
        ("A child, not a woman", 0.0),  # what is ruled out counts as chosen
        ("A woman", 0.0),
        ("", 0.0),
        ("…", 0.0),
        ("A child or an adolescent", 0.0),  # 'an' is a word of a wrong choice only
    ],
)
def test_all_words_of_the_answer_and_none_of_wrong_choices_alone(text: str, value: float) -> None:
    assert matches(text) == value


def test_words_that_right_and_wrong_choices_share_do_no_harm() -> None:
    keys = ("C major", "C minor", "G major")
    assert matches("C major", keys, "C major") == 1.0
    assert matches("B. C minor", keys, "C minor") == 1.0
    assert matches("G. C minor", keys, "C minor") == 0.0, "a letter before the option is a word like others"


def test_a_choice_of_the_same_words_is_the_answer_too() -> None:
    assert matches("woman and child", ("woman and child", "child and woman", "dog"), "woman and child") == 1.0


def test_words_are_unicode_and_underscores_join() -> None:
    assert tokens("Café, naïve_art 7th") == {"café", "naïve_art", "7th"}


def test_the_detail_says_what_was_missing_and_what_was_foreign() -> None:
    made = msgspec.structs.replace(item("choose", options=CHOICES), benchmark="mmau", references=("A child",))
    (score,) = load().score([answered(made, "A woman")])[0]
    assert score.detail == {"lacks": "child", "foreign": "woman"}


def test_a_hidden_answer_is_unscored() -> None:
    made = msgspec.structs.replace(item("choose", options=CHOICES), benchmark="mmau")
    (score,) = load().score([answered(made, "A child")])[0]
    assert (score.value, score.reason) == (None, "the answer is hidden")
