"""Length and variety of replies: counted by hand, and over many replies from what each score keeps."""

from __future__ import annotations

import random

import pytest

from overtone.metrics.lengths import load
from overtone.results import corpus_scores
from overtone.schema import Score
from tests.metrics.answers import answered, item


def scores(text: str) -> dict[str, Score]:
    return {score.metric: score for score in load().score([answered(item("converse"), text)])[0]}


def test_words_and_characters_are_counted() -> None:
    found = scores("  Well, it's a well-known fact: 3.5!\n")
    assert found["reply_words"].value == 7  # well, it's, a, well-known, fact, 3, 5
    assert found["reply_chars"].value == len("Well, it's a well-known fact: 3.5!")


def test_distinctness_is_different_words_of_all_words() -> None:
    found = scores("no No no, yes no no")
    assert found["reply_distinct_1"].value == pytest.approx(2 / 6)
    assert found["reply_distinct_2"].value == pytest.approx(3 / 5)  # no no, no yes, yes no


def test_a_reply_too_short_is_unscored() -> None:
    assert [(s.value, s.reason) for s in scores("").values()] == [
        (0.0, ""),
        (0.0, ""),
        (None, "fewer than 1 words"),
        (None, "fewer than 2 words"),
    ]
    assert scores("hello")["reply_distinct_1"].value == 1.0
    assert scores("hello")["reply_distinct_2"].value is None


@pytest.mark.parametrize("n", [1, 2])
def test_the_distinctness_of_many_replies_counts_what_they_share_once(n: int) -> None:
    rng = random.Random(5)
    replies = [rng.choices([f"w{i}" for i in range(300)], k=rng.randint(2, 40)) for _ in range(400)]
    grams = [tuple(words[i : i + n]) for words in replies for i in range(len(words) - n + 1)]
    details = [scores(" ".join(words))[f"reply_distinct_{n}"].detail for words in replies]
    found = corpus_scores.distinct([(detail, "script") for detail in details], len(details))
    assert found.value == pytest.approx(len(set(grams)) / len(grams), abs=1e-12)


def test_no_reference_is_needed_and_only_conversation_is_scored() -> None:
    assert all(score.value is not None for score in scores("two words").values())
    assert load().applies(item("converse")) and not load().applies(item("transcribe"))
