"""What a model is sent when it is to reply: by prompt variant, dimension, input and oracle."""

from __future__ import annotations

from typing import Any

import pytest

from overtone.schema import Clip, Condition, Message, Sound, Turn
from overtone.tasks import load_prompts
from overtone.tasks.converse import messages

PROMPTS = load_prompts("openai:m", {})


def system(item: Any, name: str, sound: Sound) -> str:
    made = messages(item, Condition.parse(name), 0, (), sound, PROMPTS)
    return made[0].text if made[0].role == "system" else ""


def test_zero_is_the_sound_and_nothing_else(make_item: Any, sound: Sound) -> None:
    assert messages(make_item("converse"), Condition("zero"), 0, (), sound, PROMPTS) == (Message("user", (sound,)),)


def test_basic_names_the_topic_and_no_cue(make_item: Any, sound: Sound) -> None:
    text = system(make_item("converse"), "basic/audio", sound)
    assert "no specific topics" in text and "sad" not in text and "voice sounds" not in text


@pytest.mark.parametrize(
    ("dimension", "says", "not_says"),
    [
        ("speaker", "about the person", "sounds around"),
        ("paralinguistic", "user's voice sounds", "sounds around"),
        ("environment", "sounds around the user", "about the person"),
        ("", "who is speaking and by any sounds around", "{"),
        ("taste", "who is speaking and by any sounds around", "{"),
    ],
)
def test_enhance_names_the_dimension_and_never_the_cue(
    make_item: Any, sound: Sound, dimension: str, says: str, not_says: str
) -> None:
    item = make_item("converse", dimension=dimension, topic="work")
    text = system(item, "enhance/audio", sound).replace("\n", " ")
    assert says in text and not_says not in text and "about: work." in text
    assert "sad" not in text and "happy" not in text
    assert ("serves customers" in text) is (dimension == "speaker")


@pytest.mark.parametrize(
    ("changes", "true", "false"),
    [
        ({}, "a voice full of sadness", "a voice full of happiness"),
        ({"cue_text": "sad-toned expressive voice"}, "sad-toned expressive voice", "a voice full of happiness"),
        ({"cue": "happy", "other_cue": "sad", "style": "alternative"}, "full of happiness", "full of sadness"),
        ({"cue": "", "other_cue": "sad", "style": "neutral"}, "nothing special", "full of sadness"),
        ({"cue": "", "cue_text": "sound of fireworks", "other_cue": ""}, "sound of fireworks", "nothing special"),
    ],
)
def test_the_oracle_is_enhance_and_one_line(
    make_item: Any, sound: Sound, changes: dict[str, str], true: str, false: str
) -> None:
    item = make_item("converse", **changes)
    base = system(item, "enhance/audio", sound)
    for name, says in (("oracle/audio", true), ("oracle-false/audio", false)):
        text = system(item, name, sound)
        head, _, line = text.rpartition("\n")
        assert head == base and says in line


def test_the_words_alone_stand_bare_and_with_the_sound_are_introduced(make_item: Any, sound: Sound) -> None:
    item = make_item("converse")
    assert messages(item, Condition("zero", "transcript"), 0, (), None, PROMPTS)[-1].parts == ("It is done {topic}.",)
    both = messages(item, Condition("zero", "both"), 0, (), sound, PROMPTS)[-1]
    assert both.parts[1] is sound and both.parts[0] != "It is done {topic}." and "It is done {topic}." in both.text


def test_later_turns_follow_the_history_and_the_oracle_names_their_own_cue(make_item: Any, sound: Sound) -> None:
    turns = (Turn(Clip("a.wav"), "one", "sad"), Turn(Clip("b.wav"), "two", "cough"), Turn(Clip("c.wav"), "three"))
    item = make_item("converse", turns=turns, context="They met before.", cue_text="sad-toned expressive voice")
    oracle = Condition.parse("oracle/audio")
    first = messages(item, oracle, 0, (), sound, PROMPTS)
    assert "sad-toned" in first[0].text and first[1].parts == ("They met before.", sound)
    history = (first[-1], Message("assistant", ("I see.",)))
    second = messages(item, oracle, 1, history, sound, PROMPTS)
    assert second[1:3] == history and second[-1].parts == (sound,) and second[0].text.endswith("words: coughing.")
    assert "nothing special" in messages(item, oracle, 2, history, sound, PROMPTS)[0].text
