"""Every rubric that people can be asked becomes fields with its own questions, scale and anchors."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone import registry
from overtone.errors import UsageError
from overtone.judges.rubric import load
from overtone.studio import designs
from overtone.studio.fields import Choice, Scale
from tests.studio.designs.helpers import fields_of, study_of

ALL = tuple(registry.builtins("rubrics"))
OF_REPLIES = tuple(name for name in ALL if load(name).subject == "reply")
OF_PAIRS = tuple(
    name for name in ALL if load(name).subject == "pair" and {"A", "B"} <= set(load(name).dimensions[0].choices)
)


def test_there_are_rubrics_of_both_kinds() -> None:
    assert {"echomind", "ves", "aeq", "aeq-delivery"} <= set(OF_REPLIES) and {"pair", "pair-voice"} <= set(OF_PAIRS)


@pytest.mark.parametrize("name", OF_REPLIES)
def test_a_rubric_of_replies_becomes_fields_with_its_own_scale_and_anchors(name: str) -> None:
    rubric = load(name)
    fields = fields_of(study_of("acr", "run", rubrics=(name,)))
    assert [field.key for field in fields] == [d.key for d in rubric.dimensions]
    for field, d in zip(fields, rubric.dimensions, strict=True):
        assert (field.label, field.question, field.styles) == (d.label, d.question, d.styles)
        assert field.stage == ("voice" if "reply" in rubric.hears else "words")
        if d.scale:
            assert isinstance(field, Scale) and (field.low, field.high, field.anchors) == (*d.scale, d.anchors)
        else:
            assert isinstance(field, Choice) and tuple(field.options) == d.choices
            assert all(field.options[choice] == d.anchors.get(choice, choice) for choice in d.choices)


@pytest.mark.parametrize("name", [name for name in ALL if name not in OF_REPLIES])
def test_a_rubric_that_does_not_rate_single_replies_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="acr rates single replies"):
        designs.check_rubrics("acr", [load(name)])


@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_rubric_of_pairs_asks_its_question_with_our_answers(name: str) -> None:
    (field,) = fields_of(study_of("ab", "a", "b", rubrics=(name,)))
    assert isinstance(field, Choice) and field.question == load(name).dimensions[0].question
    assert tuple(field.options) == ("A", "B", "both_good", "both_bad", "cannot_tell")
    (scale,) = fields_of(study_of("cmos", "a", "b", rubrics=(name,)))
    assert isinstance(scale, Scale) and (scale.low, scale.high) == (-3, 3) and len(scale.anchors) == 7
    assert scale.question.startswith(load(name).dimensions[0].question)


def test_voice_questions_come_before_questions_about_words() -> None:
    stages = [field.stage for field in fields_of(study_of("acr", "run", rubrics=("echomind", "ves")))]
    assert stages == ["voice", "words", "words", "words", "words"]


def test_two_rubrics_with_one_question_are_refused(tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_bytes(registry.find_rubric("echomind").read_bytes())
    with pytest.raises(UsageError, match="echomind and mine both ask cctxfit"):
        designs.check_rubrics("acr", [load("echomind"), load(str(copy))])


@pytest.mark.parametrize(
    ("design", "rubrics", "message"),
    [
        ("acr", [], "needs a rubric, e.g. echomind"),
        ("ab", ["pair", "pair-voice"], "takes one rubric"),
        ("ab", ["echomind"], "does not choose between two"),
        ("mushra", ["echomind"], "has its own questions"),
        ("label", ["ves"], "has its own questions"),
    ],
)
def test_rubrics_that_do_not_fit_a_design_are_refused(design: str, rubrics: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        designs.check_rubrics(design, [load(name) for name in rubrics])
