"""Accuracy: right or wrong for every answered question, and its summary with chance, bounds and failures."""

from __future__ import annotations

import pytest

from overtone.metrics.choice import Asked, load, summarise_accuracy
from tests.metrics.answers import answered, item

QUESTION = item("choose", options=("surprise", "fear", "disgust", "happiness"), gold="B")


def both(text: str, refused: bool = False) -> tuple[float | None, float | None]:
    first, second = load().score([answered(QUESTION, text, refused)])[0]
    assert (first.metric, second.metric) == ("accuracy", "accuracy_strict")
    return first.value, second.value


def test_a_reply_in_the_format_is_right_both_ways() -> None:
    assert both("The answer is: [B]") == (1.0, 1.0)
    assert both("The answer is: [C]") == (0.0, 0.0)


def test_a_verbose_reply_is_right_leniently_only() -> None:
    assert both("The voice trembles, so I'd go with option B.") == (1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("It's either A or B.", "hedged"),
        ("I can't listen to audio.", "refused"),
        ("The answer is: [E]", "beyond"),
        ("Lovely weather today.", "unparsable"),
        ("", "empty"),
    ],
)
def test_an_answer_that_makes_no_choice_is_wrong_with_its_status(text: str, status: str) -> None:
    score = load().score([answered(QUESTION, text)])[0][0]
    assert score.value == 0.0
    assert (score.detail["status"], score.detail["answer"], score.detail["gold"]) == (status, None, "B")


def test_the_endpoints_refusal_outranks_the_text() -> None:
    assert both("B", refused=True) == (0.0, 0.0)


def test_detail_holds_the_chosen_options_provenance() -> None:
    score = load().score([answered(QUESTION, "The answer is: [C]")])[0][0]
    assert score.detail["provenance"] == "words"
    assert score.detail["options"] == 4
    assert score.signature == "accuracy|v1|extract:lenient-1"


def test_a_question_without_gold_is_unscored() -> None:
    for score in load().score([answered(item("choose", options=("x", "y")), "A")])[0]:
        assert (score.value, score.reason) == (None, "no gold answer")


def test_only_choices_are_scored() -> None:
    assert load().applies(QUESTION) and not load().applies(item("converse"))


def test_the_summary_counts_wrong_missing_and_unread_apart() -> None:
    rows = [
        Asked("q1", "emotion", 4, True, "parsed"),
        Asked("q1", "emotion", 4, False, "parsed"),
        Asked("q2", "emotion", 4, False, "hedged"),
        Asked("q3", "gender", 2, True, "parsed"),
        Asked("q4", "gender", 2),
    ]
    s = summarise_accuracy(rows)
    assert (s.n_asked, s.n_answered, s.n_missing, s.n_parsed, s.n_right) == (5, 4, 1, 3, 2)
    assert s.accuracy == 0.5
    assert s.of_parsed == pytest.approx(2 / 3)
    assert s.chance == pytest.approx((3 * 0.25 + 2 * 0.5) / 5)
    assert s.corrected == pytest.approx((0.5 - 0.35) / 0.65)
    assert s.over_questions == pytest.approx((0.5 + 0 + 1) / 3)
    assert s.over_tasks == pytest.approx((1 / 3 + 1) / 2)
    assert s.extraction_failures == 0.25
    assert (s.worst, s.best) == (0.4, 0.6)


def test_an_empty_summary_has_no_numbers() -> None:
    s = summarise_accuracy([])
    assert (s.n_asked, s.accuracy, s.corrected, s.best, s.over_tasks) == (0, None, None, None, None)


def test_bounds_meet_where_nothing_is_missing() -> None:
    s = summarise_accuracy([Asked("q", "t", 2, True, "parsed"), Asked("r", "t", 2, False, "refused")])
    assert s.worst == s.accuracy == s.best == 0.5
