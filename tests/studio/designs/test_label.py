"""Labels: which cues are offered, of replies or clips, and what is written for those not chosen."""

from __future__ import annotations

from overtone import cues
from overtone.studio import designs
from overtone.studio.designs import label
from overtone.studio.fields import Slider, Tags, check
from overtone.studio.study import LabelSettings
from tests.studio.designs.helpers import clips_of, fields_of, labels_of, run_of, study_of, units_of, values_of


def test_all_39_cues_are_offered_under_headings_and_none_of_these() -> None:
    (tags, strength) = fields_of(study_of("label", "run"))
    assert isinstance(tags, Tags) and list(tags.options) == [*cues.slugs(), "none"] and len(cues.slugs()) == 39
    assert [slug for group in tags.groups.values() for slug in group] != [] and tags.none == "none"
    assert sorted(slug for group in tags.groups.values() for slug in group) == sorted(cues.slugs())
    assert (tags.stage, strength.stage, strength.required) == ("voice", "voice", False)
    assert check(tags, ["sad", "rain"]) == ["sad", "rain"]


def test_emotions_or_single_cues_can_be_offered_instead() -> None:
    only = fields_of(study_of("label", "run", label=LabelSettings(cues=("emotions", "rain"), intensity=False)))
    (tags,) = only
    assert isinstance(tags, Tags)
    assert list(tags.options) == ["happy", "sad", "surprise", "angry", "fear", "disgust", "rain", "none"]


def test_sliders_ask_for_valence_arousal_and_dominance() -> None:
    fields = fields_of(study_of("label", "run", label=LabelSettings(sliders=True)))
    sliders = [field for field in fields if isinstance(field, Slider)]
    assert [field.key for field in sliders] == ["valence", "arousal", "dominance"]
    assert check(sliders[0], 2.5) == 2.5


def test_every_offered_cue_gets_yes_or_no() -> None:
    study = study_of("label", "run", label=LabelSettings(cues=("sad", "rain", "angry"), sliders=True))
    (unit, *_) = units_of(study, run_of("run"))
    rows = labels_of(study, unit, {"heard": ["rain", "sad"], "intensity": 4, "valence": 1.5, "remark": "a train?"})
    assert values_of(rows) == {
        "heard_sad": "yes", "heard_rain": "yes", "heard_angry": "no", "heard_none": "no", "intensity": 4, "valence": 1.5
    }  # fmt: skip
    assert {row.run for row in rows} == {"run"} and {row.cells["note"] for row in rows} == {"a train?"}


def test_none_of_these_is_an_answer() -> None:
    study = study_of("label", "run", label=LabelSettings(cues=("sad",)))
    (unit, *_) = units_of(study, run_of("run"))
    assert values_of(labels_of(study, unit, {"heard": ["none"]})) == {"heard_sad": "no", "heard_none": "yes"}


def test_a_clip_that_two_sources_share_is_heard_once_and_labelled_in_both() -> None:
    study = study_of("label", "monday", "friday", of="clips", label=LabelSettings(cues=("sad",), intensity=False))
    first, second = units_of(study, clips_of("monday", "sad", "rain"), clips_of("friday", "sad", "rain"))
    assert (first.sources, first.group, second.group) == (("monday", "friday"), "s0", "s1")
    (played,) = designs.played(designs.find("label"), first, study)
    assert (played.name, played.label, played.gain_db) == ("clip", "Recording", -3.0)
    rows = labels_of(study, first, {"heard": ["sad"]})
    assert [row.run for row in rows] == ["monday", "monday", "friday", "friday"]
    assert rows[0].cells["id"] == "toy/s0/target" and rows[0].cells["rater"] == "k3f9"
    assert rows[0].cells["cue"] == "sad"  # what was asked of the voice, beside what people hear


def test_one_clip_of_two_scripts_is_two_questions() -> None:
    study = study_of("label", "set", of="clips")
    assert len({unit.id for unit in units_of(study, clips_of("set", "sad", "sad"))}) == 2


def test_a_reply_is_labelled_without_the_clip_that_would_suggest_a_cue() -> None:
    study = study_of("label", "run")
    (unit, *_) = units_of(study, run_of("run"))
    assert [one.name for one in designs.played(designs.find("label"), unit, study)] == ["reply"]
    assert label.DESIGN.gold([], [], 0) == {}
