"""The chat-completions model against a real local server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import wave
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from overtone.errors import ModelFailure, UsageError
from overtone.models import openai
from overtone.models._chat import NO_SPEECH, TEXT_ONLY
from overtone.schema import Key, Message, Request, Sound, Usage
from overtone.spec import parse_spec
from tests.models.conftest import Make, sound_of
from tests.servers import OpenAIServer, tone

Connect = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(keep_audio=True) as running:
        yield running


@pytest.fixture
async def connect(server: OpenAIServer) -> AsyncIterator[Connect]:
    opened = []

    async def make(query: str = "") -> openai.OpenAI:
        model = openai.load(parse_spec(f"openai:any?base_url={server.base_url}&timeout=5{query}"))
        await model.open()
        opened.append(model)
        return model

    yield make
    for model in opened:
        await model.close()


async def test_the_server_decodes_exactly_the_bytes_of_the_sound(
    server: OpenAIServer, connect: Connect, request_with: Make, sound: Sound
) -> None:
    reply = await (await connect()).ask(request_with())
    assert server.asked[0].wavs == [sound.wav]
    assert server.asked[0].sounds == (sound.sha256,)
    assert reply.text.startswith("I hear you")
    assert reply.usage == Usage(50, 4, 40, 0)
    assert (reply.finish, reply.model, reply.audio) == ("stop", "test-model-1", None)
    assert not reply.refused and not reply.notes


async def test_messages_keep_their_roles_and_the_order_of_their_parts(server: OpenAIServer, connect: Connect) -> None:
    first, second = sound_of(tone(1)), sound_of(tone(2))
    messages = (
        Message("system", ("Listen.",)),
        Message("user", ("before", first, "between", second)),
        Message("assistant", ("I heard you.",)),
        Message("user", ("and now?",)),
    )
    await (await connect()).ask(Request(Key("i", "c"), messages))
    sent = server.asked[0].body["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert sent[0]["content"] == "Listen."
    assert [p.get("text", p["type"]) for p in sent[1]["content"]] == ["before", "input_audio", "between", "input_audio"]
    assert sent[1]["content"][1]["input_audio"] == {"format": "wav"}
    assert sent[2]["content"] == "I heard you."
    assert server.asked[0].sounds == (first.sha256, second.sha256)


async def test_parameters_are_sent_only_when_given(server: OpenAIServer, connect: Connect, request_with: Make) -> None:
    await (await connect()).ask(request_with())
    assert set(server.asked[0].body) == {"model", "messages"}
    await (await connect("&temperature=0.5&max_tokens=64&seed=7&top_p=0.9")).ask(request_with())
    sent = {k: v for k, v in server.asked[1].body.items() if k != "messages"}
    assert sent == {"model": "any", "temperature": 0.5, "max_tokens": 64, "seed": 7, "top_p": 0.9}


async def test_the_seed_of_a_request_wins_over_the_specs(
    server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    await (await connect("&seed=7")).ask(request_with(seed=8))
    assert server.asked[0].body["seed"] == 8


async def test_newer_endpoints_get_max_completion_tokens(
    server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    await (await connect("&max_tokens=64&max_tokens_field=max_completion_tokens")).ask(request_with())
    assert server.asked[0].body["max_completion_tokens"] == 64
    assert "max_tokens" not in server.asked[0].body


async def test_sound_can_travel_as_a_data_url(
    server: OpenAIServer, connect: Connect, request_with: Make, sound: Sound
) -> None:
    await (await connect("&audio_part=audio_url")).ask(request_with())
    assert server.asked[0].body["messages"][1]["content"][0]["type"] == "audio_url"
    assert server.asked[0].wavs == [sound.wav]


async def test_speech_comes_back_as_a_wav_with_its_transcript(
    server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    reply = await (await connect("&voice=verse")).ask(request_with(speech=True))
    assert server.asked[0].body["modalities"] == ["text", "audio"]
    assert server.asked[0].body["audio"] == {"voice": "verse", "format": "wav"}
    assert reply.text.startswith("I hear you")
    assert reply.usage.output_audio_tokens == 30
    with wave.open(io.BytesIO(reply.audio)) as file:
        assert (file.getframerate(), file.getnframes()) == (24_000, 7200)


async def test_speech_no_never_asks_for_it(server: OpenAIServer, connect: Connect, request_with: Make) -> None:
    reply = await (await connect("&speech=no")).ask(request_with(speech=True))
    assert "modalities" not in server.asked[0].body
    assert reply.audio is None and reply.notes == ()


async def test_an_endpoint_that_refuses_speech_is_asked_for_text_and_that_is_remembered(
    server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    server.always = "no_modalities"
    model = await connect()
    first = await model.ask(request_with(speech=True))
    second = await model.ask(request_with(speech=True))
    assert first.notes == second.notes == (TEXT_ONLY,)
    assert first.text
    assert [asked.speech for asked in server.asked] == [True, False, False]


async def test_a_rejection_that_text_does_not_cure_is_not_remembered_as_a_refusal_of_speech(
    server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    server.behave("400:audio output is off", "400:audio output is off")
    model = await connect()
    with pytest.raises(ModelFailure) as failure:
        await model.ask(request_with(speech=True))
    assert failure.value.reason == "rejected"
    assert (await model.ask(request_with(speech=True))).audio is not None


async def test_with_speech_yes_a_refusal_of_speech_is_a_failure(
    server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    model = await connect("&speech=yes")
    for behaviour in ("no_modalities", "no_speech"):
        server.behave(behaviour)
        with pytest.raises(ModelFailure) as failure:
            await model.ask(request_with(speech=True))
        assert failure.value.reason == "speech_refused"
    assert len(server.asked) == 2


async def test_speech_that_does_not_come_is_noted(server: OpenAIServer, connect: Connect, request_with: Make) -> None:
    server.behave("no_speech")
    reply = await (await connect()).ask(request_with(speech=True))
    assert reply.notes == (NO_SPEECH,) and reply.audio is None and reply.text


@pytest.mark.parametrize("behaviour", ["bad_base64", "cut_wav"])
async def test_cut_speech_is_asked_for_again(
    server: OpenAIServer, connect: Connect, request_with: Make, behaviour: str
) -> None:
    server.behave(behaviour)
    with pytest.raises(ModelFailure) as failure:
        await (await connect()).ask(request_with(speech=True))
    assert (failure.value.reason, failure.value.retry) == ("truncated_audio", True)


@pytest.mark.parametrize(("behaviour", "finish", "text"), [
    ("refusal", "refusal", "I cannot help with that."),
    ("content_filter", "content_filter", ""),
])  # fmt: skip
async def test_a_refusal_is_an_answer(
    server: OpenAIServer, connect: Connect, request_with: Make, behaviour: str, finish: str, text: str
) -> None:
    server.behave(behaviour)
    reply = await (await connect()).ask(request_with(speech=True))
    assert (reply.refused, reply.finish, reply.text) == (True, finish, text)


@pytest.mark.parametrize("behaviour", ["malformed", "wrong_shape", "empty"])
async def test_an_answer_of_another_shape_is_malformed_and_shown(
    server: OpenAIServer, connect: Connect, request_with: Make, behaviour: str
) -> None:
    server.behave(behaviour)
    with pytest.raises(ModelFailure) as failure:
        await (await connect()).ask(request_with())
    assert (failure.value.reason, failure.value.retry, failure.value.fatal) == ("malformed", True, False)
    assert "it begins: {" in failure.value.detail


async def test_sixty_four_requests_at_once_each_get_their_own_answer(server: OpenAIServer, connect: Connect) -> None:
    server.latency = 0.2
    model = await connect()

    async def one(number: int) -> bool:
        wav = tone(number, seconds=1.0)
        text = f"question {number}"
        reply = await model.ask(Request(Key("i", "c"), (Message("user", (sound_of(wav), text)),)))
        digest = hashlib.sha256("\n".join((text, hashlib.sha256(wav).hexdigest())).encode()).hexdigest()
        return bool(reply.text == f"I hear you {digest[:8]}")

    assert all(await asyncio.gather(*(one(number) for number in range(64))))
    assert server.most_at_once >= 48


def read(answer: bytes, query: str = "") -> Any:
    model = openai.load(parse_spec(f"openai:any?base_url=http://127.0.0.1:1/v1{query}"))
    return model.read(openai.Endpoint(model.url()), answer, True, ())


def test_text_and_speech_may_come_in_two_choices() -> None:
    data = base64.b64encode(tone()).decode()
    answer = '{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"},{"message":{"audio":{"data":"%s"}}}]}'
    reply = read((answer % data).encode())
    assert (reply.text, reply.audio, reply.finish) == ("hello", tone(), "stop")


def test_content_may_be_a_list_of_parts() -> None:
    reply = read(b'{"choices":[{"message":{"content":[{"type":"text","text":"a "},{"type":"x"},{"text":"b"}]}}]}')
    assert reply.text == "a b"


@pytest.mark.parametrize(("label", "query"), [(',"format":"pcm16"', ""), ("", "&speech_format=pcm16")])
def test_bare_pcm_gets_a_header(label: str, query: str) -> None:
    pcm = tone()[44:]
    answer = b'{"choices":[{"message":{"audio":{"data":"%s"%s}}}]}' % (base64.b64encode(pcm), label.encode())
    assert read(answer, query).audio == tone()


def test_an_error_sent_with_status_200_is_still_an_error() -> None:
    with pytest.raises(ModelFailure) as failure:
        read(b'{"error":{"message":"slow down","code":429}}')
    assert (failure.value.reason, failure.value.overload) == ("rate_limited", True)


def test_a_prompt_stopped_by_a_filter_is_a_refusal() -> None:
    model = openai.load(parse_spec("openai:any?base_url=http://127.0.0.1:1/v1"))
    assert model.rejected(ModelFailure("rejected", "HTTP 400 (content_filter): filtered"), ()).refused


@pytest.mark.parametrize(("spec", "words"), [
    ("openai:", "name is missing"),
    ("openai:m?vioce=x", "did you mean 'voice'"),
    ("openai:m?audio_part=audio_uri", "did you mean 'audio_url'"),
    ("openai:m?max_tokens=0", "max_tokens must be between"),
    ("openai:m?temperature=hot", "temperature must be a number"),
    ("openai:m?temperature=-1", "temperature must be between"),
    ("openai:m?top_p=2", "top_p must be between"),
    ("openai:m?timeout=0", "timeout must be a positive number"),
    ("openai:m?timeout=nan", "timeout must be a positive number"),
    ("openai:m?speech=maybe", "speech must be auto, yes or no"),
    ("openai:m?base_url=http://user:pw@host/v1", "user name or password"),
    ("openai:m?base_url=ftp://host/v1", "not an http(s) URL"),
    ("openai:m?api_key=abc", "looks like a secret"),
])  # fmt: skip
def test_a_wrong_spec_says_what_is_wrong(spec: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        openai.load(parse_spec(spec))
    assert words in str(error.value)
    assert "pw" not in str(error.value)


async def test_openais_own_host_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        await openai.load(parse_spec("openai:m")).open()


async def test_openais_key_is_not_sent_to_another_host(
    monkeypatch: pytest.MonkeyPatch, server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    await (await connect()).ask(request_with())
    assert "Authorization" not in server.asked[0].headers


async def test_a_named_key_is_sent_and_a_named_key_that_is_unset_is_an_error(
    monkeypatch: pytest.MonkeyPatch, server: OpenAIServer, connect: Connect, request_with: Make
) -> None:
    monkeypatch.delenv("OTHER_KEY", raising=False)
    with pytest.raises(UsageError, match="OTHER_KEY is not set"):
        await connect("&api_key_env=OTHER_KEY")
    monkeypatch.setenv("OTHER_KEY", "abc123")
    await (await connect("&api_key_env=OTHER_KEY")).ask(request_with())
    assert server.asked[0].headers["Authorization"] == "Bearer abc123"


def test_describe_names_what_shapes_the_answers_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    model = openai.load(parse_spec("openai:m?temperature=0&max_tokens=9&api_key_env=OPENAI_API_KEY"))
    said = model.describe()
    assert said["model"] == "m" and said["temperature"] == 0 and said["max_tokens"] == 9
    assert "sk-secret" not in f"{said}{model!r}"
