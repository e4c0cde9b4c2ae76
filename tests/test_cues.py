"""The taxonomy: 39 cues, every official string known, every option sentence stating one cue."""

from __future__ import annotations

import pytest

from overtone import cues

OFFICIAL = [
    *(
        "male",
        "female",
        "child",
        "elderly",
        "adult",
        "Hoarse voice",
        "vocal fatigue",
        "sobbing sound",
        "shout",
        "whisper",
    ),
    "breathless sound / gasping sound / heavy breathing sound",
    *(f"{e}-toned expressive voice" for e in ("happy", "sad", "surprise", "angry", "fear", "disgust")),
    *(
        "fast speaking pace",
        "slow speaking pace",
        "cough voice",
        "sigh sound",
        "laughter sound",
        "yawn sound",
        "moan sound",
    ),
    *("sound of wind blowing", "sound of thunderstorm and thunder", "sound of raining", "sound of sea waves"),
    *("sound of playing basketball", "sound of driving a car", "sound of subway", "sound of applause from a crowd"),
    *("sound of crowd cheering", "sound of crowd's chatter", "sound of children playing", "sound of children speaking"),
    *("sound of alarm clock ringing", "sound of ringtone", "sound of vehicle honking", "sound of dog(s) barking"),
    *(f"sound of {m} music" for m in ("happy", "funny", "sad", "exciting", "angry")),
]


def test_there_are_39_cues_in_12_categories_and_3_dimensions() -> None:
    assert len(cues.CUES) == 39
    assert len({c.category for c in cues.CUES}) == len(cues.CATEGORIES) == 12
    by_dimension = [sum(c.dimension == d for c in cues.CUES) for d in cues.DIMENSIONS]
    assert by_dimension == [4, 19, 16]


def test_all_45_official_strings_are_known() -> None:
    assert len(OFFICIAL) == 45
    assert all(cues.find_cue(label) is not None for label in OFFICIAL)
    assert {cues.find_cue(label) for label in OFFICIAL} == set(cues.BY_SLUG.values())


@pytest.mark.parametrize("cue", cues.BY_SLUG.values(), ids=lambda c: c.slug)
def test_each_option_sentence_states_its_own_cue_and_no_other(cue: cues.Cue) -> None:
    assert cues.cue_of_option(cue.option) is cue
    assert cue.task in cues.UNDERSTANDING


@pytest.mark.parametrize(
    ("sentence", "slug"),
    [
        ("The speaker's voice shows happiness.", "happy"),
        ("The speaker gasps for breath.", "breath"),
        ("There is the sound of angry music in the background.", "music"),
        ("There is the sound of vehicles honking in the background.", "honking"),
        ("The speaker is speaking at a slow pace.", "slow"),
        ("The speaker is an adult.", "adult"),
        ("The speaker is a child.", "child"),
    ],
)
def test_official_option_sentences_are_understood(sentence: str, slug: str) -> None:
    found = cues.cue_of_option(sentence)
    assert found is not None
    assert found.slug == slug


@pytest.mark.parametrize("sentence", ["Rest and hydrate today.", "", "The speaker laughs and coughs."])
def test_a_sentence_that_states_no_cue_or_two_is_none(sentence: str) -> None:
    assert cues.cue_of_option(sentence) is None
