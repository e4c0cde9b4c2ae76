"""`overtone serve`: a trained checkpoint as an endpoint that speaks OpenAI's chat completions, with sound in and out.

One thread answers; requests that wait are answered together, a streamed one by itself, piece by piece as it comes. Who
goes away is answered no further, and one that breaks the model breaks no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from overtone.echat.talk import wire
from overtone.echat.talk.answer import Answer, Answerer, Piece, TooLong
from overtone.echat.talk.dialogue import Asked, Unanswerable
from overtone.errors import AudioError
from overtone.guard import MAX_BODY, Guard, Problem, json_response, listening, middlewares, read_json

MAX_WAITING = 32
REQUEST_ERRORS = (AudioError, TooLong, Unanswerable)  # the client's fault; every other error is the server's


@dataclass(eq=False)
class Job:
    """A request on its way through the thread; what comes back lands in `out`."""

    asked: Asked
    stream: bool
    loop: asyncio.AbstractEventLoop
    out: asyncio.Queue[Piece | Answer | Exception] = field(default_factory=asyncio.Queue)
    gone: threading.Event = field(default_factory=threading.Event)

    def put(self, what: Piece | Answer | Exception) -> None:
        if not self.gone.is_set():
            with contextlib.suppress(RuntimeError):  # the server has stopped
                self.loop.call_soon_threadsafe(self.out.put_nowait, what)


class Engine:
    """The one thread that uses the model."""

    def __init__(self, answerer: Answerer, batch: int = 8) -> None:
        self.answerer, self.batch = answerer, batch
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._work, daemon=True, name="echat")
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def check(self) -> None:
        """Raise Problem where too many wait already, or nobody is answered any more."""
        if self._over:
            raise _stopping()
        if len(self._waiting) >= MAX_WAITING:
            raise Problem(503, f"{MAX_WAITING} requests are waiting; try again later", code="overloaded")

    def submit(self, job: Job) -> None:
        with self._changed:
            self.check()
            self._waiting.append(job)
            self._changed.notify()

    def leave(self, job: Job) -> None:
        """Nobody waits for it any more: it is not begun, frees its place, and ends where it is under way."""
        job.gone.set()
        with self._changed, contextlib.suppress(ValueError):  # begun
            self._waiting.remove(job)

    def close(self) -> None:
        with self._changed:
            self._over = True
            while self._waiting:
                self._waiting.popleft().put(_stopping())
            self._changed.notify()
        self._thread.join(timeout=10)

    def _work(self) -> None:
        while jobs := self._next():
            self._try(jobs)

    def _try(self, jobs: list[Job]) -> None:
        """Answer jobs together; where that breaks, once more one by one, so that only the one that breaks is told so.
        The thread lives on."""
        try:
            if jobs[0].stream:
                self._stream(jobs[0])
            else:
                self._answer(jobs)
        except Exception as error:  # noqa: BLE001 - whatever it is
            traceback.print_exc()
            if len(jobs) == 1:
                jobs[0].put(error)
                return
        else:
            return
        for job in jobs:  # nothing holds the error's frames any more: their tensors are free
            self._try([job])

    def _next(self) -> list[Job]:
        """A streamed request, or all that wait before the next streamed one, up to a batch; [] at the end."""
        with self._changed:
            while not self._over and not self._waiting:
                self._changed.wait()
            jobs: list[Job] = []
            while not self._over and self._waiting and len(jobs) < self.batch:
                if self._waiting[0].stream and jobs:
                    break
                jobs.append(self._waiting.popleft())
                if jobs[0].stream:
                    break
            return jobs

    def _answer(self, jobs: list[Job]) -> None:
        fit: list[Job] = []
        for job in jobs:  # what cannot be asked fails alone
            if job.gone.is_set():
                continue
            try:
                self.answerer.lay(job.asked)
                fit.append(job)
            except REQUEST_ERRORS as error:
                job.put(error)
        if not fit:
            return
        wanted = [job.asked for job in fit]
        answers = self.answerer.answer(wanted, lambda i: not (fit[i].gone.is_set() or self._over))
        for job, answer in zip(fit, answers, strict=True):
            job.put(_stopping() if self._over else answer)  # it may have been cut short

    def _stream(self, job: Job) -> None:
        try:
            for piece in self.answerer.stream(job.asked, lambda: not (job.gone.is_set() or self._over)):
                job.put(piece)
            if self._over:
                job.put(_stopping())
        except REQUEST_ERRORS as error:
            job.put(error)


class Server:
    """The routes."""

    def __init__(self, engine: Engine, name: str, guard: Guard) -> None:
        self.engine, self.name, self.guard = engine, name, guard
        self.memory = wire.Memory()
        self.began = int(time.time())

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares(self.guard))
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/v1/models", self.models),
                web.get("/v1/models/{name}", self.model),
                web.post("/v1/chat/completions", self.complete),
            ]
        )
        return app

    async def health(self, request: web.Request) -> web.Response:
        return json_response({"status": "ok", "waiting": self.engine.waiting})

    async def models(self, request: web.Request) -> web.Response:
        return json_response({"object": "list", "data": [self._described()]})

    async def model(self, request: web.Request) -> web.Response:
        if request.match_info["name"] != self.name:
            raise Problem(404, f"this server has the model {self.name!r} alone", code="model_not_found")
        return json_response(self._described())

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = wire.parse(await read_json(request), self.name)
        self.engine.check()  # before a sound is unpacked
        asked = await asyncio.to_thread(wire.asked, body, self.memory)
        job = Job(asked, bool(body.stream), asyncio.get_running_loop())
        self.engine.submit(job)
        head = {"id": wire.new_id("chatcmpl"), "created": int(time.time()), "model": self.name}
        try:
            first = _checked(await job.out.get())
            if isinstance(first, Answer):
                return json_response(self._completion(head, body, first))
            return await self._streamed(request, head, body, job, first)
        finally:
            self.engine.leave(job)  # answered, or nobody is left to answer to

    def _completion(self, head: dict[str, Any], body: wire.Body, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"content": answer.text, "refusal": None}
        if answer.thought:
            message["reasoning_content"] = answer.thought
        if answer.sound is not None:
            name = wire.new_id("audio")
            self.memory.keep(name, answer.text, answer.codes)
            message["content"] = None
            message["audio"] = {
                "id": name,
                "data": wire.sound_data(answer.sound, body.format),
                "transcript": answer.text,
                "expires_at": int(time.time()) + wire.EXPIRES,
            }
        return wire.completion(head, message, answer.finish, _counts(answer), answer.notes)

    async def _streamed(
        self, request: web.Request, head: dict[str, Any], body: wire.Body, job: Job, first: Piece
    ) -> web.StreamResponse:
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await out.prepare(request)
        name = wire.new_id("audio")
        start: dict[str, Any] = {"role": "assistant", "content": ""}
        if body.speech:
            start = {"role": "assistant", "audio": {"id": name}}
        await out.write(wire.chunk(head, start))
        try:
            async for piece in _pieces(job, first):
                for delta in _deltas(piece, body.speech):
                    await out.write(wire.chunk(head, delta))
                if piece.whole is not None:
                    await self._end(out, head, body, name, piece.whole)
        except Problem as problem:  # the status is sent already
            await out.write(wire.event(problem.json()))
        await out.write(b"data: [DONE]\n\n")
        await out.write_eof()
        return out

    async def _end(
        self, out: web.StreamResponse, head: dict[str, Any], body: wire.Body, name: str, whole: Answer
    ) -> None:
        delta: dict[str, Any] = {}
        if whole.codes:
            self.memory.keep(name, whole.text, whole.codes)
            delta = {"audio": {"expires_at": int(time.time()) + wire.EXPIRES}}
        await out.write(wire.chunk(head, delta, whole.finish, whole.notes))
        if body.stream_options and body.stream_options.include_usage:
            told = {**head, "object": "chat.completion.chunk", "choices": [], "usage": wire.usage(_counts(whole))}
            await out.write(wire.event(told))

    def _described(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model", "created": self.began, "owned_by": "overtone"}


def _deltas(piece: Piece, speech: bool) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if piece.thought:
        out.append({"reasoning_content": piece.thought})
    if piece.text:
        out.append({"audio": {"transcript": piece.text}} if speech else {"content": piece.text})
    if piece.sound is not None and len(piece.sound):
        out.append({"audio": {"data": wire.sound_data(piece.sound, "pcm16")}})
    return out


async def _pieces(job: Job, first: Piece) -> AsyncIterator[Piece]:
    piece = first
    while True:
        yield piece
        if piece.whole is not None:
            return
        found = _checked(await job.out.get())
        if isinstance(found, Answer):
            raise TypeError("a stream of pieces held a whole answer")
        piece = found


def _checked(found: Piece | Answer | Exception) -> Piece | Answer:
    if isinstance(found, Exception):
        raise _problem(found)
    return found


def _problem(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, TooLong):
        return Problem(400, str(error), code="context_length_exceeded", param="messages")
    if isinstance(error, REQUEST_ERRORS):
        return Problem(400, str(error), param="messages")
    return Problem(500, f"the model failed ({type(error).__name__}); the server's log tells more")


def _stopping() -> Problem:
    return Problem(503, "the server is stopping; ask again when it is back", code="stopping")


def _counts(answer: Answer) -> dict[str, int]:
    spoken = len(answer.codes)
    return {"heard": answer.heard, "heard_sound": answer.heard_sound, "said": answer.said, "spoken": spoken}


async def serve(
    answerer: Answerer, taken: socket.socket, name: str, batch: int, ready: Callable[[str], None], guard: Guard
) -> None:
    """Answer those whom `guard` lets in until cancelled. `ready` gets the base URL once requests are taken."""
    engine = Engine(answerer, batch)
    async with listening(Server(engine, name, guard).app(), taken) as url:
        try:
            ready(url)
            await asyncio.Event().wait()
        finally:
            engine.close()  # before its connections are closed: what waits is told that the server stops
