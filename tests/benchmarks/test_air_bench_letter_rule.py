"""AIR-Bench's way of seeing a letter in a reply, quirk by quirk."""

from __future__ import annotations

import msgspec
import pytest

from overtone.benchmarks.air_bench.letter_rule import letter, load
from tests.metrics.answers import answered, item

QUESTION = msgspec.structs.replace(item("choose", options=("dog", "cat", "cow"), gold="B"), benchmark="air-bench")


@pytest.mark.parametrize(
    ("reply", "seen"),
    [
        ("B", "B"),
        ("B. cat", "B"),
        (" \n B", "B"),
        ("A dog barks, so B", "A"),  # a first word that is a letter decides
        ("Barking", "B"),  # and so does one that begins with it
        ("The answer is B.", "B"),
        ("The answer is: [B]", "B"),
        ("The answer is B", ""),  # the last character is not looked at
        ("The answer is:\nB.", "B"),
        ("b", ""),
        ("b.", ""),
        ("None", ""),
        ("", ""),
        ("E", ""),
    ],
)
def test_the_first_character_else_the_last_but_one(reply: str, seen: str) -> None:
    assert letter(reply) == seen


def test_what_shows_no_letter_is_skipped_and_not_wrong() -> None:
    values = [load().score([answered(QUESTION, text)])[0][0].value for text in ("B", "C", "A cat", "It is a cat")]
    assert values == [1.0, 0.0, 0.0, None]
    assert "skipped" in load().score([answered(QUESTION, "It is a cat")])[0][0].reason


def test_only_questions_are_scored() -> None:
    assert load().applies(QUESTION)
    assert not load().applies(msgspec.structs.replace(item("converse"), benchmark="air-bench"))
    unknown = msgspec.structs.replace(QUESTION, gold="")
    assert load().score([answered(unknown, "B")])[0][0].reason == "no gold answer"
