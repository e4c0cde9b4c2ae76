"""What a model is sent when it is to choose an option."""

from __future__ import annotations

from typing import Any

import pytest

from overtone.errors import DataError
from overtone.schema import Clip, Condition, Message, Option, Sound, Turn
from overtone.tasks import conditions, load_prompts
from overtone.tasks.choose import continuations, messages, without

PROMPTS = load_prompts("openai:m", {})


def test_the_question_its_options_and_the_sound_follow_the_required_form(make_item: Any, sound: Sound) -> None:
    system, user = messages(make_item("choose"), Condition(), 0, (), sound, PROMPTS)
    assert system.text.endswith("The answer is: [A/B/C/D]")
    assert user.parts == ("Question: Who?\nOptions:\nA. Ann\nB. Bob", sound)


def test_the_listed_letters_can_be_the_items_own(make_item: Any, sound: Sound) -> None:
    prompts = load_prompts("openai:m", {"choose.letters": "item"})
    assert messages(make_item("choose"), Condition(), 0, (), sound, prompts)[0].text.endswith("[A/B]")


def test_a_fifth_option_is_listed_as_well(make_item: Any, sound: Sound) -> None:
    options = tuple(Option(letter, letter * 3) for letter in "ABCDE")
    made = messages(make_item("choose", options=options), Condition(), 0, (), sound, PROMPTS)
    assert made[0].text.endswith("[A/B/C/D/E]")


def test_the_words_replace_the_sound_or_join_it(make_item: Any, sound: Sound) -> None:
    item = make_item("choose", topic="")
    written = messages(item, Condition(input="transcript"), 0, (), None, PROMPTS)[-1]
    assert all(isinstance(p, str) for p in written.parts) and "“It is done {topic}.”" in written.text
    both = messages(item, Condition(input="both"), 0, (), sound, PROMPTS)[-1]
    assert both.parts[-1] is sound and "It is done {topic}." in both.text
    silent = messages(item, Condition(input="silence"), 0, (), sound, PROMPTS)[-1]
    assert silent.parts[-1] is sound and "done" not in silent.text


def test_words_that_look_like_placeholders_stay_as_they_are(make_item: Any, sound: Sound) -> None:
    item = make_item("choose", question="What is {options}?", options=(Option("A", "{words}"), Option("B", "{topic}")))
    assert messages(item, Condition(), 0, (), sound, PROMPTS)[-1].text == (
        "Question: What is {options}?\nOptions:\nA. {words}\nB. {topic}"
    )


def test_of_several_turns_the_last_carries_the_question(make_item: Any, sound: Sound) -> None:
    item = make_item("choose", turns=(Turn(Clip("a.wav"), "one"), Turn(Clip("b.wav"), "two")), context="A call.")
    first = messages(item, Condition(), 0, (), sound, PROMPTS)
    assert first[-1].parts == ("A call.", sound)
    history = (first[-1], Message("assistant", ("Hm.",)))
    second = messages(item, Condition(), 1, history, sound, PROMPTS)
    assert second[1:3] == history and "Question: Who?" in second[-1].text and "A call." not in second[-1].text


def test_a_transcript_that_is_not_known_cannot_be_asked_with(make_item: Any) -> None:
    item = make_item("choose", turns=(Turn(Clip("a.wav")),))
    with pytest.raises(DataError, match="has no transcript"):
        messages(item, Condition(input="transcript"), 0, (), None, PROMPTS)


def test_options_that_are_recordings_are_announced_one_by_one(make_item: Any, sound: Sound) -> None:
    options = tuple(Option(letter, "", clip=Clip(f"{letter}.wav")) for letter in "AB")
    item = make_item("choose", options=options, context="A call.")
    given = {letter: Sound(letter.encode(), letter, 1.0) for letter in "AB"}
    user = messages(item, Condition(), 0, (), sound, PROMPTS, given)[-1]
    asked = "Question: Who?\nOptions:\nA. the recording after “Option A:”\nB. the recording after “Option B:”"
    assert user.parts == (
        "A call.", asked, "What the user says:", sound, "Option A:", given["A"], "Option B:", given["B"],
    )  # fmt: skip
    with pytest.raises(DataError, match="option A is a recording"):
        messages(item, Condition(), 0, (), sound, PROMPTS)


def test_the_context_can_be_left_out_or_stand_alone_and_a_recogniser_can_stand_in(make_item: Any, sound: Sound) -> None:
    item = make_item("choose", context="A call.", turns=(Turn(Clip("a.wav"), "true words", heard="two words"),))
    assert "A call." not in messages(item, Condition(input="alone"), 0, (), sound, PROMPTS)[-1].text
    alone = messages(item, Condition(input="context"), 0, (), None, PROMPTS)[-1]
    assert alone.text == "A call.\nQuestion: Who?\nOptions:\nA. Ann\nB. Bob"
    told = messages(item, Condition(input="recognised"), 0, (), None, PROMPTS)[-1]
    assert "“two words”" in told.text and "true" not in told.text
    with pytest.raises(DataError, match="no recogniser's transcript"):
        messages(make_item("choose"), Condition(input="recognised"), 0, (), None, PROMPTS)


def test_in_the_condition_likelihood_the_question_follows_the_sound_without_options(
    make_item: Any, sound: Sound
) -> None:
    item = make_item("choose")
    (user,) = messages(item, Condition.parse("likelihood/audio"), 0, (), sound, PROMPTS)
    assert user.parts == (sound, "\nQuestion: Who?")
    assert continuations(item) == (("Ann", "Bob"),)
    assert without(item, PROMPTS) == (Message("user", ("Question: Who?",)),)


def test_recorded_options_and_dialogues_without_given_replies_are_not_asked_by_likelihood(make_item: Any) -> None:
    asked = ["task", "likelihood"]
    assert [c.prompt for c in conditions(make_item("choose"), asked, ["audio"])] == asked
    assert [c.prompt for c in conditions(make_item("choose"), ["likelihood"], ["audio"])] == ["likelihood"]
    assert conditions(make_item("transcribe"), ["likelihood"], ["audio"]) == ()
    assert conditions(make_item("converse"), ["likelihood"], ["audio"]) == ()
    recorded = make_item("choose", options=(Option("A", "Ann", clip=Clip("a.wav")), Option("B", "Bob")))
    assert [c.prompt for c in conditions(recorded, asked, ["audio"])] == ["task"]
    open_dialogue = make_item("choose", turns=(Turn(None, "one"), Turn(None, "two")))
    assert [c.prompt for c in conditions(open_dialogue, asked, ["audio"])] == ["task"]
    given_dialogue = make_item("choose", turns=(Turn(None, "one", given="yes"), Turn(None, "two")))
    assert [c.prompt for c in conditions(given_dialogue, asked, ["audio"])] == asked
