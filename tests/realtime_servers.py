"""Real local servers that speak the realtime protocols with known delays, and misbehave on request.

    with RealtimeServer() as server:                   # a thread of this process
        load(parse_spec(f"realtime:any?base_url={server.base_url}"))
        server.behave("close:1011:too busy")           # the next connection; later ones are answered again
        server.always = "hang"
        server.connections, server.received, server.sent

`RealtimeServer` is the session of `overtone serve` over a voice with a fixed script. `LiveServer` speaks Google's
protocol. Both log every event that they receive and send, with the time of the shared monotonic clock.

Behaviours of a connection: a status (`401`, `429:SECONDS`) in place of the handshake, not_a_socket, redirect:URL,
hang (nothing is ever sent), deaf (nothing is read any more), no_reply, close:CODE:REASON, reset, malformed,
not_an_event, no_delta, bad_base64, half_sample, huge_frame, error:CODE:TYPE, failed, cancelled, content_filter, length,
wrong_rate, odd_rate, early, echo_key, chatter (unknown events), beta (the event names of the beta).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from aiohttp import web

from overtone.echat.talk.dialogue import Asked
from overtone.echat.talk.realtime_session import RealtimeSession

RATE = 24_000
BETA = {"output_audio_transcript": "audio_transcript", "output_audio": "audio", "output_text": "text"}


@dataclass
class Whole:
    """What the voice says of its whole answer."""

    text: str
    codes: tuple[int, ...] = (1, 2, 3)
    finish: str = "stop"
    heard: int = 50
    heard_sound: int = 40
    said: int = 4


@dataclass
class Part:
    """A part of an answer."""

    text: str = ""
    sound: Any = None
    whole: Whole | None = None


@dataclass
class Voice:
    """Answers with these words and a tone after these seconds."""

    text_after: float = 0.02
    sound_after: float = 0.04
    step: float = 0.01  # seconds between two parts of the sound
    parts: int = 6
    part_seconds: float = 0.1
    lead: float = 0.0  # seconds of silence at the beginning of the sound
    words: str = "I hear you."
    asked: list[Asked] = field(default_factory=list)

    @property
    def done_after(self) -> float:
        return self.sound_after + self.step * (self.parts - 1)

    def sound(self) -> Any:
        seconds = self.parts * self.part_seconds
        tone = 0.3 * np.sin(2 * np.pi * 300 * np.arange(round(seconds * RATE)) / RATE)
        tone[: round(self.lead * RATE)] = 0.0
        return tone.astype(np.float32)

    async def answer(self, asked: Asked) -> AsyncIterator[Part]:
        self.asked.append(asked)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(self.text_after)
        yield Part(self.words)
        if asked.speech:
            size = round(self.part_seconds * RATE)
            sound = self.sound()
            for number in range(self.parts):
                await asyncio.sleep(max(0.0, began + self.sound_after + number * self.step - loop.time()))
                yield Part(sound=sound[number * size : (number + 1) * size])
        yield Part(whole=Whole(self.words, said=len(self.words.split())))


class _Thread:
    """A server in a thread of this process."""

    path = ""

    def __init__(self, voice: Voice | None = None) -> None:
        self.voice = voice or Voice()
        self.port = 0
        self.always: str | None = None
        self.every: tuple[int, str] | None = None
        self.connections = 0
        self.open = 0
        self.received: list[tuple[float, dict[str, Any]]] = []
        self.sent: list[tuple[float, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self._script: deque[str] = deque()

    def behave(self, *behaviours: str) -> None:
        """What the next connections meet, one each."""
        self._script.extend(behaviours)

    @property
    def base_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}{self.path}"

    def kinds(self) -> list[str]:
        return [str(event.get("type", next(iter(event)))) for _, event in self.received]

    def __enter__(self) -> Any:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready.set)), daemon=True)
        self._thread.start()
        assert ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    async def _serve(self, ready: Callable[[], object]) -> None:
        app = web.Application()
        app.router.add_route("GET", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        ready()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.connections += 1
        self.headers.append(dict(request.headers))
        behaviour = self._script.popleft() if self._script else self.always
        if behaviour is None and self.every and self.connections % self.every[0] == 0:
            behaviour = self.every[1]
        name, _, given = (behaviour or "").partition(":")
        if name.isdigit():
            headers = {"Retry-After": given} if given else {}
            return web.json_response({"error": {"message": "no"}}, status=int(name), headers=headers)
        if name == "not_a_socket":
            return web.json_response({"status": "ok"})
        if name == "redirect":
            raise web.HTTPTemporaryRedirect(given)
        socket = web.WebSocketResponse(max_msg_size=64 << 20)
        await socket.prepare(request)
        self.open += 1
        try:
            await self._talk(request, socket, name, given)
        finally:
            self.open -= 1
        return socket

    async def _talk(self, request: web.Request, socket: web.WebSocketResponse, name: str, given: str) -> None:
        raise NotImplementedError

    async def _put(self, socket: web.WebSocketResponse, event: dict[str, Any]) -> None:
        self.sent.append((time.perf_counter(), event))
        if not socket.closed:
            with contextlib.suppress(ConnectionError):
                await socket.send_str(msgspec.json.encode(event).decode())


class RealtimeServer(_Thread):
    """OpenAI's protocol."""

    path = "/v1"

    async def _talk(self, request: web.Request, socket: web.WebSocketResponse, name: str, given: str) -> None:
        if name == "hang":
            await asyncio.sleep(3600)
        spoken = 0

        async def send(event: dict[str, Any]) -> None:
            nonlocal spoken
            spoken += event["type"] == "response.output_audio.delta"
            if name and await self._misbehave(request, socket, name, given, event, spoken):
                return
            if name == "beta":
                kind = event["type"]
                for new, old in BETA.items():
                    kind = kind.replace(f"response.{new}.", f"response.{old}.")
                event = event | {"type": kind}
            await self._put(socket, event)

        session = RealtimeSession(send, self.voice.answer, "test-model-1")
        await session.open()
        try:
            async for message in socket:
                event = msgspec.json.decode(message.data)
                self.received.append((time.perf_counter(), event))
                if name == "deaf" and event["type"] == "input_audio_buffer.commit":
                    await asyncio.sleep(3600)
                if name == "no_reply" and event["type"] == "response.create":
                    continue
                if name == "early" and event["type"] == "input_audio_buffer.append":
                    done = {"id": "r", "status": "completed", "object": "realtime.response"}
                    await self._put(socket, {"type": "response.done", "event_id": "e", "response": done})
                if name == "error" and event["type"] == "response.create":
                    code, _, kind = given.partition(":")
                    error = {"type": kind or "invalid_request_error", "code": code, "message": f"about {code}"}
                    await self._put(socket, {"type": "error", "event_id": "e", "error": error})
                    continue
                if name == "echo_key" and event["type"] == "response.create":
                    secret = request.headers.get("Authorization", "")
                    error = {"type": "server_error", "code": None, "message": f"you sent {secret}, hm"}
                    await self._put(socket, {"type": "error", "event_id": "e", "error": error})
                    continue
                await session.take(message.data)
        finally:
            await session.close()

    async def _misbehave(
        self,
        request: web.Request,
        socket: web.WebSocketResponse,
        name: str,
        given: str,
        event: dict[str, Any],
        spoken: int,
    ) -> bool:
        """Return whether the event is not to be sent any more."""
        kind = event["type"]
        if name in ("wrong_rate", "odd_rate") and kind == "session.updated":
            side = "input" if name == "wrong_rate" else "output"
            event["session"]["audio"][side]["format"]["rate"] = 16_000 if name == "wrong_rate" else 12
        if name == "chatter":
            for extra in ({"type": "rate_limits.updated", "rate_limits": 3}, {"type": "x.y", "deep": [{}, None]}):
                await self._put(socket, {"event_id": "e", **extra})
        if name in ("failed", "cancelled", "content_filter", "length") and kind == "response.done":
            error = {"type": "server_error", "code": "boom", "message": "the model broke"}
            status, details = {
                "failed": ("failed", {"type": "failed", "error": error}),
                "cancelled": ("cancelled", {"type": "cancelled", "reason": "client_cancelled"}),
                "content_filter": ("incomplete", {"type": "incomplete", "reason": "content_filter"}),
                "length": ("incomplete", {"type": "incomplete", "reason": "max_output_tokens"}),
            }[name]
            event["response"] |= {"status": status, "status_details": details}
        if spoken != 2 or kind != "response.output_audio.delta":
            return False
        if name == "close":
            code, _, reason = given.partition(":")
            await socket.close(code=int(code), message=reason.encode())
        elif name == "reset":
            assert request.transport is not None
            request.transport.abort()
        elif name in ("malformed", "not_an_event", "huge_frame"):
            text = {"malformed": "{oh", "not_an_event": "[1]", "huge_frame": '{"type": "' + "x" * (17 << 20) + '"}'}[
                name
            ]
            with contextlib.suppress(ConnectionError):
                await socket.send_str(text)
        elif name == "no_delta":
            del event["delta"]
            return False
        elif name == "bad_base64":
            event["delta"] = event["delta"][:-1]
            return False
        elif name == "half_sample":
            event["delta"] = base64.b64encode(b"\0" * 481).decode()
            return False
        else:
            return False
        return True


class LiveServer(_Thread):
    """Google's protocol, as far as its SDK describes it."""

    async def _talk(self, request: web.Request, socket: web.WebSocketResponse, name: str, given: str) -> None:
        if name == "hang":
            await asyncio.sleep(3600)
        self.pcm = bytearray()
        answering: asyncio.Task[None] | None = None
        detects = speech = False
        heard = quiet = 0
        async for message in socket:
            event = msgspec.json.decode(message.data)
            self.received.append((time.perf_counter(), event))
            if setup := event.get("setup"):
                detects = not setup["realtimeInputConfig"]["automaticActivityDetection"].get("disabled")
                speech = setup["generationConfig"]["responseModalities"] == ["AUDIO"]
                await self._put(socket, {"setupComplete": {}})
            given_input = event.get("realtimeInput", {})
            if "audio" in given_input:
                pcm = base64.b64decode(given_input["audio"]["data"])
                self.pcm += pcm
                loud = bool(np.abs(np.frombuffer(pcm, "<i2")).max(initial=0) > 300)
                heard, quiet = heard + loud, 0 if loud else quiet + 1
            ended = "activityEnd" in given_input or (detects and heard > 3 and quiet == 15)
            idle = answering is None or answering.done()
            if (ended or event.get("clientContent", {}).get("turnComplete")) and idle:
                heard = quiet = 0
                answering = asyncio.create_task(self._answer(socket, speech, name, given))
        if answering is not None:
            answering.cancel()

    async def _answer(self, socket: web.WebSocketResponse, speech: bool, name: str, given: str) -> None:
        if name == "no_reply":
            return
        number = 0
        async for part in self.voice.answer(Asked((), speech=speech)):
            content: dict[str, Any] = {}
            if part.text:
                words = {"text": part.text}
                content = {"outputTranscription": words} if speech else {"modelTurn": {"parts": [words]}}
            if part.sound is not None:
                number += 1
                if name == "close" and number == 2:
                    code, _, reason = given.partition(":")
                    await socket.close(code=int(code), message=reason.encode())
                    return
                data = base64.b64encode((part.sound * 32767).astype("<i2").tobytes()).decode()
                blob = {"mimeType": f"audio/pcm;rate={RATE}", "data": data}
                content = {"modelTurn": {"parts": [{"inlineData": blob}]}}
            if content:
                await self._put(socket, {"serverContent": content})
        usage = {
            "promptTokenCount": 50, "responseTokenCount": 9, "totalTokenCount": 59,
            "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 40}],
            "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": 7}],
        }  # fmt: skip
        await self._put(socket, {"serverContent": {"generationComplete": True}})
        reason = {"turnCompleteReason": "PROHIBITED_INPUT_CONTENT"} if name == "refusal" else {}
        await self._put(socket, {"serverContent": {"turnComplete": True, **reason}, "usageMetadata": usage})
