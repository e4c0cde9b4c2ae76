"""EchoMind's fields in all the dresses they may come in."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from overtone.benchmarks.echomind.script_fields import (
    category_of,
    cue_of,
    gold_of,
    options_of,
    parse_name,
    reply_of,
)
from overtone.cues import BY_SLUG, REASONING, UNDERSTANDING
from overtone.schema import Option


@pytest.mark.parametrize(
    "given",
    [
        "A. warm\nB. cold, or B. frozen\nC. wet",
        "(A) warm\n(B) cold, or B. frozen\n(C) wet",
        "A) warm\r\nB) cold, or B. frozen\r\n\r\nC) wet",
        "A: warm\n B: cold, or\nB. frozen\nC: wet",
        ["warm", "cold, or B. frozen", "wet"],
        ["A. warm", "B. cold, or B. frozen", "C. wet"],
        [{"text": "warm"}, {"text": "cold, or B. frozen"}, {"text": "wet"}],
        {"B": "cold, or B. frozen", "A": "warm", "C": "wet"},
        {"A.": "warm", "B.": "cold, or B. frozen", "C.": "wet"},
    ],
)
def test_options_are_read_from_every_form(given: object) -> None:
    assert options_of(given) == (Option("A", "warm"), Option("B", "cold, or B. frozen"), Option("C", "wet"))


@pytest.mark.parametrize("given", ["A. Yes B. No", "[A] Yes [B] No", "A) Yes; B) No", "(A) Yes, (B) No"])
def test_options_on_one_line_are_parted_at_their_letters(given: str) -> None:
    assert options_of(given) == (Option("A", "Yes"), Option("B", "No"))


def test_a_sentence_ending_in_a_letter_does_not_part_an_option_on_lines() -> None:
    text = "A. Take vitamin B. Rest well.\nB. Sleep."
    assert [o.text for o in options_of(text)] == ["Take vitamin B. Rest well.", "Sleep."]


@pytest.mark.parametrize(
    "given", ["no options", "", None, 3, {"x": "a", "y": "b"}, "B. b\nC. c", ["", "b"], ["x"] * 30]
)
def test_what_is_not_a_list_of_options_gives_none(given: object) -> None:
    assert options_of(given) == ()


def test_provenance_comes_as_an_object_or_a_list() -> None:
    assert [o.provenance for o in options_of(["x", "y"], ["target", None])] == ["target", ""]
    assert [o.provenance for o in options_of(["x", "y"], {"B": "harmful"})] == ["", "harmful"]


@pytest.mark.parametrize(
    "given", ["B", "b", "B.", "[B]", "(B)", " B ", "B. The speaker sighs.", "the speaker sighs", "The answer is: [B]"]
)
def test_the_gold_letter_is_read_in_any_dress(given: str) -> None:
    options = options_of("A. The speaker coughs.\nB. The speaker sighs.")
    assert gold_of(given, options) == "B"


@pytest.mark.parametrize("given", ["", "C", "D. other", "AB", "neither", "2"])
def test_a_gold_that_no_option_has_is_none(given: str) -> None:
    assert gold_of(given, options_of("A. Yes\nB. No")) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("id_854_sad_school_target.wav", ("id_854", "sad", "school", "target")),
        (
            "x/id_2471_sound of wind blowing_no_specific_topics_neutral.wav",
            ("id_2471", "sound of wind blowing", "no_specific_topics", "neutral"),
        ),
        ("id_9_happy_food_alternative_response.wav", ("id_9", "happy", "food", "alternative")),
        ("s12_child_family_target.flac", ("s12", "child", "family", "target")),
        ("id_3_sound of dog(s) barking_work_target.wav", ("id_3", "sound of dog(s) barking", "work", "target")),
        ("id_3_strange_cue_work_target.wav", ("id_3", "strange", "cue_work", "target")),
        ("id_5_sad_target.wav", ("id_5", "sad", "", "target")),
    ],
)
def test_file_names_are_read_from_the_right(name: str, expected: tuple[str, ...]) -> None:
    found = parse_name(name)
    assert found is not None and (found.case_id, found.cue_text, found.topic, found.style) == expected


def test_an_unknown_cue_is_the_folders_name_where_the_file_begins_with_it() -> None:
    found = parse_name("id_3_strange_cue_work_target.wav", "strange_cue")
    assert found is not None and (found.cue_text, found.topic) == ("strange_cue", "work")


@pytest.mark.parametrize("name", ["clip.wav", "id_3_sad_school.wav", "target.wav", "_target.wav"])
def test_a_name_without_a_case_and_style_tells_nothing(name: str) -> None:
    assert parse_name(name) is None


def test_every_cue_of_the_taxonomy_is_found_in_a_file_name() -> None:
    for cue in BY_SLUG.values():
        for label in cue.labels:
            if "/" not in label:
                found = parse_name(f"id_1_{label}_no_specific_topics_target.wav")
                assert found is not None and found.cue is cue, label


@pytest.mark.parametrize(
    ("level", "given", "category"),
    [
        (1, "Coarse Grained", "coarse"),
        (1, "Fine Grained Age Group Classification", "age"),
        (1, "fine-grained_voice_style_detection", "style"),
        (1, "Speech Emotion Recognition", "emotion"),
        (1, "NVE Recognition", "nonverbal"),
        (1, "Background Sound Detection", "background"),
        (1, "Speaking Pace Classification", "pace"),
        (1, "what language is it", ""),
        (2, "multiple_people_detection", "people"),
        (2, "contextual suggestion", "suggestion"),
    ],
)
def test_a_question_type_becomes_our_category(level: int, given: str, category: str) -> None:
    assert category_of(level, [given]) == category


def test_our_own_names_and_stems_are_categories() -> None:
    for slug, stem in UNDERSTANDING.items():
        assert category_of(1, [slug]) == category_of(1, ["", stem]) == slug
    for slug, name in REASONING.items():
        assert category_of(2, [slug]) == category_of(2, [name]) == slug


def test_the_type_goes_before_the_stem_and_the_stem_before_the_id() -> None:
    assert category_of(1, ["gender", "What emotion?", "pace_3"]) == "gender"
    assert category_of(1, ["multiple choice", "What emotion?", "pace_3"]) == "emotion"
    assert category_of(1, ["", "", "pace_3"]) == "pace"


def test_the_reply_and_its_sound_are_told_apart_by_what_they_hold() -> None:
    assert reply_of({"target_response": "a/b.wav", "reference": "Hi."}) == ("Hi.", "a/b.wav")
    assert reply_of({"response_text": "Hi.", "style_profile": "warm", "input_audio_file": "c.wav"}) == ("Hi.", "")


def test_an_unlabelled_cue_is_any_known_string_of_its_block() -> None:
    assert cue_of({"file": "x.wav", "voice": "Sigh sound"}, "alternative", "here") == "Sigh sound"


@hypothesis.settings(max_examples=200, derandomize=True, deadline=None)
@hypothesis.given(st.text(alphabet="ABab _.()[]:\n1{}", max_size=40), st.text(alphabet="ABC. \n[]", max_size=40))
def test_no_text_breaks_the_reading_of_a_question(one: str, other: str) -> None:
    options = options_of(other)
    assert gold_of(one, options) in {"", *(o.letter for o in options)}
    assert all(o.text for o in options)
    assert (found := parse_name(one)) is None or found.case_id
    assert category_of(1, [one]) in {"", *UNDERSTANDING} and category_of(2, [one]) in {"", *REASONING}
