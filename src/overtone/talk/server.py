"""The page on which a person speaks with a model, and its API: one request per utterance, answered as a stream.

The page's token stands in the URL's fragment, which browsers do not send. Scripts send it as a Bearer token, so another
site or another user of this machine can neither speak with the model nor read a reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import resources
from typing import Any

import msgspec
from aiohttp import web

from overtone.errors import DataError
from overtone.server_guard import Guard, Problem, json_response, listening, middlewares, read_json
from overtone.talk.conversations import MAX_BYTES, Conversations, Event

PAGES = {  # path → (package, file, type)
    "/": ("overtone.talk.pages", "talk.html", "text/html"),
    "/talk.js": ("overtone.talk.pages", "talk.js", "text/javascript"),
    "/talk.css": ("overtone.talk.pages", "talk.css", "text/css"),
    "/microphone.js": ("overtone.studio.pages", "microphone.js", "text/javascript"),
    "/microphone-worklet.js": ("overtone.studio.pages", "microphone-worklet.js", "text/javascript"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "media-src 'self' blob:; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Cache-Control": "no-store",
    "Server": "overtone",  # not the version of Python and aiohttp
}
UPLOAD_SECONDS = 60.0

log = logging.getLogger("overtone")


class Rated(msgspec.Struct, forbid_unknown_fields=True):
    """A person's rating of one reply."""

    turn: str
    value: int


class TalkServer:
    """The routes. `about` has the texts that the page shows: the model, what it hears, and warnings."""

    def __init__(self, conversations: Conversations, guard: Guard, about: dict[str, Any]) -> None:
        self.conversations, self.guard, self.about = conversations, guard, about

    def app(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=MAX_BYTES, middlewares=middlewares(self.guard))
        app.on_response_prepare.append(_add_headers)
        app.add_routes([web.get(path, _page(*page)) for path, page in PAGES.items()])
        app.add_routes(
            [
                web.get("/api/about", self.tell),
                web.post("/api/conversation", self.begin),
                web.post("/api/conversation/{name}", self.turn),
                web.post("/api/rate", self.rate),
            ]
        )
        return app

    async def tell(self, request: web.Request) -> web.Response:
        """Answer GET /api/about."""
        return json_response(self.about)

    async def begin(self, request: web.Request) -> web.Response:
        """Answer POST /api/conversation: start a new one."""
        return json_response({"conversation": self.conversations.begin()})

    async def rate(self, request: web.Request) -> web.Response:
        """Answer POST /api/rate: store a rating of one reply, replacing an earlier one."""
        try:
            rated = msgspec.json.decode(await read_json(request), type=Rated)
            self.conversations.rate(rated.turn, rated.value)
        except (msgspec.DecodeError, DataError) as error:
            raise Problem(400, str(error)) from None
        return json_response({"saved": True})

    async def turn(self, request: web.Request) -> web.StreamResponse:
        """Answer POST /api/conversation/NAME, whose body is a recording, with one JSON object per line."""
        if request.content_type != "audio/wav":
            raise Problem(415, "send the recording as a WAV file, with 'Content-Type: audio/wav'")
        try:
            self.conversations.find(request.match_info["name"])
            async with asyncio.timeout(UPLOAD_SECONDS):
                recording = await request.read()
        except DataError as error:
            raise Problem(409, str(error)) from None
        except TimeoutError:
            raise Problem(408, "the recording did not arrive in time; send it again") from None
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        work = asyncio.create_task(self._answer(request.match_info["name"], recording, events.put_nowait))
        work.add_done_callback(lambda _: events.put_nowait(None))
        out = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await out.prepare(request)
        try:
            while (event := await events.get()) is not None:
                await out.write(msgspec.json.encode(event) + b"\n")
            await out.write_eof()
        finally:
            await asyncio.shield(work)  # a reply is stored even if the page was closed
        return out

    async def _answer(self, name: str, recording: bytes, emit: Callable[[Event | None], None]) -> None:
        try:
            await self.conversations.answer(name, recording, emit)
        except DataError as error:
            emit({"error": str(error)})
        except Exception as error:  # the page must hear of it, and the server goes on
            log.exception("a turn failed")
            emit({"error": f"the program failed ({type(error).__name__}); its terminal says more"})


def _page(package: str, file: str, kind: str) -> Callable[[web.Request], Any]:
    async def send(request: web.Request) -> web.Response:
        body = resources.files(package).joinpath(file).read_bytes()
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return send


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


async def serve(server: TalkServer, taken: Any, ready: Callable[[str], None]) -> None:
    """Serve until cancelled. `ready` gets the page's URL without the token when the server is listening."""
    async with listening(server.app(), taken) as url:
        ready(url.removesuffix("/v1"))
        await asyncio.Event().wait()
