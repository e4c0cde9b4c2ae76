"""A checkpoint answers messages of text and sound, alone or among others, at once or piece by piece."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from overtone.echat.net import checkpoint, config
from overtone.echat.net.decode import Sampling
from overtone.echat.speech import open_tokens
from overtone.echat.speech.units import say
from overtone.echat.talk.answer import Answerer, TooLong, _TextStream, dtype_for, open_answerer
from overtone.echat.talk.dialogue import Asked, Message, read, to_wave
from overtone.echat.talk.reply_settings import ReplySettings, Trained, reply_settings, trained
from overtone.echat.talk.streaming_speech import AHEAD, RATE, StreamingSpeech
from overtone.errors import AudioError, UsageError

pytestmark = pytest.mark.local
SHORT = ReplySettings(max_text=24, max_speech=40, think="", speech=Sampling(1.0, 50))


@pytest.fixture(scope="module")
def answerer(tiny: Path) -> Answerer:
    return open_answerer(tiny, SHORT, device="cpu")


def noise(seconds: float, seed: int = 0) -> Any:
    return (0.1 * np.random.default_rng(seed).standard_normal(round(16_000 * seconds))).astype(np.float32)


def user(*parts: Any) -> Message:
    return Message("user", parts)


def prompt(answerer: Answerer, asked: Asked, **more: Any) -> str:
    """What the model reads, with | for a clip."""
    ids = answerer.lay_out(asked, **more).sequence.ids
    text = "".join("|" if i == -2 else chr(i) if i < 256 else "" for i in ids)
    return text.encode("latin-1").decode()


def test_a_spoken_message_is_answered_as_in_training(answerer: Answerer) -> None:
    assert prompt(answerer, Asked((user(noise(0.5)),))).endswith("answer in fitting text.\nuser\n|\nassistant\n")
    assert "text and fitting speech" in prompt(answerer, Asked((user(noise(0.5)),), speech=True))


def test_a_question_about_a_sound_stands_before_it(answerer: Answerer) -> None:
    for task in ("choose", ""):
        seen = prompt(answerer, Asked((user(noise(0.5), "How old is the speaker?"),), task=task))
        assert seen.startswith("system\nYou hear a recording and answer what is asked")
        assert "user\nHow old is the speaker?|\n" in seen


def test_the_words_are_asked_for_as_in_training(answerer: Answerer) -> None:
    seen = prompt(answerer, Asked((user("Please transcribe!", noise(0.5)),), task="transcribe"))
    assert "user\nWrite down what is said.|\n" in seen


def test_text_beside_a_sound_of_a_conversation_is_read(answerer: Answerer) -> None:
    seen = prompt(answerer, Asked((user("We are at the station.", noise(0.5)),), task="converse"))
    assert seen.startswith("system\nYou hear words and voice") and "user\nWe are at the station.|\n" in seen


def test_the_last_five_turns_are_heard_with_their_sound(answerer: Answerer) -> None:
    turns = [m for n in range(7) for m in (user(noise(0.3, n)), Message("assistant", (f"reply {n}", (n, n, n))))]
    asked = Asked((*turns, user(noise(0.4))), speech=True, task="converse")
    laid = answerer.lay_out(asked)
    assert [len(wave) for wave in laid.waves] == [4800] * 5 + [6400]
    assert np.array_equal(laid.waves[0], noise(0.3, 2))
    codes = [i - answerer.tok.vocab for i in laid.sequence.ids if answerer.tok.vocab <= i < answerer.tok.edge]
    assert codes == [n for n in range(2, 7) for _ in range(3)]
    assert "reply 1" not in prompt(answerer, asked) and "reply 2" in prompt(answerer, asked)


def test_an_earlier_reply_that_is_given_as_sound_is_heard_as_codes(answerer: Answerer) -> None:
    sound, rate = say("Good morning.")
    wave = np.interp(np.arange(0, len(sound), rate / 16_000), np.arange(len(sound)), sound).astype(np.float32)
    asked = Asked((user("Hello"), Message("assistant", ("Good morning.", wave)), user(noise(0.3))), speech=True)
    codes = [i for i in answerer.lay_out(asked).sequence.ids if answerer.tok.vocab <= i < answerer.tok.edge]
    assert len(codes) == len(open_tokens("units2").encode(wave, 16_000)) > 10


def test_a_foreign_system_prompt_is_told_or_used(answerer: Answerer, tiny: Path) -> None:
    asked = Asked((Message("system", ("Be brief.",)), user(noise(0.3))))
    assert "Be brief." not in prompt(answerer, asked)
    assert any("system prompt was ignored" in note for note in answerer.lay_out(asked).notes)
    given = open_answerer(tiny, ReplySettings(system="given"), device="cpu")
    assert prompt(given, asked).startswith("system\nBe brief.") and not given.lay_out(asked).notes


def test_many_are_answered_as_each_alone(answerer: Answerer) -> None:
    many = [
        Asked((user(noise(0.5)),), speech=True, seed=3),
        Asked((user("Which is it? A. sad B. happy", noise(0.8)),), task="choose"),
        Asked((user("Hello"),), speech=True, seed=4),
        Asked((user(noise(1.1)),), speech=True, seed=5),
    ]
    together = answerer.answer(many)
    for asked, found in zip(many, together, strict=True):
        alone = answerer.answer([asked])[0]
        assert (alone.text, alone.codes, alone.finish) == (found.text, found.codes, found.finish)
        assert (found.sound is not None) == asked.speech
        if found.sound is not None:
            assert len(found.sound) == round(float(answerer.tokens.seconds(np.array(found.codes)).sum()) * RATE)


def test_thoughts_follow_the_training(tiny: Path) -> None:
    found = open_answerer(tiny, ReplySettings(max_text=30), device="cpu")
    assert found.think == "label" and not found.interleave
    answer = found.answer([Asked((user(noise(0.5)),))])[0]
    assert answer.thought.startswith("<think>User's words:")
    assert answer.text == "" and any(note.startswith("malformed: the thought has no end") for note in answer.notes)


def test_what_was_taught_is_read_from_the_stage() -> None:
    mini = config.read("mini")
    assert trained(mini, {"stage": "3"}) == Trained("label", True, True)
    assert trained(mini, {"stage": "3", "ablate": ["think"]}) == Trained("", True, False)
    assert trained(mini, {"stage": "1b"}) == trained(mini, {}) == Trained()


def test_a_thought_is_taken_off_the_text(answerer: Answerer) -> None:
    thought = (
        "<think>User's words: I won, Age: <ADULT>, Gender: <MALE>, Emotion: <HAPPY>, Sound Event: <OTHER>, "
        "Predicted reply emotion: <JOYFUL><think end>"
    )
    text = f"{thought}<JOYFUL>How nice!"
    laid = answerer.lay_out(Asked((user(noise(0.3)),)))
    found = answerer._answer(laid, answerer._decoded(answerer.tok.encode(text), (1, 2, 3)))
    assert (found.text, found.thought, found.emotion) == ("How nice!", thought, "joyful")


@pytest.mark.parametrize(
    ("text", "thinks", "told"),
    [
        ("<think>why<think end><HAPPY>Hé llo <b>!", True, ("<think>why<think end>", "Hé llo <b>!")),
        ("<think>why<think end>Hello", True, ("<think>why<think end>", "Hello")),
        ("<think>never ends", True, ("<think>never ends", "")),
        ("<HAPPY>Hello", False, ("", "Hello")),
        ("<odd>Hello", False, ("", "<odd>Hello")),
        (" Hello", False, ("", "Hello")),
        ("<HAP", False, ("", "<HAP")),
    ],
)
def test_text_comes_in_pieces_without_thought_and_tag(
    answerer: Answerer, text: str, thinks: bool, told: tuple[str, str]
) -> None:
    assert streamed(answerer, answerer.tok.encode(text), thinks) == told


def streamed(answerer: Answerer, ids: list[int], thinks: bool, chat: bool = True) -> tuple[str, str]:
    reading = _TextStream(answerer.tok, thinks, chat)
    pieces = [piece for token in ids for piece in reading.more(token)] + list(reading.rest())
    return "".join(piece.thought for piece in pieces), "".join(piece.text for piece in pieces)


TAGGED = "<think>User's words: hi, Age: <ADULT>, Predicted reply emotion: <HAPPY>"
BITS = ["<think>", "<think end>", "</think end>", "</think>", "<thi", "<HAPPY>", "<foo>", "<", ">", " ", "\n", "Hé",
        "🙂", ", Age: <OLD>", "a long word that is no tag at all, really"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["", " ", "<think>", TAGGED]), st.lists(st.sampled_from(BITS), max_size=10), st.booleans())
@example("<think>", ["Hé", "</think>", "Hello "], True)
@example("<think>", ["Hé", "</think end>", "Hello"], True)
@example(TAGGED, ["<think end>", "<foo>", "Hi"], True)
@example(TAGGED, ["<think end>", "Hi", "<think end>", "There"], True)
@example("<think>", ["x", "<think end>", "Hello"], False)
@example("", ["<", "<think end>", "think end>", "Hello"], False)
def test_what_is_streamed_is_the_whole_answer(start: str, bits: list[str], thinks: bool) -> None:
    """Byte by byte, so that marks, tags and characters come in parts."""
    answerer = reader()
    ids = answerer.tok.encode(start + "".join(bits))
    laid = answerer.lay_out(Asked((user("Hello"),)))
    for chat in (True, False):
        how = msgspec.structs.replace(laid.how, thinks=thinks)
        prompt = msgspec.structs.replace(laid, how=how, chat=chat)
        whole = answerer._answer(prompt, answerer._decoded(ids, ()))
        assert streamed(answerer, ids, thinks, chat) == (whole.thought, whole.text)


@functools.cache
def reader() -> Answerer:
    """One that lays out and reads, and has nothing to say."""
    preset = config.read("tiny")
    return Answerer(checkpoint.make(preset), preset, open_tokens("units2"), SHORT)


@pytest.mark.parametrize(
    ("text", "thinks", "told"),
    [
        ("<think>abc</think>Hello", True, ("<think>abc</think>", "Hello")),
        ("<think>abc</think end>Hello", True, ("<think>abc</think end>", "Hello")),
        (f"{TAGGED}<think end><foo>Hi", True, (f"{TAGGED}<think end>", "Hi")),
        ("<think>a<think end>Hi<think end> There", True, ("<think>a<think end>", "Hi There")),
        ("<think>x<think end>Hello", False, ("<think>x<think end>", "Hello")),
        ("Hello \n", False, ("", "Hello")),
    ],
)
def test_a_thought_that_is_not_as_it_should_be_is_kept_apart_from_the_reply(
    text: str, thinks: bool, told: tuple[str, str]
) -> None:
    assert streamed(reader(), reader().tok.encode(text), thinks) == told


def test_streaming_gives_sound_after_twelve_codes(tiny: Path) -> None:
    found = open_answerer(tiny, ReplySettings(max_text=14, max_speech=60, think="", interleave=True), device="cpu")
    pieces = list(found.stream(Asked((user(noise(0.5)),), speech=True, seed=1)))
    whole = pieces[-1].whole
    assert whole is not None and whole.sound is None
    sounds = [len(piece.sound) for piece in pieces if piece.sound is not None]
    lengths = found.tokens.seconds(np.array(whole.codes))
    ahead = np.cumsum(lengths[:12][::-1])[::-1] > AHEAD + 1e-6  # codes that begin earlier than this before the end
    assert sounds[0] == round(float(lengths[:12][ahead].sum()) * RATE)
    assert sum(sounds) == pytest.approx(float(lengths.sum()) * RATE, abs=1)
    assert "".join(piece.text for piece in pieces).strip() == whole.text


def test_streamed_codes_are_those_that_come_at_once(tiny: Path) -> None:
    found = open_answerer(tiny, SHORT, device="cpu")
    for asked in (Asked((user(noise(0.5)),), True, seed=2), Asked((user("Hello"),), True, seed=2)):
        *_, last = found.stream(asked)
        assert last.whole is not None
        assert last.whole.codes == found.answer([asked])[0].codes != ()


@pytest.mark.parametrize("emotion", ["neutral", "comforting", "happy"])
def test_sound_in_pieces_has_no_clicks_and_the_same_length_and_level(emotion: str) -> None:
    tokens = open_tokens("units2")
    codes = tokens.encode(*say("I am sorry to hear that; would you like to tell me more about it?", emotion)).tolist()
    whole, _ = tokens.decode(np.array(codes), emotion)
    aloud = StreamingSpeech(tokens, emotion)
    pieces = [aloud.more(codes[at : at + 12]) for at in range(0, len(codes), 12)] + [aloud.rest()]
    sound = np.concatenate(pieces)
    assert len(sound) == len(whole)
    bends = np.abs(np.diff(sound, 2))
    usual = np.quantile(np.abs(np.diff(whole, 2)), 0.999)
    borders = np.cumsum([len(piece) for piece in pieces])[:-1]
    assert max(bends[b - 4 : b + 4].max() for b in borders if 4 < b < len(sound) - 4) < usual
    for b, piece in zip((0, *borders), pieces, strict=False):
        there = whole[b : b + len(piece)]
        if len(piece) > RATE // 2 and np.sqrt(np.mean(there**2)) > 0.01:
            assert 20 * np.log10(np.sqrt(np.mean(piece**2) / np.mean(there**2))) == pytest.approx(0, abs=5)


def test_sound_of_another_rate_is_given_at_ours() -> None:
    class Tones:
        name, codes, rate, identity = "tones", 8, 25.0, "tones"

        def encode(self, samples: Any, rate: int) -> Any:
            raise NotImplementedError

        def seconds(self, tokens: Any) -> Any:
            return np.full(len(tokens), 0.04)

        def decode(self, tokens: Any, emotion: str = "neutral") -> tuple[Any, int]:
            at = np.arange(len(tokens) * 882) / 22_050
            return (0.1 * np.sin(2 * np.pi * 200 * at)).astype(np.float32), 22_050

    aloud = StreamingSpeech(Tones())
    sound = np.concatenate([aloud.more([1] * 18), aloud.more([1] * 18), aloud.rest()])
    assert len(sound) == pytest.approx(36 * RATE // 25, abs=2)
    assert np.abs(np.diff(sound)).max() < 0.1 * 2 * np.pi * 200 / RATE * 1.2


def test_messages_become_turns() -> None:
    def none(wave: Any) -> tuple[int, ...]:
        return ()

    joined = read((user("one", noise(0.2)), user(noise(0.3), "two")), 30.0, none).turns
    assert len(joined) == 1 and joined[0].text == "one\ntwo"
    assert joined[0].wave is not None and len(joined[0].wave) == 16_000  # half a second between
    with pytest.raises(UsageError, match="must be from the user"):
        read((user("one"), Message("assistant", ("two",))), 30.0, none)
    with pytest.raises(UsageError, match="neither text nor audio"):
        read((user(),), 30.0, none)
    cut = read((user(noise(2.0)),), 1.5, none)
    assert cut.notes == ["only the first 1.5 s of 2.0 s of audio were used"]


def test_what_cannot_be_heard_or_read_is_refused(answerer: Answerer) -> None:
    with pytest.raises(AudioError, match="empty"):
        to_wave(b"")
    with pytest.raises(AudioError, match="too short"):
        from overtone.audio import encode_wav

        to_wave(encode_wav(noise(0.02), 16_000))
    with pytest.raises(TooLong, match="positions, but at most"):
        answerer.answer([Asked((user("x" * 5000, noise(0.3)),))])
    assert answerer.answer([Asked((user(noise(0.06)),))])[0].finish  # shorter than the encoder likes, but a sound


def test_who_allows_more_tokens_than_the_model_has_positions_gets_what_fits(answerer: Answerer) -> None:
    laid = answerer.lay_out(Asked((user(noise(0.3)),), max_text=100_000))
    assert laid.heard + laid.how.max_text == answerer.config.model.lm.context
    assert answerer.lay_out(Asked((user(noise(0.3)),), max_text=7)).how.max_text == 7


def test_limits_that_leave_no_room_for_a_spoken_message_are_told(tiny: Path) -> None:
    for seconds in (310, 280):  # with 220 tokens of text and 30 s of sound
        with pytest.raises(UsageError, match="4096 positions, not enough for 220 tokens of text and 3"):
            open_answerer(tiny, reply_settings({"max_speech": seconds}), device="cpu")
    most = open_answerer(tiny, reply_settings({"max_speech": 260}), device="cpu")
    assert most.lay_out(Asked((user(noise(30)),), speech=True)).how.max_text == 220


def test_a_manner_is_read_from_keys() -> None:
    made = reply_settings({"think": "none", "temperature": 0.5, "max_tokens": 9, "max_speech": 2.0, "system": "given"})
    assert made == ReplySettings("", None, "given", Sampling(0.5), ReplySettings().speech, 9, max_seconds=2.0)
    assert (made.most_codes(25.0), made.most_codes(12.5), ReplySettings().most_codes(12.5)) == (50, 25, 250)
    assert reply_settings({}) == ReplySettings()


def test_a_device_that_is_not_there_is_told(tiny: Path) -> None:
    with pytest.raises(UsageError, match="device must be auto"):
        open_answerer(tiny, SHORT, device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="sees no GPU"):
            open_answerer(tiny, SHORT, device="cuda")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_fewer_bits_answer_too(tiny: Path, dtype: str) -> None:
    found = open_answerer(tiny, SHORT, device="cpu", dtype=dtype).answer([Asked((user(noise(0.5)),), True)])[0]
    assert found.codes and found.sound is not None


def test_half_precision_is_for_the_processor(tiny: Path) -> None:
    with pytest.raises(UsageError, match="float16 needs a CPU"):
        dtype_for("cuda", "float16")
    assert [dtype_for("cpu"), dtype_for("cpu", "", "float16"), dtype_for("cuda:1", "", "float16")] == [
        "float32",
        "float16",
        "bfloat16",
    ]


def test_a_width_that_is_none_is_told(tiny: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'bfloat16'"):
        open_answerer(tiny, SHORT, device="cpu", dtype="bfloat")
