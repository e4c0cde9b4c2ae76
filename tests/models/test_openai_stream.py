"""Streamed chat completions from a real local server: pieces arrive early, and the whole reply equals `ask`'s."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from overtone.errors import ModelFailure
from overtone.models import Piece, openai
from overtone.spec import parse_spec
from tests.models.conftest import Make
from tests.servers import SPEECH_RATE, OpenAIServer


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
async def model(server: OpenAIServer) -> AsyncIterator[openai.OpenAI]:
    opened = openai.load(parse_spec(f"openai:any?base_url={server.base_url}&timeout=5"))
    await opened.open()
    yield opened
    await opened.close()


async def test_the_streamed_reply_is_the_one_that_ask_returns(model: openai.OpenAI, request_with: Make) -> None:
    request = request_with(speech=True)
    pieces: list[Piece] = []
    streamed, whole = await model.stream(request, pieces.append), await model.ask(request)
    assert streamed.notes == ("thought: The voice is calm.",)
    assert msgspec.structs.replace(streamed, notes=()) == whole
    assert "".join(piece.text for piece in pieces) == whole.text
    assert whole.audio is not None and b"".join(piece.pcm for piece in pieces) == whole.audio[44:]
    assert {piece.rate for piece in pieces if piece.pcm} == {SPEECH_RATE}


async def test_pieces_arrive_before_the_reply_is_complete(
    server: OpenAIServer, model: openai.OpenAI, request_with: Make
) -> None:
    server.pace = 0.05
    began, times = time.monotonic(), []
    await model.stream(request_with(speech=True), lambda piece: times.append(time.monotonic() - began))
    whole = time.monotonic() - began
    assert times[0] < 0.5 * whole and len(times) >= 5
    assert server.asked[0].body["stream"] is True
    assert server.asked[0].body["audio"]["format"] == "pcm16"


async def test_a_server_that_does_not_stream_gives_the_whole_reply(
    server: OpenAIServer, model: openai.OpenAI, request_with: Make
) -> None:
    server.behave("no_stream")
    reply = await model.stream(request_with(speech=True), lambda piece: pytest.fail("no piece was streamed"))
    assert reply.text.startswith("I hear you") and reply.audio is not None


@pytest.mark.parametrize(
    ("behaviour", "reason", "words"),
    [
        ("cut_stream", "connection", "ended before it was complete"),
        ("stream_error", "server", "the model failed"),
        ("bad_chunk", "malformed", "invalid chunk"),
        ("500", "server", "the server says 500"),
    ],
)
async def test_a_stream_that_breaks_is_a_failure(
    server: OpenAIServer, model: openai.OpenAI, request_with: Make, behaviour: str, reason: str, words: str
) -> None:
    server.behave(behaviour)
    with pytest.raises(ModelFailure, match=words) as failed:
        await model.stream(request_with(speech=True), lambda piece: None)
    assert failed.value.reason == reason and failed.value.retry


async def test_an_endpoint_that_refuses_speech_is_asked_for_text(
    server: OpenAIServer, model: openai.OpenAI, request_with: Make
) -> None:
    server.behave("no_modalities")
    reply = await model.stream(request_with(speech=True), lambda piece: None)
    assert reply.audio is None and reply.notes[0].startswith("speech refused by the endpoint")
