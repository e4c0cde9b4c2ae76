"""The Gemini model against a real local server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from overtone.errors import ModelFailure, UsageError
from overtone.models import gemini
from overtone.models._chat import TEXT_ONLY
from overtone.schema import Key, Message, Request, Sound, Usage
from overtone.spec import parse_spec
from tests.models.conftest import Make
from tests.servers import GeminiServer

Connect = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer(keep_audio=True) as running:
        yield running


@pytest.fixture
async def connect(server: GeminiServer) -> AsyncIterator[Connect]:
    opened = []

    async def make(query: str = "", name: str = "gemini-test") -> gemini.Gemini:
        model = gemini.load(parse_spec(f"gemini:{name}?base_url={server.base_url}&timeout=5{query}"))
        await model.open()
        opened.append(model)
        return model

    yield make
    for model in opened:
        await model.close()


async def test_the_request_is_in_geminis_own_format(server: GeminiServer, connect: Connect, sound: Sound) -> None:
    messages = (
        Message("system", ("Be brief.",)),
        Message("user", (sound, "Well?")),
        Message("assistant", ("I see.",)),
        Message("user", ("And?",)),
    )
    model = await connect("&temperature=0.5&top_p=0.9&max_tokens=64&seed=3")
    await model.ask(Request(Key("i", "c"), messages, seed=4))
    asked = server.asked[0]
    assert asked.path == "/v1beta/models/gemini-test:generateContent"
    assert asked.wavs == [sound.wav]
    assert asked.body["system_instruction"] == {"parts": [{"text": "Be brief."}]}
    assert [content["role"] for content in asked.body["contents"]] == ["user", "model", "user"]
    assert asked.body["contents"][0]["parts"] == [{"inline_data": {"mime_type": "audio/wav"}}, {"text": "Well?"}]
    assert asked.body["generationConfig"] == {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 64, "seed": 4}


async def test_nothing_is_configured_that_was_not_given(
    server: GeminiServer, connect: Connect, request_with: Make
) -> None:
    await (await connect(name="models/gemini-test")).ask(request_with())
    assert set(server.asked[0].body) == {"contents", "system_instruction"}


async def test_text_leaves_the_thoughts_out_and_usage_counts_them(
    server: GeminiServer, connect: Connect, request_with: Make
) -> None:
    reply = await (await connect()).ask(request_with())
    assert reply.text.startswith("I hear you")
    assert reply.usage == Usage(50, 4 + 7, 40, 0)
    assert (reply.finish, reply.model) == ("stop", "test-gemini-1")


async def test_bare_pcm_comes_back_as_a_wav(server: GeminiServer, connect: Connect, request_with: Make) -> None:
    reply = await (await connect("&voice=Kore")).ask(request_with(speech=True))
    config = server.asked[0].body["generationConfig"]
    assert config["responseModalities"] == ["TEXT", "AUDIO"]
    assert config["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"] == "Kore"
    assert reply.audio[:4] == b"RIFF" and reply.audio[24:28] == (24_000).to_bytes(4, "little")
    assert reply.text and reply.usage.output_audio_tokens == 30


async def test_a_model_without_a_voice_is_asked_for_text(
    server: GeminiServer, connect: Connect, request_with: Make
) -> None:
    server.always = "no_modalities"
    model = await connect()
    for _ in range(2):
        assert (await model.ask(request_with(speech=True))).notes == (TEXT_ONLY,)
    assert [asked.speech for asked in server.asked] == [True, False, False]


@pytest.mark.parametrize("behaviour", ["refusal", "content_filter"])
async def test_a_blocked_prompt_or_answer_is_a_refusal(
    server: GeminiServer, connect: Connect, request_with: Make, behaviour: str
) -> None:
    server.behave(behaviour)
    reply = await (await connect()).ask(request_with())
    assert (reply.refused, reply.finish, reply.text) == (True, "safety", "")


@pytest.mark.parametrize(("behaviour", "reason"), [
    ("malformed", "malformed"),
    ("wrong_shape", "malformed"),
    ("empty", "malformed"),
    ("cut_wav", "truncated_audio"),
    ("bad_base64", "truncated_audio"),
    ("429:3", "rate_limited"),
    ("400:API key not valid. Please pass a valid API key.", "auth"),
    ("400:audio is too long", "rejected"),
])  # fmt: skip
async def test_each_failure_has_its_reason(
    server: GeminiServer, connect: Connect, request_with: Make, behaviour: str, reason: str
) -> None:
    server.behave(behaviour)
    with pytest.raises(ModelFailure) as failure:
        await (await connect()).ask(request_with(speech=True))
    assert failure.value.reason == reason
    assert failure.value.fatal == (reason == "auth")


async def test_the_key_travels_in_a_header_only(
    monkeypatch: pytest.MonkeyPatch, server: GeminiServer, connect: Connect, request_with: Make
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "google-secret")
    await (await connect()).ask(request_with())
    assert "google-secret" not in str(server.asked[0].headers), "Google's key is for Google's host"
    model = await connect("&api_key_env=GEMINI_API_KEY")
    await model.ask(request_with())
    assert server.asked[1].headers["x-goog-api-key"] == "google-secret"
    assert "google-secret" not in f"{server.asked[1].path}{model!r}{model.describe()}"
    server.behave("echo_key")
    with pytest.raises(ModelFailure) as failure:
        await model.ask(request_with())
    assert "google-secret" not in str(failure.value)


async def test_googles_host_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="GEMINI_API_KEY is not set"):
        await gemini.load(parse_spec("gemini:m")).open()


def test_a_wrong_spec_says_what_is_wrong() -> None:
    with pytest.raises(UsageError, match="did you mean 'voice'"):
        gemini.load(parse_spec("gemini:m?voices=x"))
    with pytest.raises(UsageError, match="name is missing"):
        gemini.load(parse_spec("gemini"))
