"""Records: EChat-200K's raw form read and written without loss."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overtone.echat.data import labels
from overtone.echat.data.exchange_records import (
    Message,
    Record,
    TextRecord,
    Turn,
    from_raw,
    prefixes,
    text_from_raw,
    to_raw,
    understanding,
)
from overtone.echat.data.labels import Labels
from overtone.errors import DataError

RAW: dict[str, Any] = {
    "key": "1023390_bed51684_1",
    "txt": "<安慰鼓励>Take your time.",
    "wav": "wav/a.wav",
    "extra": {
        "dataset": "KeSpeech",
        "age": "<ADULT>",
        "gender": "<FEMALE>",
        "caption": "<LAUGH>",
        "q_emotion": "<SAD>",
        "question": "how do I join",
        "think_str": "An adult woman asks.",
        "speech_token": [1, 4095, 0],
        "a_wav_path": "wav/a_reply.wav",
        "vendor": {"odd": [1, None]},
    },
    "task": "<S2TCHAT> <TEXT2TOKEN> <THINK>",
    "lang": "en",
}


def test_a_published_record_is_read() -> None:
    record = from_raw(RAW, "a.list line 1", "home")
    assert record.labels == Labels(emotion="sad", age="adult", gender="female", event="laugh")
    assert (record.txt, record.reply_emotion) == ("Take your time.", "comforting")
    assert record.speech_token == (1, 4095, 0)
    assert (record.extra, record.rest, record.home) == ({"vendor": {"odd": [1, None]}}, {"lang": "en"}, "home")
    assert record.tags == ("S2TCHAT", "TEXT2TOKEN", "THINK")


def test_a_written_record_has_the_published_keys() -> None:
    raw = to_raw(from_raw(RAW, "x"))
    assert raw["extra"].pop("a_emotion") == "<COMFORTING>"
    assert raw == {**RAW, "txt": "Take your time.", "extra": {**RAW["extra"], "speech_token": (1, 4095, 0)}}


text = st.text(st.characters(codec="utf-8"), max_size=20)
tokens = st.lists(st.integers(0, 4095), max_size=5).map(tuple)
tagged = st.sampled_from(("", " <SAD> ", "<谄媚>", "<&&>", "<开心><SAD>"))  # a text may begin like a tag
said = st.tuples(tagged, text).map("".join)
emotions = st.sampled_from(("", *labels.REPLY))
turns = st.builds(Turn, text, text, said, tokens, emotions)
known = st.builds(Labels, **{d: st.sampled_from(("", *names)) for d, names in labels.DIMENSIONS.items()})
extras = st.dictionaries(
    st.sampled_from(["part", "speaker", "group", "cue", "mine"]), text | st.integers(-9, 9), max_size=3
)
records = st.builds(
    Record,
    key=st.uuids().map(str),
    txt=said,
    wav=text.filter(bool),
    question=text,
    labels=known,
    reply_emotion=emotions,
    think_str=text,
    speech_token=tokens,
    a_wav_path=text,
    dataset=text,
    task=text,
    history=st.lists(turns, max_size=3).map(tuple),
    extra=extras,
    rest=st.dictionaries(st.sampled_from(["lang", "mine"]), text, max_size=2),
)


@settings(max_examples=100, deadline=None)
@given(records)
def test_what_is_written_is_read_again(record: Record) -> None:
    raw = msgspec.json.decode(msgspec.json.encode(to_raw(record)))
    assert from_raw(raw, "x") == record


def test_when_every_turn_is_numbered_the_last_is_to_be_answered() -> None:
    raw = {
        "key": "k",
        "wav_1": "1.wav",
        "txt_1": "one",
        "wav_2": "2.wav",
        "txt_2": "<HAPPY>two",
        "extra": {"speech_token_1": [1], "speech_token_2": [2], "question_1": "first"},
        "task": "<S2TCHAT> <TEXT2TOKEN> <HISTORY>",
    }
    record = from_raw(raw, "x")
    assert record.history == (Turn("1.wav", "first", "one", (1,)),)
    assert (record.wav, record.txt, record.reply_emotion, record.speech_token) == ("2.wav", "two", "happy", (2,))


@pytest.mark.parametrize(
    ("txt", "found"),
    [
        ("<悲伤>one", ("one", "sad")),
        (" <worried> one", ("one", "neutral")),
        ("<谄媚>one", ("one", "neutral")),
        ("<&&>one", ("one", "")),
        ("one <SAD>", ("one <SAD>", "")),
        (f"<{'x' * 40}>one", (f"<{'x' * 40}>one", "")),
    ],
)
def test_the_tag_that_any_reply_begins_with_is_its_emotion(txt: str, found: tuple[str, str]) -> None:
    raw = {"key": "k", "wav": "2.wav", "txt": txt, "wav_1": "1.wav", "txt_1": txt}
    record = from_raw(raw, "x")
    for said in (record, *record.history, *prefixes(record)):
        assert (said.txt, said.reply_emotion) == found
    numbered = from_raw({"key": "k", "wav_1": "1.wav", "txt_1": txt, "wav_2": "2.wav", "txt_2": txt}, "x")
    assert numbered == record
    assert from_raw(msgspec.json.decode(msgspec.json.encode(to_raw(record))), "x") == record


def test_an_emotion_that_is_told_leaves_the_text_as_it_is() -> None:
    extra = {"a_emotion": "<HAPPY>", "a_emotion_1": "<SAD>"}
    record = from_raw({"key": "k", "wav": "2.wav", "txt": "<b>two", "txt_1": "<b>one", "extra": extra}, "x")
    assert (record.txt, record.reply_emotion) == ("<b>two", "happy")
    assert record.history == (Turn(txt="<b>one", reply_emotion="sad"),)
    assert record.extra == {}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"key": ""}, "no `key`"),
        ({"txt": 3}, "`txt` is int, not text"),
        ({"extra": []}, "`extra` is not an object"),
        ({"extra": {"speech_token": "1 2"}}, "not a list of whole numbers"),
        ({"extra": {"speech_token": [1.5]}}, "not a list of whole numbers"),
        ({"wav_2": "b.wav"}, "not numbered from 1"),
    ],
)
def test_a_broken_record_is_told_with_its_place(change: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told) as error:
        from_raw({**RAW, **change}, "a.list line 7")
    assert str(error.value).startswith("a.list line 7")


def test_what_training_cannot_use_is_named() -> None:
    record = Record("k", labels=Labels(emotion="bored"), speech_token=(3, 9000))
    assert record.problems(4096) == [
        "unknown emotion 'bored'",
        "speech token 9000 is outside 0–4095",
    ]
    assert Record("k", history=(Turn(reply_emotion="smug"),)).problems() == ["unknown reply emotion 'smug'"]
    assert Record("k", speech_token=(-1,)).problems() == ["speech token -1 is outside 0–…"]


def test_what_is_heard_may_be_more_than_the_exchange_is_about() -> None:
    record = Record("k", labels=Labels(emotion="sad"), extra={"heard": {"emotion": "sad", "age": "<OLD>", "odd": 1}})
    assert record.heard == Labels(emotion="sad", age="old")
    assert Record("k", labels=Labels(age="old")).heard == Labels(age="old")
    assert Record("k", extra={"heard": {"age": "ancient"}}).problems() == ["unknown age 'ancient'"]


def test_a_dialogue_is_a_record_for_each_of_its_replies() -> None:
    turns = (Turn("1.wav", "q1", "a1", (1,)), Turn("2.wav", "q2", "a2", (2,)))
    record = Record("k", "a3", "3.wav", history=turns, extra={"part": "train", "cue": "sad"}, home="h")
    one, two, three = prefixes(record)
    assert (one.key, one.txt, one.wav, one.history, one.part, one.home) == ("k_1", "a1", "1.wav", (), "train", "h")
    assert (two.txt, two.speech_token, two.history) == ("a2", (2,), turns[:1])
    assert three is record


def test_understanding_tasks_say_what_they_ask_for() -> None:
    assert understanding(Record("k", task="<TRANSCRIBE> <EMOTION>")) == (True, ("emotion",))
    assert understanding(Record("k", task="<CAPTION>")) == (False, ("event",))
    assert understanding(Record("k", task="<S2TCHAT> <TEXT2TOKEN>")) is None


def test_text_records_are_dialogues_or_texts_with_numbers() -> None:
    said = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    assert text_from_raw(said, "x").messages[1] == Message("assistant", "hello")
    assert text_from_raw({"text": "I am glad", "targets": [3, 2.5]}, "x") == TextRecord(
        (Message("user", "I am glad"),), (3.0, 2.5)
    )
    assert text_from_raw({"text": "a", "target": 1}, "x").targets == (1.0,)
    for broken in ({"messages": []}, {"text": 3}, {"messages": [{"role": "judge", "content": ""}]}, []):
        with pytest.raises(DataError, match=r"^rows line 2"):
            text_from_raw(broken, "rows line 2")
