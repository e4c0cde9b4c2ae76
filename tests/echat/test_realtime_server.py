"""`/v1/realtime` and `/v1/audio/speech` of a checkpoint behind real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from overtone.audio import load_sound
from overtone.models import realtime
from overtone.schema import Key, Message, Reply, Request
from overtone.spec import parse_spec
from tests.echat.test_http_server import Running, noise

pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def server(tiny: Path) -> Iterator[Running]:
    running = Running(tiny)
    yield running
    running.stop()


def asked(speech: bool = True) -> Request:
    sound = load_sound(noise(0.4), name="noise")
    return Request(Key("i", "c"), (Message("user", (sound,)),), speech=speech)


async def ask(server: Running, keys: str = "", speech: bool = True) -> Reply:
    model = realtime.load(parse_spec(f"realtime:echat?base_url={server.url}&timeout=60&pace=fast{keys}"))
    await model.open()
    try:
        return await model.ask(asked(speech))
    finally:
        await model.close()


async def test_a_checkpoint_answers_in_a_session(server: Running) -> None:
    reply = await ask(server, "&max_tokens=5")
    assert reply.text and reply.audio is not None and reply.usage.input_audio_tokens > 0
    assert reply.usage.output_audio_tokens > 0 and reply.model == "echat"
    assert reply.timings is not None and reply.timings.first_audio is not None and reply.timings.done is not None
    assert reply.timings.first_audio <= reply.timings.done
    text = await ask(server, speech=False)
    assert text.text and text.audio is None


async def test_a_client_that_leaves_stops_the_model(server: Running) -> None:
    async with aiohttp.ClientSession() as session:
        url = server.url.replace("http", "ws", 1) + "/realtime?model=echat"
        async with session.ws_connect(url) as socket:
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}
            await socket.send_json({"type": "conversation.item.create", "item": item})
            await socket.send_json({"type": "response.create"})
            while "delta" not in (await socket.receive_json())["type"]:
                pass
    await asyncio.sleep(0.3)
    steps = server.steps
    await asyncio.sleep(0.3)
    assert server.steps == steps


async def test_who_may_open_a_session(server: Running) -> None:
    async def status(path: str, **headers: str) -> int:
        async with aiohttp.ClientSession() as session, session.get(server.url + path, headers=headers) as answer:
            return answer.status

    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    assert await status("/realtime?model=echat") == 426
    assert await status("/realtime?model=other", **upgrade) == 404
    assert await status("/realtime", Origin="https://evil.example", **upgrade) == 403


async def test_a_token_is_asked_for(tiny: Path) -> None:
    running = Running(tiny, token="a-token-of-the-test")
    try:
        async with aiohttp.ClientSession() as session:
            url = running.url.replace("http", "ws", 1) + "/realtime"
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await session.ws_connect(url)
            assert caught.value.status == 401
            headers = {"Authorization": "Bearer a-token-of-the-test"}
            async with session.ws_connect(
                running.url.replace("http", "ws", 1) + "/realtime", headers=headers
            ) as socket:
                assert (await socket.receive_json())["type"] == "session.created"
    finally:
        running.stop()


async def speak(server: Running, **body: Any) -> tuple[int, str, bytes]:
    sent = {"model": "echat", "input": "Good morning.", "voice": "alloy"} | body
    async with aiohttp.ClientSession() as session, session.post(f"{server.url}/audio/speech", json=sent) as answer:
        return answer.status, answer.content_type, await answer.read()


async def test_a_text_is_read_aloud(server: Running) -> None:
    status, kind, wav = await speak(server)
    assert (status, kind) == (200, "audio/wav") and load_sound(wav, name="speech").seconds > 0.2
    status, kind, pcm = await speak(server, response_format="pcm")
    assert (status, kind) == (200, "audio/pcm") and wav[44:] == pcm


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"input": " "}, 400, "1 to 4096 characters"),
        ({"input": "x" * 5000}, 400, "1 to 4096 characters"),
        ({"response_format": "mp3"}, 400, "wav or pcm"),
        ({"speed": 2.0}, 400, "speed is not supported"),
        ({"model": "other"}, 404, "unknown model"),
        ({"input": 3}, 400, "not a valid speech request"),
    ],
)
async def test_a_wrong_speech_request_says_what_is_wrong(
    server: Running, body: dict[str, Any], status: int, words: str
) -> None:
    found, _, data = await speak(server, **body)
    assert found == status and words in data.decode()
