"""Overtone's side of a worker process: start it with a clean environment, exchange messages, end it with its children.

The process communicates over a socket pair. Its output goes to a log file, whose last lines are quoted if it dies.
Models (`worker:`) and the helpers of metrics use this. Of the modules of this package, only this one and `protocol` run
in Overtone's own environment.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overtone import processes
from overtone.errors import ModelFailure
from overtone.safety import SECRET_NAME
from overtone.workers import protocol

WORKERS = Path(__file__).parent
_GRACE = 5.0  # seconds that a worker has to end by itself
TAIL_LINES = 20
_TAIL_BYTES = 8192
_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|LD_LIBRARY_PATH|XDG_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(CUDA|NVIDIA|ROCR|HIP|HSA|NCCL|OMP|MKL|OPENBLAS|KMP|TORCH|PYTORCH|TRITON|TRANSFORMERS|HF|HUGGINGFACE)_\w+|TORCHINDUCTOR\w*|OVERTONE_ACCEPTED_LICENCES"
)
_PROXIES = re.compile(r"(https?|all|no)_proxy", re.I)


def worker_environment(environ: Mapping[str, str], *, hub: bool, gpu: str | None) -> dict[str, str]:
    """Return the environment of a worker: variables on an allow-list whose names do not look like secrets.

    HF_TOKEN is passed for a hub id only. `OVERTONE_WORKER_ENV=NAME,NAME` adds variables, but never secrets.
    """
    named = {n.strip() for n in environ.get("OVERTONE_WORKER_ENV", "").split(",") if n.strip()}
    out: dict[str, str] = {}
    for name, value in environ.items():
        allowed = _PASSED.fullmatch(name) or name in named or (hub and _PROXIES.fullmatch(name))
        if allowed and (not SECRET_NAME.search(name) or (hub and name == "HF_TOKEN")):
            out[name] = value
    out |= {"PYTHONPATH": str(WORKERS), "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}
    out |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
    if not hub:  # a checkpoint on disk needs neither the network nor the token file in HOME
        out |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
    if gpu is not None:
        out["CUDA_VISIBLE_DEVICES"] = gpu
    return out


def tail(log: Path) -> str:
    """Return the last lines of a log, worded to end the sentence of an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f" (its log cannot be read: {error.strerror})"
    kept = [line.rstrip() for line in lines if line.strip()][-TAIL_LINES:]
    return "; its log is empty" if not kept else f"; the end of its log ({log}):\n" + "\n".join(kept)


def missing_module(text: str) -> str:
    """Return the name of the missing module if the text has a traceback of its import, otherwise ""."""
    match = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    return match[1] if match else ""


Answer = tuple[dict[str, Any], list[bytes]]  # a message and the blobs that came with it


class StartFailed(Exception):
    """The worker did not become ready. `missing` is the package that is not installed in its environment, if that is
    the reason."""

    def __init__(self, detail: str, missing: str = "") -> None:
        super().__init__(detail)
        self.missing = missing


@dataclass
class Job:
    """A pending request: its JSON, its blobs (which the JSON refers to by index), and the future of its answer."""

    header: dict[str, Any]
    blobs: list[bytes]
    answer: asyncio.Future[Answer]
    size: int = 0


@dataclass
class Plan:
    """How to start a worker."""

    program: Path
    python: Path
    options: dict[str, Any]
    environment: dict[str, str]
    log: Path
    heartbeat: float = 2.0
    patience: float = 60.0  # seconds without a heartbeat after which it counts as hung
    limit: int = protocol.MAX_MESSAGE


@dataclass
class WorkerProcess:
    """A started worker. `facts` is its description of itself when it became ready."""

    plan: Plan
    facts: dict[str, Any] = field(default_factory=dict)
    dead: str = ""  # the reason, once it is dead

    async def start(self, timeout: float) -> None:
        """Start it and wait until it is ready. Raises StartFailed with the end of its log."""
        ours, theirs = socket.socketpair()
        environment = {**self.plan.environment, protocol.FD_VARIABLE: str(theirs.fileno())}
        loop = asyncio.get_running_loop()
        try:
            with self.plan.log.open("ab") as log:
                self._process = await processes.start(
                    [str(self.plan.python), str(self.plan.program)],
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(theirs.fileno(),),
                    env=environment,
                )
        except OSError as error:
            ours.close()
            raise StartFailed(f"{self.plan.python} cannot be started: {error.strerror}") from None
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._waiting: dict[int, Job] = {}
        self._served: asyncio.Future[None] = loop.create_future()
        self._dying: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._heard: float | None = None  # while it imports its libraries, only the start timeout counts
        self._deadline: float | None = None
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._watch())]
        hello = {"type": "hello", "protocol": protocol.VERSION, "options": self.plan.options}
        self._write(protocol.pack({**hello, "heartbeat": self.plan.heartbeat, "limit": self.plan.limit}))
        try:
            self.facts = await asyncio.wait_for(asyncio.shield(self._ready), timeout)
        except TimeoutError:
            await self._die(f"not ready after {timeout:g} s")
            raise StartFailed(f"not ready after {timeout:g} s{self.tail()}") from None
        except BaseException:
            await self._die("start given up")
            raise

    async def submit(self, jobs: Sequence[Job], timeout: float) -> None:
        """Send the jobs as one batch and wait until each has its answer or its failure."""
        items: list[dict[str, Any]] = []
        blobs: list[bytes] = []
        self._waiting = dict(enumerate(jobs))
        for number, job in self._waiting.items():
            shift = len(blobs)
            messages = [
                {"role": m["role"], "parts": [p + shift if isinstance(p, int) else p for p in m["parts"]]}
                for m in job.header["messages"]
            ]
            items.append({**job.header, "id": number, "messages": messages})
            blobs.extend(job.blobs)
        await self._exchange({"type": "batch", "items": items}, blobs, timeout)

    async def call(self, header: Mapping[str, Any], blobs: Sequence[bytes], timeout: float) -> Answer:
        """Return the answer to one call, for a program that serves calls and not batches.

        Raises TooLarge if the call is over the limit, ModelFailure if the process is dead or dies during the call.
        """
        job = Job({}, [], asyncio.get_running_loop().create_future())
        self._waiting = {0: job}
        await self._exchange({**header, "type": "call"}, blobs, timeout)
        return await job.answer

    async def _exchange(self, header: dict[str, Any], blobs: Sequence[bytes], timeout: float) -> None:
        """Send a message and wait until every waiting job has its answer or its failure."""
        loop = asyncio.get_running_loop()
        self._served = loop.create_future()
        if self.dead:
            self._fail_waiting()
        else:
            try:
                self._write(protocol.pack(header, blobs, self.plan.limit))
            except protocol.TooLarge:
                self._waiting = {}
                raise
            self._timeout, self._deadline = timeout, loop.time() + timeout
        await self._served  # not the jobs' futures: those may be cancelled while the worker is still busy
        self._deadline = None

    async def close(self) -> None:
        """Ask the worker to end, and kill it if it does not."""
        if not hasattr(self, "_process"):
            return
        idle = not self.dead and not self._waiting  # a busy worker does not read messages
        if idle:
            self._write(protocol.pack({"type": "shutdown"}))
        await self._die("closed", grace=_GRACE if idle else 0.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def tail(self) -> str:
        return tail(self.plan.log)

    def _write(self, frame: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame)

    async def _listen(self) -> None:
        reason = ""
        try:
            while True:
                prefix = await self._reader.readexactly(4)
                text = await self._reader.readexactly(protocol.header_size(prefix, self.plan.limit))
                header, sizes = protocol.parse_header(text, self.plan.limit)
                blobs = [await self._reader.readexactly(size) for size in sizes]
                self._heard = asyncio.get_running_loop().time()
                self._take(header, blobs)
        except (asyncio.IncompleteReadError, ConnectionError):
            reason = ""  # it has ended; its exit status says more
        except (protocol.ProtocolError, KeyError, TypeError, ValueError) as error:
            reason = f"it broke the protocol ({type(error).__name__}: {error})"
        await self._die(reason)

    def _take(self, header: dict[str, Any], blobs: list[bytes]) -> None:
        kind = header["type"]
        if kind == "ready" and not self._ready.done():
            self._ready.set_result(dict(header["facts"]))
        elif kind == "failed" and not self._ready.done():
            self._ready.set_exception(StartFailed(f"{header['detail']}{self.tail()}", header["missing"]))
        elif kind in ("reply", "result", "error"):
            job = self._waiting.pop(header.get("id", 0))  # a call has no number, because there is one at a time
            if not job.answer.done():
                job.answer.set_result((header, blobs))
            if not self._waiting and not self._served.done():
                self._served.set_result(None)
        elif kind != "heartbeat":
            raise protocol.ProtocolError(f"unknown message {kind!r}")

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        tick = min(1.0, self.plan.patience / 4)
        while not self.dead:
            before = loop.time()
            await asyncio.sleep(tick)
            now = loop.time()
            if now - before > 2 * tick + 1:  # our own loop was blocked: heartbeats may be unread
                self._heard = self._heard and now
            elif self._heard is not None and now - self._heard > self.plan.patience:
                await self._die(f"no heartbeat for {self.plan.patience:g} s")
            elif self._deadline is not None and now > self._deadline:
                await self._die(f"no answer within {self._timeout:g} s", reason="timeout")

    async def _die(self, detail: str, reason: str = "worker_died", grace: float = 0.0) -> None:
        if self._dying is None:  # several tasks may notice its end; one cleans up, even if the others are cancelled
            self._dying = asyncio.create_task(self._clean_up(detail, reason, grace))
        await asyncio.shield(self._dying)

    async def _clean_up(self, detail: str, reason: str, grace: float) -> None:
        self.dead = detail or "it ended"
        if not detail:  # the socket closed: let the process write its last output before its status is read
            grace = _GRACE
        status = await processes.end(self._process, grace)
        if not detail:
            self.dead = f"it ended with {processes.ended_with(status)}"
        self._writer.close()
        if not self._ready.done():
            log_end = self.tail()
            self._ready.set_exception(StartFailed(f"{self.dead}{log_end}", missing_module(log_end)))
            self._ready.exception()  # marks it as retrieved: it is not an error if no task waits for it
        self._fail_waiting(reason)

    def _fail_waiting(self, reason: str = "worker_died") -> None:
        for job in self._waiting.values():
            if not job.answer.done():
                job.answer.set_exception(ModelFailure(reason, f"{self.dead}{self.tail()}", retry=True))
        self._waiting.clear()
        if not self._served.done():
            self._served.set_result(None)
