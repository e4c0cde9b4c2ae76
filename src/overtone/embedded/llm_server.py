"""An OpenAI-compatible endpoint of the offline language model: `python -m overtone.embedded.llm_server`.

For trying a judge, a cascade or any other client without a key and without a network. The model is small: its verdicts
as a judge are worthless (docs/how-to/judges.md has the measurement). The engine's own HTTP server checks neither Host
nor content type, so requests come in through `overtone.server_guard` and the engine is called in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from overtone.embedded.language import NAME, hidden_engine
from overtone.errors import OvertoneError
from overtone.server_guard import (
    MAX_BODY,
    Guard,
    Problem,
    bound,
    json_response,
    listening,
    middlewares,
    read_json,
    read_token,
)

MAX_WAITING = 32
MAX_TOKENS = 1024  # limit of an answer if the request does not give one


class Server:
    """The routes. It answers one request at a time, each from the start: the same request gets the same text."""

    def __init__(self, engine: Any, guard: Guard) -> None:
        self._engine, self._guard = engine, guard
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._began = int(time.time())

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares(self._guard))
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/v1/models", self.models),
                web.post("/v1/chat/completions", self.complete),
            ]
        )
        return app

    async def health(self, request: web.Request) -> web.Response:
        return json_response({"status": "ok", "waiting": self._waiting})

    async def models(self, request: web.Request) -> web.Response:
        model = {"id": NAME, "object": "model", "created": self._began, "owned_by": "overtone"}
        return json_response({"object": "list", "data": [model]})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = _parsed(await read_json(request))
        if self._waiting >= MAX_WAITING:
            raise Problem(503, f"{MAX_WAITING} requests are waiting; try again later", code="overloaded")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._streamed(request, body) if body.get("stream") else await self._whole(body)
        finally:
            self._waiting -= 1

    async def _whole(self, body: dict[str, Any]) -> web.Response:
        async with contextlib.aclosing(self._chunks(body)) as chunks:
            return json_response(await anext(chunks))

    async def _streamed(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        async with contextlib.aclosing(self._chunks(body)) as chunks:
            first = await anext(chunks)  # an error before it still gets its own status
            await out.prepare(request)
            await out.write(_event(first))
            try:
                async for chunk in chunks:
                    await out.write(_event(chunk))
            except Problem as problem:
                await out.write(_event(problem.json()))
        await out.write(b"data: [DONE]\n\n")
        await out.write_eof()
        return out

    async def _chunks(self, body: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the engine's answer: the pieces of a streamed answer, or a complete answer as one piece. Raises
        Problem."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[Any] = asyncio.Queue()
        gone = threading.Event()

        def put(chunk: Any) -> bool:
            loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return gone.is_set()  # True ends a streamed answer

        thread = asyncio.create_task(asyncio.to_thread(_ask, self._engine, body, put))
        try:
            while (chunk := await chunks.get()) is not None:
                if isinstance(chunk, Problem):
                    raise chunk
                yield chunk
        finally:
            gone.set()
            await asyncio.shield(thread)  # the engine is free again before the next request has its turn


def _ask(engine: Any, body: dict[str, Any], put: Callable[[Any], bool]) -> None:
    """Ask the engine, in a thread. Pass each piece of the answer to `put`, and None at the end."""
    try:
        chunk = (
            engine.handle_chat_completions(body, put) if body.get("stream") else engine.handle_chat_completions(body)
        )
        if chunk is not None:
            put(_problem(chunk["error"]) if isinstance(chunk, dict) and "error" in chunk else chunk)
    except (ValueError, RuntimeError, TypeError) as error:  # how the engine refuses a body
        put(Problem(400, f"the engine cannot use this request: {str(error)[:300]}"))
    finally:
        put(None)


def _problem(error: Any) -> Problem:
    status = error.get("code") if isinstance(error, dict) else None
    message = str(error.get("message", error) if isinstance(error, dict) else error)
    return Problem(status if isinstance(status, int) and 400 <= status < 600 else 500, message[:300])


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        body: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not a request for a chat completion: {error}") from None
    if not isinstance(body.get("messages"), list):
        raise Problem(400, "messages must be a list", param="messages")
    body.setdefault("max_tokens", body.get("max_completion_tokens") or MAX_TOKENS)
    return body | {"cache_prompt": False}


def _event(chunk: Any) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


async def serve(port: int, token: str, ready: Callable[[str], None]) -> None:
    """Answer on this machine until cancelled. `ready` gets the base URL once the server accepts requests."""
    taken = bound("127.0.0.1", port)
    engine = await asyncio.to_thread(hidden_engine)
    async with listening(Server(engine, Guard(token=token)).app(), taken) as url:
        ready(url)
        await asyncio.Event().wait()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m overtone.embedded.llm_server", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="port on 127.0.0.1 (default: 8080; 0 picks a free one)")
    parser.add_argument("--token-file", metavar="FILE", type=Path,
                        help="file with the token that clients must send (default: OVERTONE_TOKEN)")  # fmt: skip
    given = parser.parse_args(arguments)

    def ready(url: str) -> None:
        print(f"{NAME} answers at {url}; stop it with Ctrl-C. For example:", flush=True)
        print(f'  overtone score RUN --judge "openai:{NAME}?base_url={url}"', flush=True)

    try:
        asyncio.run(serve(given.port, read_token(given.token_file), ready))
    except OvertoneError as error:
        print(f"overtone: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
