"""`/v1/realtime` and `/v1/audio/speech` of `overtone serve`: sessions over a WebSocket, and texts read aloud."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from msgspec import Struct

from overtone import audio
from overtone.echat.talk.dialogue import SPEAK, Asked, Floats, Message
from overtone.echat.talk.realtime_session import RealtimeSession
from overtone.paths import shown
from overtone.server_guard import Problem, read_json

MAX_EVENT = 16 << 20  # bytes of one event
HEARTBEAT = 20.0  # seconds between two pings
RATE = 24_000
MOST_TEXT = 4096  # characters that are read aloud at once
TYPES = {"wav": "audio/wav", "pcm": "audio/pcm"}

Answers = Callable[[Asked], AsyncIterator[Any]]


class Spoken(Protocol):
    """The result of reading a text aloud; see `answer.Answer`."""

    @property
    def sound(self) -> Floats | None: ...


class _Speech(Struct):
    """A request to read a text aloud. OpenAI's other keys are ignored: there is one voice."""

    model: str
    input: str
    response_format: str = "wav"
    speed: float = 1.0


async def converse(request: web.Request, answers: Answers, name: str) -> web.WebSocketResponse:
    """Answer GET /v1/realtime: one session until the client leaves."""
    check_origin(request)
    wanted = request.query.get("model", name)
    if wanted != name:
        message = f"unknown model {shown(wanted[:100])!r}; this server has {name!r}"
        raise Problem(404, message, code="model_not_found", param="model")
    socket = web.WebSocketResponse(max_msg_size=MAX_EVENT, heartbeat=HEARTBEAT)
    if not socket.can_prepare(request):
        raise Problem(426, "this path takes WebSockets only", code="not_a_websocket")
    await socket.prepare(request)

    async def send(event: dict[str, Any]) -> None:
        if not socket.closed:
            await socket.send_str(msgspec.json.encode(event).decode())

    session = RealtimeSession(send, answers, name)
    try:
        await session.open()
        async for received in socket:
            if received.type in (web.WSMsgType.TEXT, web.WSMsgType.BINARY):
                await session.take(received.data)
    except ConnectionError:  # the client has gone
        pass
    finally:
        await asyncio.shield(session.close())
    return socket


def check_origin(request: web.Request) -> None:
    """Raise Problem if a page of another site opens the WebSocket. Browsers ask no permission for that."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != request.host.lower():
        raise Problem(403, "a page of another site cannot open a session", code="wrong_origin")


async def read_aloud(
    request: web.Request, answer: Callable[[Asked], Awaitable[Spoken]], name: str
) -> web.StreamResponse:
    """Answer POST /v1/audio/speech: the text of a request as sound."""
    try:
        body = msgspec.json.decode(await read_json(request), type=_Speech)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not a valid speech request: {error}") from None
    if body.model != name:
        message = f"unknown model {shown(body.model[:100])!r}; this server has {name!r}"
        raise Problem(404, message, code="model_not_found", param="model")
    if body.response_format not in TYPES:
        raise Problem(400, f"response_format must be {' or '.join(TYPES)}", param="response_format")
    if body.speed != 1.0:
        raise Problem(400, "speed is not supported by this model; remove it", param="speed")
    if not body.input.strip() or len(body.input) > MOST_TEXT:
        raise Problem(400, f"input must be a text of 1 to {MOST_TEXT} characters", param="input")
    spoken = await answer(Asked((Message("user", (body.input,)),), speech=True, task=SPEAK))
    if spoken.sound is None or not len(spoken.sound):
        raise Problem(500, "the model spoke nothing")
    wav = audio.encode_wav(spoken.sound, RATE)
    data = wav if body.response_format == "wav" else wav[44:]
    return web.Response(body=data, content_type=TYPES[body.response_format])
