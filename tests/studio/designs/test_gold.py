"""Gold questions: one sound is played backwards, so the right answer is not an opinion."""

from __future__ import annotations

import pytest

from overtone.studio import designs
from overtone.studio.fields import check
from tests.studio.designs.helpers import fields_of, gold_of, study_of


def test_a_reply_played_backwards_is_the_worst_or_next_to_it() -> None:
    right = gold_of(study_of("acr", "run", rubrics=("echomind", "ves")), 0)
    assert right["cctxfit"] == [1, 2] and right["ves"] == [1, 2]


def test_a_scale_of_three_accepts_the_worst_alone() -> None:
    right = gold_of(study_of("acr", "run", rubrics=("aeq",)), 0)
    assert (right["coherence"], right["supportiveness"]) == (["Poor"], ["Poor"])
    assert "reliance" not in right  # "audio only" and "context only" are kinds, not steps


@pytest.mark.parametrize(("side", "winner", "numbers"), [(0, "B", [2, 3]), (1, "A", [-2, -3])])
def test_the_side_that_is_not_played_backwards_wins(side: int, winner: str, numbers: list[int]) -> None:
    (vote,) = gold_of(study_of("ab", "a", "b"), side).values()
    assert vote == [winner, "both_bad"]
    assert gold_of(study_of("cmos", "a", "b"), side) == {"cmos": numbers}


@pytest.mark.parametrize("design", ["acr", "ab", "cmos", "transcribe"])
def test_right_answers_can_be_given(design: str) -> None:
    study = study_of(design, "a", "b")
    fields = {field.key: field for field in fields_of(study)}
    for key, answers in gold_of(study, 0).items():
        assert [check(fields[key], answer) for answer in answers] == answers


@pytest.mark.parametrize("design", ["mushra", "label"])
def test_designs_without_a_gold_question_say_so(design: str) -> None:
    assert designs.find(design).gold is designs.no_gold
