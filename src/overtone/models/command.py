"""Ask your own program: it reads one JSON request per line and writes one JSON reply per line.

The program is started once, without a shell, and kept. A reply is matched to its request by `id`. See
docs/how-to/models.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import sys
from collections import deque
from typing import Any

import msgspec
from msgspec import Struct

from overtone import processes
from overtone.errors import ModelFailure, UsageError
from overtone.models import _speech
from overtone.models._chat import NO_SPEECH
from overtone.models.http import DEFAULT_TIMEOUT, generation
from overtone.safety import executable, without_secrets
from overtone.schema import Reply, Request, Sound, Usage
from overtone.spec import Spec

MAX_LINE_BYTES = 64 * 2**20
MAX_RESTARTS = 3  # in a row, without a reply in between
GRACE_SECONDS = 3.0
STDERR_LINES = 20
SHOWN_CHARS = 300
KEYS: dict[str, type] = {"args": str, "slots": int}


class _Error(Struct):
    message: str = ""
    reason: str = "rejected"
    retry: bool = False


class _Line(Struct):
    id: int
    text: str | None = None
    audio: str | None = None
    finish: str = ""
    refused: bool = False
    error: _Error | str | None = None
    usage: Usage = Usage()
    model: str = ""


_decoder = msgspec.json.Decoder(_Line)
_encode = msgspec.json.Encoder().encode


class Command:
    """One program, started once, that reads requests from its standard input: `command:PATH?…`."""

    def __init__(self, spec: Spec) -> None:
        options = spec.typed(KEYS)
        if not spec.name:
            raise UsageError(f"{spec}: the program's path is missing; write command:PATH, e.g. command:./my_model.py")
        self.spec = spec
        slots: int = options.get("slots", 1)
        if slots < 1:
            raise UsageError(f"{spec}: slots must be at least 1, not {slots}")
        self.slots: int | None = slots
        self._path = executable(spec.name, str(spec))
        self._args: list[str] = options.get("args", "").split()
        self._parameters = generation(spec, options)
        self._timeout: float = options.get("timeout", DEFAULT_TIMEOUT)
        self._speech: str = options.get("speech", "auto")
        self._ids = itertools.count(1)
        self._program: _Program | None = None
        self._starter: asyncio.Task[_Program] | None = None
        self._lock = asyncio.Lock()
        self._closed = False
        self._free = asyncio.Semaphore(slots)
        self._starts = 0  # in a row, without a reply

    def __repr__(self) -> str:
        return f"Command({self.spec})"

    def describe(self) -> dict[str, Any]:
        digest = hashlib.sha256(self._path.read_bytes()).hexdigest()
        out = {"kind": "command", "program": self._path.name, "sha256": digest, "args": self._args}
        return {**out, **self._parameters, "speech": self._speech}

    async def open(self) -> None:
        self._closed = False
        await self._running()

    async def close(self) -> None:
        self._closed = True
        async with self._lock:
            if self._starter is not None:
                await self._started(self._starter)
            program, self._program = self._program, None
            if program is not None:
                await program.close()

    async def ask(self, request: Request) -> Reply:
        async with self._free:
            program = await self._running()
            number = next(self._ids)
            try:
                async with asyncio.timeout(self._timeout):
                    line = await program.ask(number, self.line(number, request))
            except TimeoutError:
                program.kill(f"was killed: a request got no reply in {self._timeout:g} s")
                detail = f"no reply in {self._timeout:g} s; the program was killed{program.stderr_end()}"
                raise ModelFailure("timeout", detail, retry=True) from None
        self._starts = 0
        return self._reply(line, request)

    def line(self, number: int, request: Request) -> bytes:
        """Encode a request as one line of JSON, without the line break."""
        parameters = dict(self._parameters)
        if request.seed is not None:
            parameters["seed"] = request.seed
        return _encode(
            {
                "id": number,
                "messages": [
                    {"role": message.role, "parts": [_part(part) for part in message.parts]}
                    for message in request.messages
                ],
                "speech": request.speech and self._speech != "no",
                "task": request.task,
                "options": request.options,
                "parameters": parameters,
            }
        )

    def _reply(self, line: _Line, request: Request) -> Reply:
        if line.error is not None:
            error = _Error(line.error) if isinstance(line.error, str) else line.error
            known = error.reason in ModelFailure.REASONS
            detail = error.message if known else f"{error.reason}: {error.message}"
            shown = without_secrets(detail)[:SHOWN_CHARS]
            raise ModelFailure(error.reason if known else "rejected", shown, retry=error.retry)
        if line.text is None:
            raise ModelFailure("malformed", 'the reply has neither "text" nor "error"', retry=True)
        wav = _speech.from_base64(line.audio) if line.audio else None
        notes: tuple[str, ...] = ()
        if request.speech and self._speech != "no" and wav is None and not line.refused:
            if self._speech == "yes":
                raise ModelFailure("speech_refused", "the program answered without speech", retry=True)
            notes = (NO_SPEECH,)
        return Reply(line.text, wav, line.finish, line.usage, line.model, notes, line.refused)

    async def _running(self) -> _Program:
        async with self._lock:
            if self._closed:
                raise ModelFailure("worker_died", "the program was closed")
            if self._program is not None and self._program.alive:
                return self._program
            if self._starts > MAX_RESTARTS:
                end = self._program.stderr_end() if self._program else ""
                raise ModelFailure("worker_died", f"restarted {MAX_RESTARTS} times without a reply{end}", fatal=True)
            if self._program is not None:
                await self._program.close()  # it has ended; this reads the rest of stderr and leaves no child process
            if self._starter is None:
                self._starts += 1
                python = [sys.executable, "-u"] if self._path.suffix == ".py" else []
                self._starter = asyncio.create_task(_Program.start([*python, str(self._path), *self._args]))
            await self._started(self._starter)
            assert self._program is not None
            return self._program

    async def _started(self, starter: asyncio.Task[_Program]) -> None:
        """Wait for a start. It is shielded, because asyncio hangs if starting a process is cancelled half-way."""
        try:
            self._program = await asyncio.shield(starter)
        except OSError as error:
            raise UsageError(f"{self.spec}: cannot start {self._path}: {error.strerror or error}") from None
        finally:
            if starter.done():
                self._starter = None


class _Program:
    """One running process and the requests it has not answered yet."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.alive = True
        self._process = process
        self._waiting: dict[int, asyncio.Future[_Line]] = {}
        self._noise = ""  # a line that came while no request was open and is not a reply
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._errors = asyncio.create_task(self._read_stderr())
        self._replies = asyncio.create_task(self._read_replies())

    @classmethod
    async def start(cls, command: list[str]) -> _Program:
        return cls(
            await processes.start(
                command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MAX_LINE_BYTES,  # asyncio's own limit of 64 KB is less than two seconds of speech
            )
        )

    async def ask(self, number: int, line: bytes) -> _Line:
        if self._noise:
            noise, self._noise = self._noise, ""
            raise ModelFailure("malformed", noise, retry=True)
        if not self.alive:
            raise ModelFailure("worker_died", f"the program has ended{self.stderr_end()}", retry=True)
        assert self._process.stdin is not None
        future: asyncio.Future[_Line] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            # A program that has ended breaks the pipe; _read_replies reports how it ended.
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(line + b"\n")
                await self._process.stdin.drain()
            return await future
        finally:
            del self._waiting[number]
            if future.done() and not future.cancelled():
                future.exception()  # a failure that came while the line was still being written

    def kill(self, why: str) -> None:
        """End it now and fail the waiting requests with the reason."""
        self.alive = False
        processes.signal_group(self._process.pid)
        self._fail_all("worker_died", f"the program {why}{self.stderr_end()}")

    async def close(self) -> None:
        """End it: close its input and wait, then terminate, then kill."""
        self.alive = False
        self._fail_all("worker_died", "the program was closed")
        assert self._process.stdin is not None
        self._process.stdin.close()
        await processes.end(self._process, GRACE_SECONDS, (processes.TERMINATE, processes.KILL))
        done, late = await asyncio.wait([self._errors, self._replies], timeout=GRACE_SECONDS)
        for task in late:
            task.cancel()
        for task in done:
            task.result()

    def stderr_end(self) -> str:
        """Return the end of its stderr, to be appended to an error's text."""
        return processes.last_lines("\n".join(line for line in self._stderr if line.strip()))

    async def _read_replies(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                raw = await self._process.stdout.readline()
            except ValueError:  # asyncio raises it for a line above the limit
                self.alive = False
                processes.signal_group(self._process.pid)
                self._fail_all("too_large", f"the program wrote a line of more than {MAX_LINE_BYTES // 2**20} MB")
                return
            if not raw:
                break
            if raw.strip():
                self._take(raw)
        code = await self._process.wait()
        self.alive = False
        await asyncio.wait([self._errors], timeout=1.0)
        self._fail_all("worker_died", f"the program ended with {processes.ended_with(code)}{self.stderr_end()}")

    def _take(self, raw: bytes) -> None:
        try:
            line = _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = without_secrets(raw[: 4 * SHOWN_CHARS].decode("utf-8", "replace").strip())[:SHOWN_CHARS]
            noise = f"the program wrote a line that is not a reply: {shown!r} ({error}); write logs to stderr"
            if self._waiting:
                self._fail_all("malformed", noise)
            else:
                self._noise = self._noise or noise
            return
        future = self._waiting.get(line.id)
        if future is not None and not future.done():  # otherwise the reply is late: its request has already failed
            future.set_result(line)

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while chunk := await self._process.stderr.read(2**16):
            *lines, rest = (rest + chunk)[-(2**17) :].split(b"\n")
            self._stderr.extend(line.decode("utf-8", "replace") for line in lines)
        if rest:
            self._stderr.append(rest.decode("utf-8", "replace"))

    def _fail_all(self, reason: str, detail: str) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ModelFailure(reason, detail, retry=reason != "too_large"))


load = Command


def _part(part: str | Sound) -> dict[str, Any]:
    if isinstance(part, Sound):
        return {"audio": part.wav, "sha256": part.sha256, "seconds": part.seconds}
    return {"text": part}
