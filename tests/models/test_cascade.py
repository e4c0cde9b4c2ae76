"""The offline cascade: deaf to all but words, unless it is asked to listen."""

from __future__ import annotations

import asyncio
import hashlib
import sys

import numpy as np
import pytest

from overtone import audio
from overtone.cues import BY_SLUG
from overtone.embedded import espeak_voice
from overtone.errors import MissingExtra, ModelFailure, UsageError
from overtone.models.cascade import Cascade, load
from overtone.schema import Key, Message, Reply, Request, Sound
from overtone.spec import parse_spec

WORDS = "We are having dinner with my grandmother on Sunday."
KEY = Key("item", "task/audio")


def sound(samples: audio.Samples, rate: int = 22_050) -> Sound:
    wav = audio.encode_wav(samples, rate)
    return Sound(wav, hashlib.sha256(wav).hexdigest(), len(samples) / rate)


def said(**manner: object) -> Sound:
    return sound(espeak_voice.speak(WORDS, **manner)[0] * 0.5)  # type: ignore[arg-type]


def ask(model: Cascade, task: str, *parts: str | Sound, options: tuple[str, ...] = (), speech: bool = False) -> Reply:
    messages = (Message("system", ("You are a voice assistant.",)), Message("user", parts))
    request = Request(KEY, messages, speech, task, options)

    async def once() -> Reply:
        await model.open()
        try:
            return await model.ask(request)
        finally:
            await model.close()

    return asyncio.run(once())


def model(spec: str = "cascade?max_tokens=12") -> Cascade:
    return load(parse_spec(spec))


@pytest.mark.parametrize("spec", ["cascade?heer=acoustic", "cascade?hear=nose", "cascade:x", "cascade?threads=0"])
def test_a_wrong_spec_is_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        model(spec)


@pytest.mark.local
def test_an_unknown_reply_voice_is_refused_on_opening() -> None:
    with pytest.raises(UsageError, match="nobody"):
        asyncio.run(model("cascade?voice=en-us%2Bnobody").open())


def test_a_missing_package_is_named_on_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "moonshine_voice", None)
    with pytest.raises(MissingExtra, match="overtone setup local"):
        asyncio.run(model().open())


@pytest.mark.local
def test_transcribing_gives_the_recognisers_words() -> None:
    assert "dinner with my grandmother" in ask(model(), "transcribe", "Write it down.", said()).text
    assert ask(model(), "transcribe", "Write it down.", audio.silence(1.0)).text == ""


@pytest.mark.local
def test_deaf_it_answers_two_deliveries_of_the_same_words_alike() -> None:
    deaf = model()
    soft, loud = said(), sound(espeak_voice.speak(WORDS)[0] * 0.9)
    assert soft.sha256 != loud.sha256
    assert deaf._hear(soft) == deaf._hear(loud)
    assert ask(deaf, "converse", soft).text == ask(deaf, "converse", loud).text != ""


@pytest.mark.local
def test_a_reply_is_spoken_when_speech_is_wanted() -> None:
    reply = ask(model("cascade?max_tokens=6&voice=en-gb%2Bf4"), "converse", said(), speech=True)
    assert reply.audio is not None
    samples, _ = audio.decode(reply.audio)
    assert len(samples) > 4000 and np.abs(samples).max() > 0.05
    assert reply.usage.output_tokens > 0 and reply.model == "cascade"
    assert ask(model("cascade?max_tokens=2&speech=no"), "converse", "Hello.", speech=True).audio is None


@pytest.mark.local
def test_text_alone_and_silence_are_answered() -> None:
    assert ask(model(), "converse", WORDS).text
    assert ask(model("cascade?hear=acoustic&max_tokens=4"), "converse", audio.silence(1.0)).text


@pytest.mark.local
def test_listening_it_describes_a_shouted_and_a_whispered_clip_differently() -> None:
    ear = model("cascade?hear=acoustic")
    shout = sound(audio.level(espeak_voice.speak(WORDS, voice="en-us+f4", pitch=95)[0], -14))
    whisper = sound(audio.level(espeak_voice.speak(WORDS, voice="en-us+whisper")[0], -34))
    loud, soft = ear._hear(shout).line, ear._hear(whisper).line
    assert "loud" in loud and "quiet" in soft.partition(";")[0] and loud != soft


@pytest.mark.local
def test_questions_about_the_voice_are_answered_by_the_ear_and_follow_the_options() -> None:
    ear = model("cascade?hear=acoustic")
    options = (BY_SLUG["male"].option, BY_SLUG["female"].option)
    woman = said(voice="en-us+f4", rate_wpm=160)
    first = ask(ear, "choose", "Man or woman?", woman, options=options)
    assert first.text == "The answer is: [B]" and first.notes
    assert ask(ear, "choose", "Man or woman?", woman, options=options[::-1]).text == "The answer is: [A]"


@pytest.mark.local
def test_options_that_name_no_cue_go_to_the_language_model() -> None:
    reply = ask(model("cascade?hear=acoustic"), "choose", "What next?", said(), options=("A recipe.", "A hug."))
    assert reply.usage.output_tokens > 0 and not reply.notes


@pytest.mark.local
def test_a_sound_that_cannot_be_decoded_is_a_bad_clip() -> None:
    with pytest.raises(ModelFailure, match="bad_clip"):
        ask(model(), "converse", Sound(b"RIFFxxxxWAVE", "0" * 64, 1.0))


@pytest.mark.local
def test_the_description_names_what_answers_depend_on() -> None:
    deaf, ear = model().describe(), model("cascade?hear=acoustic").describe()
    assert deaf["max_tokens"] == 12 and deaf["hear"] == "words" and "ear" not in deaf
    assert ear["ear"].startswith("lda-") and "SmolLM2" in ear["language"]
