"""Thoughts: written, read, and read when they are broken."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.echat.data import labels
from overtone.echat.data.labels import Labels
from overtone.echat.data.think import Piece, label_thought, natural_thought, parse

ALL = Labels(emotion="sad", age="child", gender="male", event="cough")


def whole(pieces: list[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def test_a_thought_in_tags_is_the_template() -> None:
    pieces = label_thought("where is my ball", ALL, "comforting", random.Random(1))
    assert whole(pieces) == (
        "<think>User's words: where is my ball, Age: <CHILD>, Gender: <MALE>, Emotion: <SAD>, "
        "Sound Event: <COUGH>, Predicted reply emotion: <COMFORTING><think end><COMFORTING>"
    )
    assert {how for _, how in pieces} == {"said"}


def test_missing_labels_are_masked_in_85_of_100_and_else_defaults() -> None:
    rng = random.Random(7)
    masked = 0
    for _ in range(500):
        pieces = label_thought("hi", Labels(), "", rng)
        hidden = [text for text, how in pieces if how != "said"]
        masked += len(hidden)
        assert set(hidden) <= {"&&"}
        text = whole(pieces)
        for field, default in (("Age", "ADULT"), ("Gender", "MALE"), ("Emotion", "NEUTRAL"), ("Sound Event", "OTHER")):
            assert f", {field}: <&&>" in text or f", {field}: <{default}>" in text
        assert text.endswith("Predicted reply emotion: <NEUTRAL><think end><NEUTRAL>")
    assert 0.82 < masked / 2000 < 0.88


def test_where_all_is_told_no_sound_is_a_label_and_what_nobody_can_tell_is_left_open() -> None:
    pieces = label_thought("hi", Labels(emotion="sad", age="child"), "", random.Random(0), complete=True)
    assert whole(pieces).startswith("<think>User's words: hi, Age: <CHILD>, Gender: <>, Emotion: <SAD>, ")
    assert ", Sound Event: <OTHER>, " in whole(pieces)
    assert {how for _, how in pieces} == {"said"}  # an empty place too: the model has to write it itself


names = st.fixed_dictionaries(
    {dimension: st.sampled_from(labels.DIMENSIONS[dimension]) for dimension in ("emotion", "age", "gender", "event")}
)
words = st.text(st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="<>"), min_size=1).map(
    lambda text: " ".join(text.split()) or "x"
)


@settings(max_examples=80, deadline=None)
@given(names, st.sampled_from(labels.REPLY), words, words)
def test_what_is_written_is_read_again(found: dict[str, str], emotion: str, question: str, said: str) -> None:
    known = Labels(**found)
    thought = parse(whole(label_thought(question, known, emotion, random.Random(0))) + said)
    assert (thought.question, thought.labels, thought.reply_emotion) == (question, known, emotion)
    assert (thought.reply, thought.malformed) == (said, ())


def test_a_natural_thought_is_read_again() -> None:
    thought = parse(whole(natural_thought("She sounds worn out: she wants rest.")) + "Take a seat.")
    assert (thought.natural, thought.reply, thought.malformed) == (
        "She sounds worn out: she wants rest.",
        "Take a seat.",
        (),
    )
    assert thought.labels == Labels()


def test_the_original_template_is_read() -> None:
    thought = parse(
        "<think>用户说的话是:我今天很累,年龄为:<ADULT>,性别为:<FEMALE>,情感为:<SAD>,声音事件为:<&&>,"
        "推测使用的回复情感为:<安慰鼓励>,我应该综合用户的语义和副语言信息给出专业且对应的回答"
        "<think end><安慰鼓励>好好休息"
    )
    assert thought.labels == Labels(emotion="sad", age="adult", gender="female")
    assert (thought.question, thought.reply_emotion, thought.reply) == ("我今天很累", "comforting", "好好休息")
    assert thought.malformed == ()


def test_a_reply_without_a_thought_is_a_reply() -> None:
    assert parse("Sure.").reply == "Sure."
    told = parse("<HAPPY> Sure.")
    assert (told.reply, told.reply_emotion, told.malformed) == ("Sure.", "happy", ())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<think>User's words: hi, Age: <CHILD>", "the thought has no end"),
        ("she sounds glad<think end>Yes", "the thought has no beginning"),
        ("<think>she sounds glad</think>Yes", "the thought ends with </think>"),
        ("<think>she sounds glad<think end>", "the reply is empty"),
        ("<think>User's words: hi, Age: <CHILD><think end><SAD>No", "the thought has no gender"),
        ("<think>User's words: hi, Age: <ROBOT><think end><SAD>No", "unknown age 'robot'"),
        ("<think>User's words: hi, Predicted reply emotion: <SAD><think end><HAPPY>No",
         "the reply's emotion differs from the thought's"),
        ("<think>User's words: hi, Predicted reply emotion: <SAD><think end>No", "the reply has no emotion tag"),
        ("<think>User's words: hi, Predicted reply emotion: <O><think end><O>No", "unknown reply emotion 'O'"),
        ("", "the reply is empty"),
    ],
)  # fmt: skip
def test_what_is_malformed_is_said(text: str, wrong: str) -> None:
    assert wrong in parse(text).malformed


def test_the_first_end_counts_and_later_marks_are_no_part_of_the_reply() -> None:
    thought = parse("<think>he said<think end>It is <think>fine.</think end>")
    assert (thought.natural, thought.reply) == ("he said", "It is fine.")


def test_what_is_a_thought_depends_on_whether_one_was_asked_for() -> None:
    assert parse("glad<think end>Yes").reply == parse("glad<think end>Yes", True).reply == "Yes"
    assert parse("glad<think end>Yes", False).reply == "gladYes"
    assert (parse("Yes").reply, parse("Yes", True).reply) == ("Yes", "")


@settings(max_examples=150, deadline=None)
@given(
    st.text() | st.lists(st.sampled_from(["<think>", "<think end>", ", Age: <", ">", "Age", "x", "<SAD>"])).map("".join)
)
def test_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(parse(text).reply, str)
