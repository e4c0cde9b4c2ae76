"""What a study asks: screens in two stages, questions divided among people, texts that are shown, and gains."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from overtone.errors import DataError
from overtone.judges.rubric import load
from overtone.studio import contents, designs, study
from overtone.studio.contents import Contents
from overtone.studio.study import Care, Loudness, Qualification, Question, Study
from tests.studio.designs.helpers import fields_of, run_of, study_of, units_of
from tests.studio.helpers import new_study


def contents_of(one: Study, *runs: str) -> Contents:
    units = units_of(one, *(run_of(run) for run in runs))
    rubrics = tuple(load(name) for name in one.rubrics)
    return Contents(one, designs.find(one.design), rubrics, fields_of(one), tuple(units))


def test_a_study_on_disk_is_read_whole(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--rubric", "echomind", "--rubric", "ves", "--show", "topic", "--show", "reply")
    read = contents.read(made)
    assert (len(read.units), read.design.layout, len(read.fields)) == (36, "single", 5)
    unit = next(unit for unit in read.units if designs.style(unit) == "target")
    voice, words = read.stages(unit)
    assert (voice.name, [field.key for field in voice.fields], voice.reveal) == ("voice", ["ves"], {})
    assert words.name == "words" and list(words.reveal) == ["reply"] and words.reveal["reply"].startswith("A reply to")
    assert read.context_texts(unit) == {"topic": "work"}  # the words of the reply are not among them
    assert [one.name for one in read.played(unit)] == ["clip", "reply"]


def test_questions_of_some_styles_are_asked_about_those_only() -> None:
    read = contents_of(study_of("acr", "run", rubrics=("echomind",)), "run")
    (unit, *_) = read.units
    asked = {field.key for field in read.fields_of(unit)}
    styled = {field.key for field in read.fields if field.styles and "target" not in field.styles}
    assert styled.isdisjoint(asked) and asked | styled == {field.key for field in read.fields}


def test_one_question_per_person_divides_the_questions_of_the_rubrics() -> None:
    read = contents_of(study_of("acr", "run", rubrics=("echomind", "ves"), one_question_per_person=True), "run")
    assert read.question_groups == 5
    keys = [[field.key for field in read.fields_of(None, group)] for group in range(5)]
    assert sorted(key for (key,) in keys) == sorted(field.key for field in read.fields)
    (stage,) = read.stages(read.units[0], question_group=0)
    assert len(stage.fields) == 1


def test_everybody_gets_all_questions_otherwise() -> None:
    read = contents_of(study_of("acr", "run"), "run")
    assert read.question_groups == 1 and len(read.fields_of(None)) == 4


def test_both_replies_words_are_shown_by_their_places() -> None:
    read = contents_of(study_of("ab", "monday", "friday", shows=("reply",)), "monday", "friday")
    (stage,) = read.stages(read.units[0], swap=True)
    assert stage.reveal == {"A": "friday replies.", "B": "monday replies."}


@pytest.mark.parametrize(("per", "gains"), [("system", [-3.0, -9.0]), ("set", [-9.0, -9.0]), ("clip", [None, None])])
def test_one_gain_is_applied_per_system_or_for_all(per: str, gains: list[float | None]) -> None:
    one = study_of("ab", "monday", "friday", loudness=Loudness(per=per), play_clip=False)  # type: ignore[arg-type]
    one = replace(one, sources=(one.sources[0], replace(one.sources[1], gain_db=-9.0)))
    (unit, *_) = units_of(one, run_of("monday"), run_of("friday"))
    assert [played.gain_db for played in designs.played(designs.find("ab"), unit, one)] == gains


def test_what_the_user_said_is_played_with_its_own_gain() -> None:
    one = study_of("acr", "run", loudness=Loudness(clips_gain_db=-7.0))
    (unit, *_) = units_of(one, run_of("run"))
    clip, heard = designs.played(designs.find("acr"), unit, one)
    assert (clip.context, clip.gain_db, heard.context, heard.gain_db) == (True, -7.0, False, -3.0)


def test_distressing_clips_can_be_skipped() -> None:
    read = contents_of(study_of("acr", "run", care=Care(skippable=("sad",))), "run")
    assert read.may_skip(read.units[0])  # "a voice full of sadness"
    assert not contents_of(study_of("acr", "run"), "run").may_skip(read.units[0])


def test_the_drawn_units_are_whole_scripts_of_all_systems() -> None:
    one = study_of("acr", "a", "b", units=8)
    units = units_of(one, run_of("a", 20), run_of("b", 20))
    drawn = contents.chosen(units, one)
    assert len({unit.group for unit in drawn}) == 4 and len(drawn) == 8
    assert contents.chosen(units, replace(one, seed=1)) != drawn
    assert contents.chosen(units, one) == drawn


def test_qualification_questions_become_controls() -> None:
    asked = Question(key="ears", question="Both?", options={"yes": "Yes", "no": "No"}, accept=("yes",))
    (field,) = contents.qualification(study_of("acr", "run", qualification=Qualification(questions=(asked,))))
    assert (field.key, field.options) == ("ears", {"yes": "Yes", "no": "No"})


def test_a_rubric_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    made = new_study(tmp_path)
    made.path.write_text(made.path.read_text().replace('["echomind"]', '["pair"]'))
    with pytest.raises(DataError, match=r"line 6: .*acr rates single replies"):
        study.read(made.path)
