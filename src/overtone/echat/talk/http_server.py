"""`overtone serve`: serve a trained checkpoint with OpenAI's chat completions API, with audio input and output.

One thread runs the model. Waiting requests are answered in batches; a streamed request is answered alone. If a client
disconnects, its request is cancelled. A request that crashes the model does not affect the others.
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

from overtone.echat.talk import openai_format, realtime_server
from overtone.echat.talk.answer import Answer, Answerer, Piece, TooLong
from overtone.echat.talk.dialogue import Asked, Unanswerable
from overtone.errors import AudioError
from overtone.server_guard import MAX_BODY, Guard, Problem, json_response, listening, middlewares, read_json

MAX_WAITING = 32
REQUEST_ERRORS = (AudioError, TooLong, Unanswerable)  # errors of the request; all others are the server's


@dataclass(eq=False)
class Job:
    """A request for the model's thread. Results are put into `out`."""

    asked: Asked
    stream: bool
    loop: asyncio.AbstractEventLoop
    out: asyncio.Queue[Piece | Answer | Exception] = field(default_factory=asyncio.Queue)
    gone: threading.Event = field(default_factory=threading.Event)

    def put(self, what: Piece | Answer | Exception) -> None:
        """Send a result to the client's coroutine, unless the client is gone."""
        if not self.gone.is_set():
            with contextlib.suppress(RuntimeError):  # the server has stopped
                self.loop.call_soon_threadsafe(self.out.put_nowait, what)


class Engine:
    """The thread that runs the model, and its queue."""

    def __init__(self, answerer: Answerer, batch: int = 8) -> None:
        self.answerer, self.batch = answerer, batch
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._work, daemon=True, name="echat")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of queued requests."""
        return len(self._waiting)

    def check(self) -> None:
        """Raise Problem if the queue is full or the server is stopping."""
        if self._over:
            raise _stopping()
        if len(self._waiting) >= MAX_WAITING:
            raise Problem(503, f"{MAX_WAITING} requests are waiting; try again later", code="overloaded")

    def submit(self, job: Job) -> None:
        """Queue a request. Raises Problem."""
        with self._changed:
            self.check()
            self._waiting.append(job)
            self._changed.notify()

    def leave(self, job: Job) -> None:
        """Cancel a request: remove it from the queue, or stop it if it is running."""
        job.gone.set()
        with self._changed, contextlib.suppress(ValueError):  # already running
            self._waiting.remove(job)

    def close(self) -> None:
        """Stop the thread. Queued requests get an error."""
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
        """Answer jobs in one batch.

        If the batch fails, its jobs are retried one by one, so that only the failing job gets the error.
        """
        try:
            if jobs[0].stream:
                self._stream(jobs[0])
            else:
                self._answer(jobs)
        except Exception as error:  # noqa: BLE001 - any error must reach the client
            traceback.print_exc()
            if len(jobs) == 1:
                jobs[0].put(error)
                return
        else:
            return
        for job in jobs:  # outside the except block, so that the error's frames release their tensors
            self._try([job])

    def _next(self) -> list[Job]:
        """Return the next requests to answer: one streamed request, or a batch of all requests before the next streamed
        one.

        Return [] if the server is stopping.
        """
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
        for job in jobs:  # an invalid request must not fail the batch
            if job.gone.is_set():
                continue
            try:
                self.answerer.lay_out(job.asked)
                fit.append(job)
            except REQUEST_ERRORS as error:
                job.put(error)
        if not fit:
            return
        wanted = [job.asked for job in fit]
        answers = self.answerer.answer(wanted, lambda i: not (fit[i].gone.is_set() or self._over))
        for job, answer in zip(fit, answers, strict=True):
            job.put(_stopping() if self._over else answer)  # the answer may be incomplete

    def _stream(self, job: Job) -> None:
        try:
            for piece in self.answerer.stream(job.asked, lambda: not (job.gone.is_set() or self._over)):
                job.put(piece)
            if self._over:
                job.put(_stopping())
        except REQUEST_ERRORS as error:
            job.put(error)


class Server:
    """The HTTP routes."""

    def __init__(self, engine: Engine, name: str, guard: Guard) -> None:
        self.engine, self.name, self.guard = engine, name, guard
        self.memory = openai_format.Memory()
        self.began = int(time.time())

    def app(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares(self.guard))
        app.add_routes(
            [
                web.get("/health", self.health),
                web.get("/v1/models", self.models),
                web.get("/v1/models/{name}", self.model),
                web.post("/v1/chat/completions", self.complete),
                web.post("/v1/audio/speech", self.speak),
                web.get("/v1/realtime", self.converse),
            ]
        )
        return app

    async def health(self, request: web.Request) -> web.Response:
        """Answer GET /health."""
        return json_response({"status": "ok", "waiting": self.engine.waiting})

    async def models(self, request: web.Request) -> web.Response:
        """Answer GET /v1/models."""
        return json_response({"object": "list", "data": [self._described()]})

    async def model(self, request: web.Request) -> web.Response:
        """Answer GET /v1/models/NAME."""
        if request.match_info["name"] != self.name:
            raise Problem(404, f"unknown model; this server has only {self.name!r}", code="model_not_found")
        return json_response(self._described())

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer POST /v1/chat/completions."""
        body = openai_format.parse(await read_json(request), self.name)
        self.engine.check()  # before audio is decoded
        asked = await asyncio.to_thread(openai_format.asked, body, self.memory)
        job = Job(asked, bool(body.stream), asyncio.get_running_loop())
        self.engine.submit(job)
        head = {"id": openai_format.new_id("chatcmpl"), "created": int(time.time()), "model": self.name}
        try:
            first = _checked(await job.out.get())
            if isinstance(first, Answer):
                return json_response(self._completion(head, body, first))
            return await self._streamed(request, head, body, job, first)
        finally:
            self.engine.leave(job)  # answered, or the client has disconnected

    async def speak(self, request: web.Request) -> web.StreamResponse:
        """Answer POST /v1/audio/speech."""
        return await realtime_server.read_aloud(request, self._answered, self.name)

    async def converse(self, request: web.Request) -> web.StreamResponse:
        """Answer GET /v1/realtime."""
        self.engine.check()
        return await realtime_server.converse(request, self._answers, self.name)

    async def _answered(self, asked: Asked) -> Answer:
        job = Job(asked, False, asyncio.get_running_loop())
        self.engine.submit(job)
        try:
            answer = _checked(await job.out.get())
        finally:
            self.engine.leave(job)
        if not isinstance(answer, Answer):
            raise TypeError("a request that does not stream got a piece")
        return answer

    async def _answers(self, asked: Asked) -> AsyncIterator[Piece]:
        """Yield the pieces of a streamed answer. Raises Problem."""
        job = Job(asked, True, asyncio.get_running_loop())
        self.engine.submit(job)
        try:
            first = _checked(await job.out.get())
            if isinstance(first, Answer):
                raise TypeError("a stream of pieces contained a whole answer")
            async for piece in _pieces(job, first):
                yield piece
        finally:
            self.engine.leave(job)

    def _completion(self, head: dict[str, Any], body: openai_format.Body, answer: Answer) -> dict[str, Any]:
        message: dict[str, Any] = {"content": answer.text, "refusal": None}
        if answer.thought:
            message["reasoning_content"] = answer.thought
        if answer.sound is not None:
            name = openai_format.new_id("audio")
            self.memory.keep(name, answer.text, answer.codes)
            message["content"] = None
            message["audio"] = {
                "id": name,
                "data": openai_format.sound_data(answer.sound, body.format),
                "transcript": answer.text,
                "expires_at": int(time.time()) + openai_format.EXPIRES,
            }
        return openai_format.completion(head, message, answer)

    async def _streamed(
        self, request: web.Request, head: dict[str, Any], body: openai_format.Body, job: Job, first: Piece
    ) -> web.StreamResponse:
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await out.prepare(request)
        name = openai_format.new_id("audio")
        start: dict[str, Any] = {"role": "assistant", "content": ""}
        if body.speech:
            start = {"role": "assistant", "audio": {"id": name}}
        await out.write(openai_format.chunk(head, start))
        try:
            async for piece in _pieces(job, first):
                for delta in _deltas(piece, body.speech):
                    await out.write(openai_format.chunk(head, delta))
                if piece.whole is not None:
                    await self._end(out, head, body, name, piece.whole)
        except Problem as problem:  # the status has already been sent
            await out.write(openai_format.event(problem.json()))
        await out.write(b"data: [DONE]\n\n")
        await out.write_eof()
        return out

    async def _end(
        self, out: web.StreamResponse, head: dict[str, Any], body: openai_format.Body, name: str, whole: Answer
    ) -> None:
        delta: dict[str, Any] = {}
        if whole.codes:
            self.memory.keep(name, whole.text, whole.codes)
            delta = {"audio": {"expires_at": int(time.time()) + openai_format.EXPIRES}}
        await out.write(openai_format.chunk(head, delta, whole.finish, whole.notes))
        if body.stream_options and body.stream_options.include_usage:
            last = {**head, "object": "chat.completion.chunk", "choices": [], "usage": openai_format.usage(whole)}
            await out.write(openai_format.event(last))

    def _described(self) -> dict[str, Any]:
        return {"id": self.name, "object": "model", "created": self.began, "owned_by": "overtone"}


def _deltas(piece: Piece, speech: bool) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    if piece.thought:
        out.append({"reasoning_content": piece.thought})
    if piece.text:
        out.append({"audio": {"transcript": piece.text}} if speech else {"content": piece.text})
    if piece.sound is not None and len(piece.sound):
        out.append({"audio": {"data": openai_format.sound_data(piece.sound, "pcm16")}})
    return out


async def _pieces(job: Job, first: Piece) -> AsyncIterator[Piece]:
    piece = first
    while True:
        yield piece
        if piece.whole is not None:
            return
        received = _checked(await job.out.get())
        if isinstance(received, Answer):
            raise TypeError("a stream of pieces contained a whole answer")
        piece = received


def _checked(received: Piece | Answer | Exception) -> Piece | Answer:
    if isinstance(received, Exception):
        raise _problem(received)
    return received


def _problem(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, TooLong):
        return Problem(400, str(error), code="context_length_exceeded", param="messages")
    if isinstance(error, REQUEST_ERRORS):
        return Problem(400, str(error), param="messages")
    return Problem(500, f"the model failed ({type(error).__name__}); see the server's log")


def _stopping() -> Problem:
    return Problem(503, "the server is stopping; try again later", code="stopping")


async def serve(
    answerer: Answerer, taken: socket.socket, name: str, batch: int, ready: Callable[[str], None], guard: Guard
) -> None:
    """Serve clients that `guard` admits, until cancelled. `ready` gets the base URL when the server is listening."""
    engine = Engine(answerer, batch)
    async with listening(Server(engine, name, guard).app(), taken) as url:
        try:
            ready(url)
            await asyncio.Event().wait()
        finally:
            engine.close()  # before the connections close, so that queued requests get an error
