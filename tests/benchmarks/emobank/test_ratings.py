from __future__ import annotations

import math

import pytest

from overtone.benchmarks.emobank.ratings import DIMENSIONS, expected_digit, load, read_rating
from overtone.metrics import Answered
from overtone.schema import Item, Key, Likelihood, Turn


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("5 3 6", [5, 3, 6]),
        ("5, 3.5, 6.", [5, 3.5, 6]),
        ("Valence: 5, Arousal: 3, Dominance: 6", [5, 3, 6]),
        ("Dominance: 6\nValence: 5\nArousal: 3", [5, 3, 6]),
        ('{"valence": 5, "arousal": 3, "dominance": 6}', [5, 3, 6]),
        ("V=5 A=3 D=6", [5, 3, 6]),
        ("On a scale from 1 to 9: valence is 5/9, arousal is 3/9, dominance is 6/9.", [5, 3, 6]),
        ("There are 2 people here. **Valence:** 5; **Arousal:** 3; **Dominance:** 6", [5, 3, 6]),
    ],
)
def test_answers_with_three_numbers_are_read(answer: str, numbers: list[float]) -> None:
    assert read_rating(answer) == numbers


@pytest.mark.parametrize("answer", ["", "5 3", "5 3 6 2", "very happy", "10 3 6", "0 3 6", "-5 3 6", "536"])
def test_other_answers_are_unreadable_with_a_reason(answer: str) -> None:
    reason = read_rating(answer)
    assert isinstance(reason, str) and reason.startswith("unreadable")


def _answered(text: str, likelihoods: tuple[tuple[Likelihood, ...], ...] = ()) -> Answered:
    item = Item.of("emobank", "s1", "rate", Turn(None, "Hello."), references=("3 2.5 4",))
    return Answered(Key(item.id, "task/transcript", 0, 0), item, text, likelihoods=likelihoods)


def test_a_digit_is_moved_to_the_scale_from_one_to_five() -> None:
    scores = load().one(_answered("1 5 9"))
    assert [score.metric for score in scores] == list(DIMENSIONS)
    assert [score.value for score in scores] == [1, 3, 5]
    assert [score.detail["people"] for score in scores] == [3, 2.5, 4]


def test_an_unreadable_answer_is_unscored() -> None:
    assert [(score.value, bool(score.reason)) for score in load().one(_answered("no"))] == [(None, True)] * 3


def test_likelihoods_give_the_expected_digit_and_not_the_text() -> None:
    step = tuple(Likelihood(math.log(p), 1) for p in (0.05, 0, 0, 0, 0, 0, 0, 0, 0.15) if p) or ()
    assert len(step) == 2
    whole = tuple(Likelihood(math.log(0.05) if d == 1 else math.log(0.15) if d == 9 else -1e9, 1) for d in range(1, 10))
    assert expected_digit(whole) == pytest.approx(0.25 * 1 + 0.75 * 9)
    assert load().one(_answered("1 1 1", (whole,) * 3))[0].value == pytest.approx(4.0)
