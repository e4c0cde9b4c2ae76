"""Real local servers that speak the wire formats, for tests and benches. They misbehave on request.

    with OpenAIServer() as server:                     # a thread of this process
        load(parse_spec(f"openai:any?base_url={server.base_url}"))
        server.behave("429:2", "500")                  # the next two requests; later ones are answered again
        server.always = "hang"                         # every request from now on; None = answer
        server.every = (10, "503")                     # each tenth request
        server.count, server.asked[-1].text, server.asked[-1].sounds, server.asked[-1].headers

    with process(latency=0.2, light=True) as base_url: # a process of its own, killed at the end
    $ python -m tests.servers --latency 0.2 --port 0   # prints its base URL, then serves until stopped

An answer is a function of the words and the sounds' SHA-256: the same request gets the same answer on every machine.
A question with lettered options (`A. …`, `(A) …`) is answered with one of its letters. `answer=` overrides it.

Behaviours: a status (`500`, `429:SECONDS` with Retry-After, `400:MESSAGE`), hang, reset, malformed, wrong_shape, empty,
bad_base64, cut_wav, huge, slow_body, refusal, content_filter, echo_key (a 400 that repeats the request's key),
redirect:URL, no_modalities (a 400 whenever speech is asked for), no_speech (text only, silently). For streamed
requests: cut_stream, stream_error, bad_chunk, no_stream (the whole answer as JSON).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import io
import re
import subprocess
import sys
import threading
import wave
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from aiohttp import web

SPEECH_RATE = 24_000


@dataclass
class Asked:
    """One request as the server decoded it. `body` is the JSON with the sounds' base64 left out."""

    text: str
    sounds: tuple[str, ...]  # SHA-256 of each decoded sound, in order
    speech: bool
    path: str
    headers: dict[str, str]
    body: Any
    wavs: list[bytes] = field(repr=False, default_factory=list)


def tone(seed: int = 0, seconds: float = 0.3, rate: int = SPEECH_RATE) -> bytes:
    """A real WAV: a sine whose pitch depends on `seed`."""
    time = np.arange(int(seconds * rate)) / rate
    samples = (0.3 * np.sin(2 * np.pi * (200 + seed % 400) * time) * 32767).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return out.getvalue()


def echo(asked: Asked) -> str:
    """The default answer: one of the question's letters with its text, or a sentence with a digest of the request."""
    digest = hashlib.sha256("\n".join((asked.text, *asked.sounds)).encode()).hexdigest()
    options = re.findall(r"(?m)^\s*\(?([A-H])[.):]\s*(.+)$", asked.text)
    if options:
        letter, text = options[int(digest, 16) % len(options)]
        return f"{letter}. {text.strip()}"
    return f"I hear you {digest[:8]}"


class Server:
    """What both wire formats share. `light` skips decoding and recording, for benches."""

    route = ""

    def __init__(
        self,
        *,
        latency: float = 0.0,
        speech: bool = True,
        key: str | None = None,
        answer: Callable[[Asked], str] = echo,
        keep_audio: bool = False,
        light: bool = False,
        port: int = 0,
    ) -> None:
        self.latency, self.speech, self.key, self.answer = latency, speech, key, answer
        self.keep_audio, self.light, self.port = keep_audio, light, port
        self.pace = 0.0  # seconds between two chunks of a stream
        self.always: str | None = None
        self.every: tuple[int, str] | None = None
        self.count = 0
        self.asked: list[Asked] = []
        self.running = 0
        self.most_at_once = 0
        self._script: deque[str] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None

    def behave(self, *behaviours: str) -> None:
        """What the next requests meet, one each."""
        self._script.extend(behaviours)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return self.origin

    def __enter__(self) -> Any:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(ready.set)), daemon=True)
        self._thread.start()
        if not ready.wait(20):
            raise RuntimeError("the test server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop and self._stop and self._thread
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    async def serve(self, ready: Callable[[], object]) -> None:
        """Serve until stopped; `ready` is called once the port is known."""
        app = web.Application(client_max_size=256 * 2**20)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        ready()
        await self._stop.wait()
        await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.count += 1
        number = self.count
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            return await self._answer(request, number)
        finally:
            self.running -= 1

    async def _answer(self, request: web.Request, number: int) -> web.StreamResponse:
        raw = await request.read()
        if not re.search(self.route, request.path):
            return web.json_response({"error": {"message": f"no such path {request.path}"}}, status=404)
        if self.light:
            await asyncio.sleep(self.latency)
            return web.json_response(self.reply("I hear you", None))
        asked = self._read(request, raw)
        behaviour = self._script.popleft() if self._script else self.always
        if behaviour is None and self.every and number % self.every[0] == 0:
            behaviour = self.every[1]
        if self.latency:
            await asyncio.sleep(self.latency)
        if self.key is not None and self.key not in "".join(request.headers.values()):
            return web.json_response({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, status=401)
        text = self.answer(asked)
        digest = hashlib.sha256(text.encode()).digest()[0]
        wav = tone(digest) if asked.speech and self.speech else None
        if behaviour is None and isinstance(asked.body, dict) and asked.body.get("stream"):
            return await self._stream(request, text, wav)
        if behaviour is None:
            return web.json_response(self.reply(text, wav))
        return await self._misbehave(request, asked, behaviour, text)

    async def _stream(self, request: web.Request, text: str, wav: bytes | None, stop_after: int = 0) -> Any:
        """Send a reply as server-sent events, each word and each 0.1 s of sound `self.pace` seconds after the last."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, chunk in enumerate(self.chunks(text, wav), 1):
            await response.write(b"data: " + msgspec.json.encode(chunk) + b"\n\n")
            if number == stop_after:
                return response
            await asyncio.sleep(self.pace)
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _misbehave(self, request: web.Request, asked: Asked, behaviour: str, text: str) -> web.StreamResponse:
        name, _, given = behaviour.partition(":")
        reply = self.reply
        if name.isdigit():
            headers = {"Retry-After": given} if name in ("429", "503") and given else {}
            message = given if given and not headers else f"the server says {name}"
            return web.json_response({"error": {"message": message}}, status=int(name), headers=headers)
        if name == "hang":
            await asyncio.sleep(3600)
        if name == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if name == "slow_body":
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"choices": [')
            await asyncio.sleep(3600)
        if name in ("malformed", "wrong_shape", "empty"):
            bodies = {"malformed": '{"choices": [{"mess', "empty": "{}"}
            bodies["wrong_shape"] = '{"choices": 3, "candidates": 3}'
            return web.Response(text=bodies[name], content_type="application/json")
        if name == "huge":
            response = web.StreamResponse()
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                for _ in range(int(given or 80)):
                    await response.write(b" " * 2**20)
            return response
        if name == "echo_key":
            secret = request.headers.get("Authorization") or request.headers.get("x-goog-api-key", "")
            message = f"you sent {secret}, that is {secret.removeprefix('Bearer ')}! " + "x" * 1000
            return web.json_response({"error": {"message": message}}, status=400)
        if name == "redirect":
            raise web.HTTPTemporaryRedirect(given)
        if name == "no_modalities":
            if asked.speech:
                message = "This model does not support the requested output modalities: audio"
                return web.json_response({"error": {"message": message}}, status=400)
            return web.json_response(reply(text, None))
        if name == "no_speech":
            return web.json_response(reply(text, None))
        if name == "cut_stream":
            return await self._stream(request, text, tone() if asked.speech else None, stop_after=2)
        if name == "stream_error":
            body = b'data: {"error": {"message": "the model failed", "code": 503}}\n\n'
            return web.Response(body=body, content_type="text/event-stream")
        if name == "bad_chunk":
            return web.Response(body=b'data: {"choices": [{"del\n\n', content_type="text/event-stream")
        if name == "no_stream":
            return web.json_response(reply(text, tone() if asked.speech else None))
        if name == "refusal":
            return web.json_response(self.refusal())
        if name == "content_filter":
            return web.json_response(self.filtered())
        whole = tone()
        if name == "cut_wav":
            return web.json_response(reply(text, whole[: len(whole) // 2]))
        if name == "bad_base64":
            return web.json_response(reply(text, whole, cut=1))
        raise RuntimeError(f"unknown behaviour {behaviour!r}")

    def _read(self, request: web.Request, raw: bytes) -> Asked:
        body = msgspec.json.decode(raw)
        texts: list[str] = []
        wavs: list[bytes] = []
        speech = self.walk(body, texts, wavs)
        sounds = tuple(hashlib.sha256(wav).hexdigest() for wav in wavs)
        kept = wavs if self.keep_audio else []
        asked = Asked("\n".join(texts), sounds, speech, request.path_qs, dict(request.headers), body, kept)
        self.asked.append(asked)
        return asked

    def walk(self, body: Any, texts: list[str], wavs: list[bytes]) -> bool:
        """Collect the words and sounds of a body, taking the base64 out of it; says whether speech is wanted."""
        raise NotImplementedError

    def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
        """A good answer; `cut` leaves that many characters of base64 off."""
        raise NotImplementedError

    def chunks(self, text: str, wav: bytes | None) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer."""
        raise NotImplementedError

    def refusal(self) -> dict[str, Any]:
        raise NotImplementedError

    def filtered(self) -> dict[str, Any]:
        raise NotImplementedError


def _base64(wav: bytes, cut: int) -> str:
    text = base64.b64encode(wav).decode()
    return text[: len(text) - cut]


class OpenAIServer(Server):
    """/v1/chat/completions."""

    route = r"^/v1/chat/completions$"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def walk(self, body: Any, texts: list[str], wavs: list[bytes]) -> bool:
        for message in body["messages"]:
            content = message["content"]
            for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if part["type"] == "text":
                    texts.append(part["text"])
                elif part["type"] == "input_audio":
                    wavs.append(base64.b64decode(part["input_audio"].pop("data"), validate=True))
                else:
                    wavs.append(base64.b64decode(part["audio_url"].pop("url").partition(",")[2], validate=True))
        return "audio" in body.get("modalities", ())

    def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if wav is not None:
            audio = {"id": "audio_1", "data": _base64(wav, cut), "transcript": text, "expires_at": 0}
            message |= {"content": None, "audio": audio}
        usage = {
            "prompt_tokens": 50,
            "total_tokens": 50 + len(text.split()),
            "completion_tokens": len(text.split()),
            "prompt_tokens_details": {"audio_tokens": 40},
            "completion_tokens_details": {"audio_tokens": 30 if wav else 0},
        }
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "c1", "object": "chat.completion", "model": "test-model-1", "choices": [choice], "usage": usage}

    def chunks(self, text: str, wav: bytes | None) -> Iterator[dict[str, Any]]:
        head = {"id": "c1", "object": "chat.completion.chunk", "model": "test-model-1"}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant"})
        yield chunk({"reasoning_content": "The voice is calm."})
        for word in re.findall(r"\S+\s*", text):
            yield chunk({"content": word} if wav is None else {"audio": {"transcript": word}})
        pcm = wav[44:] if wav is not None else b""
        step = SPEECH_RATE // 10 * 2
        for start in range(0, len(pcm), step):
            yield chunk({"audio": {"data": base64.b64encode(pcm[start : start + step]).decode()}})
        yield chunk({}, "stop")
        yield {**head, "choices": [], "usage": self.reply(text, wav)["usage"]}

    def refusal(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        return {"model": "test-model-1", "choices": [{"message": message, "finish_reason": "stop"}]}

    def filtered(self) -> dict[str, Any]:
        return {"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "content_filter"}]}


class GeminiServer(Server):
    """/v1beta/models/NAME:generateContent."""

    route = r"^/v1beta/models/[^/:]+:generateContent$"

    def walk(self, body: Any, texts: list[str], wavs: list[bytes]) -> bool:
        for content in [body.get("system_instruction"), *body["contents"]]:
            for part in content["parts"] if content else ():
                if "text" in part:
                    texts.append(part["text"])
                else:
                    assert part["inline_data"]["mime_type"] == "audio/wav"
                    wavs.append(base64.b64decode(part["inline_data"].pop("data"), validate=True))
        return "AUDIO" in body.get("generationConfig", {}).get("responseModalities", ())

    def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": "thinking about it", "thought": True}, {"text": text}]
        if wav is not None:  # bare PCM, unless a test wants a WAV cut
            whole = len(wav) == int.from_bytes(wav[40:44], "little") + 44
            mime = f"audio/L16;codec=pcm;rate={SPEECH_RATE}" if whole else "audio/wav"
            parts.append({"inlineData": {"mimeType": mime, "data": _base64(wav[44:] if whole else wav, cut)}})
        usage = {
            "promptTokenCount": 50,
            "candidatesTokenCount": len(text.split()),
            "thoughtsTokenCount": 7,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}, {"modality": "AUDIO", "tokenCount": 40}],
            "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 30 if wav else 0}],
        }
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "test-gemini-1"}

    def refusal(self) -> dict[str, Any]:
        return {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "test-gemini-1"}

    def filtered(self) -> dict[str, Any]:
        return {"candidates": [{"finishReason": "SAFETY"}]}


SERVERS: dict[str, type[Server]] = {"openai": OpenAIServer, "gemini": GeminiServer}


@contextlib.contextmanager
def process(kind: str = "openai", *, latency: float = 0.0, light: bool = False, port: int = 0) -> Iterator[str]:
    """A server in a process of its own; gives its base URL. Killed at the end."""
    command = [sys.executable, "-m", "tests.servers", "--kind", kind, "--latency", str(latency), "--port", str(port)]
    root = Path(__file__).resolve().parent.parent
    if light:
        command.append("--light")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description="A local model server for tests and benches.")
    parser.add_argument("--kind", choices=SERVERS, default="openai")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--light", action="store_true", help="answer without decoding the request (for benches)")
    parser.add_argument("--always", help="what every request meets, e.g. 503")
    parser.add_argument("--every", nargs=2, metavar=("N", "BEHAVIOUR"), help="what each Nth request meets, e.g. 10 500")
    args = parser.parse_args()
    server = SERVERS[args.kind](latency=args.latency, port=args.port, light=args.light)
    server.always = args.always
    server.every = (int(args.every[0]), args.every[1]) if args.every else None
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(lambda: print(server.base_url, flush=True)))


if __name__ == "__main__":
    main()
