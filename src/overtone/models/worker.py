"""A local model in a process with its own virtual environment: worker:NAME?model=PATH&python=VENV/bin/python.

NAME is a built-in worker (a file in `overtone/workers`) or the path of a worker program. Requests are gathered into
batches, a process that dies is restarted, and each of several GPUs gets a process.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from overtone.errors import AudioError, MissingExtra, ModelFailure, UsageError
from overtone.paths import user_path
from overtone.schema import Likelihood, Reply, Request, Sound, Usage
from overtone.spec import Spec, suggest
from overtone.workers import protocol
from overtone.workers.host import WORKERS, Job, Plan, StartFailed, WorkerProcess, worker_environment

KEYS: dict[str, type] = {
    "python": str,
    "model": str,
    "revision": str,
    "device": str,
    "dtype": str,
    "batch": int,
    "gpus": str,
    "voice": str,
    "speaker": str,
    "max_speech": float,
    "trust_remote_code": bool,
    "start_timeout": float,
    "heartbeat_timeout": float,
    "restarts": int,
}
_IDENTITY = (
    "model",
    "revision",
    "dtype",
    "voice",
    "temperature",
    "top_p",
    "max_tokens",
    "max_speech",
    "seed",
    "speech",
)
_GATHER = 0.005  # seconds that a batch waits for more requests
_ROOM = 64 << 10  # bytes kept free in a message for the JSON around the items
_REASONS = {"too_large", "bad_clip", "server", "rejected", "speech_refused"}


def built_in() -> list[str]:
    """Return the names of the workers that come with Overtone."""
    programs = (p for p in WORKERS.glob("[a-z]*.py") if p.stem not in ("host", "protocol"))
    return sorted(p.stem for p in programs if "protocol.serve(" in p.read_text("utf-8"))  # the others help metrics


class WorkerModel:
    """A model served by worker processes: `worker:NAME?…`. Set `log_folder` before `open()` to keep their logs there.

    `needs_trust` is True when the SPEC asks for code from the checkpoint to be run; `open()` refuses that unless
    `trusted` is set, which OVERTONE_TRUST_REMOTE_CODE=yes does as well.
    """

    keys = KEYS
    batch = 1  # the default; the SPEC can set another
    variables = ("HF_TOKEN",)

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        options = spec.typed(self.keys)
        self._program = self.find_program()
        if "speaker" in options and "voice" in options:
            raise UsageError(f"{spec}: voice and speaker mean the same; give one of them")
        options["voice"] = options.pop("speaker", options.get("voice", ""))
        self._batch: int = options.pop("batch", self.batch)
        self._restarts: int = options.pop("restarts", 3)
        self._timeout: float = options.pop("timeout", 600.0)
        self._start_timeout: float = options.pop("start_timeout", 1800.0)
        self._patience: float = options.pop("heartbeat_timeout", 60.0)
        gpus: str = options.pop("gpus", "")
        self._gpus: list[str | None] = [g.strip() for g in gpus.split(",")] if gpus else [None]
        self._python: str = options.pop("python", "")
        self._options = options
        self._speech: str = options.get("speech", "auto")
        for key, value in (("batch", self._batch), ("timeout", self._timeout), ("start_timeout", self._start_timeout)):
            if value <= 0:
                raise UsageError(f"{spec}: {key} must be more than 0")
        if self._patience < 1:
            raise UsageError(f"{spec}: heartbeat_timeout must be at least 1 second")
        if "" in self._gpus or len(set(self._gpus)) != len(self._gpus):
            raise UsageError(f"{spec}: gpus must be a list of different GPUs, e.g. gpus=0,1")
        self.needs_trust: bool = options.setdefault("trust_remote_code", False)
        self.trusted = os.environ.get("OVERTONE_TRUST_REMOTE_CODE", "").lower() in ("1", "yes", "true")
        self.slots: int | None = self._batch * len(self._gpus)
        self.log_folder: Path | None = None
        self._kept_logs = True
        self._limit = protocol.MAX_MESSAGE
        self._seats: list[_Seat] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._queue: deque[Job] = deque()
        self._facts: dict[str, Any] = {}
        self._over: ModelFailure | None = None

    # ── for subclasses to override ────────────────────────────────────────────────────────────────────────────────────
    def find_program(self) -> Path:
        """Return the path of the worker program. Raises UsageError if it does not exist."""
        if self.spec.name.endswith(".py"):
            path = user_path(self.spec.name).resolve()
            if not path.is_file():
                raise UsageError(f"{self.spec}: no worker program at {path}")
            return path
        name, known = self.spec.name.replace("-", "_"), built_in()
        if name not in known:
            raise UsageError(
                f"{self.spec}: no worker {self.spec.name!r}{suggest(name, known)}; known: {', '.join(known)}, or a "
                "path ending in .py"
            )
        return WORKERS / f"{name}.py"

    def find_python(self) -> Path:
        """Return the interpreter: python=, OVERTONE_WORKER_PYTHON, or .venv-worker next to the running environment.

        The working directory is not searched, because its files may be an untrusted download. Raises UsageError.
        """
        chosen = self._python or os.environ.get("OVERTONE_WORKER_PYTHON", "")
        path = user_path(chosen) if chosen else Path(sys.prefix).parent / ".venv-worker/bin/python"
        if path.is_file() and os.access(path, os.X_OK):
            return path.absolute()  # not resolved: a virtual environment is found through its own link
        raise UsageError(
            f"{self.spec}: no Python for the worker at {path}; make a virtual environment with "
            f"{WORKERS / 'requirements.txt'} and name its interpreter with python=PATH or OVERTONE_WORKER_PYTHON"
        )

    def is_hub_id(self, model: str) -> bool:
        """Return whether a checkpoint must be downloaded, because it is not a folder."""
        return not Path(model).exists()

    def environment(self, hub: bool, gpu: str | None) -> dict[str, str]:
        """Return the environment variables of its process."""
        return worker_environment(os.environ, hub=hub, gpu=gpu)

    def install(self) -> str:
        """Return the command that installs its packages."""
        return f"{self.find_python()} -m pip install -r {WORKERS / 'requirements.txt'}"

    async def open(self) -> None:
        """Start the processes and wait until all are ready."""
        if self.needs_trust and not self.trusted:
            raise UsageError(
                f"{self.spec}: trust_remote_code=yes runs Python code from the checkpoint on this machine; if you have "
                "read that code and trust it, set OVERTONE_TRUST_REMOTE_CODE=yes as well"
            )
        python = self.find_python()
        model = self._options.get("model", "")
        hub = bool(model) and self.is_hub_id(model)
        if hub and (model.startswith((".", "/", "~")) or model.count("/") != 1):
            raise UsageError(f"{self.spec}: {model!r} is neither a checkpoint's folder nor a hub id (owner/name)")
        if self.log_folder is None:
            self.log_folder, self._kept_logs = Path(tempfile.mkdtemp(prefix="overtone-worker-")), False
        self.log_folder.mkdir(parents=True, exist_ok=True)
        self._arrived = asyncio.Event()
        for number, gpu in enumerate(self._gpus):
            environment = self.environment(hub, gpu)
            options = {**self._options, "batch": self._batch, "hub": hub}
            log = self.log_folder / f"worker-{number}.log"
            plan = Plan(self._program, python, options, environment, log, min(2.0, self._patience / 4), self._patience)
            plan.limit = self._limit
            self._seats.append(_Seat(plan))
        starts: list[Coroutine[Any, Any, WorkerProcess]] = [seat.ready(self._start_timeout) for seat in self._seats]
        for outcome in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(outcome, BaseException):
                self._kept_logs = True
                await self.close()
                raise self._misconfigured(outcome) from None
        process = self._seats[0].process
        self._facts = process.facts if process else {}
        for seat in self._seats:
            task = asyncio.create_task(self._serve(seat))
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    async def ask(self, request: Request) -> Reply:
        """Answer a request, in a batch with other requests that arrived at the same time."""
        if self._over is not None:
            raise self._over
        if not self._tasks:
            raise UsageError(f"{self.spec}: ask() before open()")
        notes: tuple[str, ...] = ()
        speech = request.speech and self._speech != "no"
        if speech and not self._facts.get("speech"):
            if self._speech == "yes":
                raise ModelFailure("speech_refused", f"{self._program.stem} answers in text alone; use speech=auto")
            speech, notes = False, ("this model answers in text alone",)
        job = self._job(request, speech)
        self._queue.append(job)
        self._arrived.set()
        header, blobs = await job.answer
        if header["type"] == "error":
            reason = header["reason"] if header["reason"] in _REASONS else "server"
            raise ModelFailure(reason, header["detail"])
        usage = {k: v for k, v in header["usage"].items() if k in Usage.__struct_fields__}
        audio = blobs[0] if blobs else None
        notes += tuple(header["notes"])
        name = str(self._options.get("model") or self._program.stem)
        weighed = msgspec.convert(header.get("likelihoods", []), tuple[tuple[Likelihood, ...], ...])
        return Reply(header["text"], audio, header["finish"], Usage(**usage), name, notes, likelihoods=weighed)

    async def close(self) -> None:
        """End the processes and fail the waiting requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await asyncio.gather(*(seat.process.close() for seat in self._seats if seat.process))
        self._fail_all(ModelFailure("worker_died", "closed while a request was waiting"))
        if not self._kept_logs and self.log_folder is not None:
            shutil.rmtree(self.log_folder, ignore_errors=True)
            self.log_folder = None
        self._seats.clear()

    @property
    def audio_rate(self) -> int:
        """The sample rate of input sounds that the worker declared."""
        return int(self._facts.get("rate", 16_000))

    def describe(self) -> dict[str, Any]:
        """Return what identifies its replies; once open, also package versions, device and model class."""
        out: dict[str, Any] = {"worker": self._program.stem}
        out |= {key: self._options[key] for key in _IDENTITY if self._options.get(key) not in (None, "")}
        return out | ({"facts": self._facts} if self._facts else {})

    def _job(self, request: Request, speech: bool) -> Job:
        blobs: list[bytes] = []
        messages: list[dict[str, Any]] = []
        for message in request.messages:
            parts: list[str | int] = []
            for part in message.parts:
                if isinstance(part, Sound):
                    parts.append(len(blobs))
                    blobs.append(_at_rate(part, self.audio_rate))
                else:
                    parts.append(part)
            messages.append({"role": message.role, "parts": parts})
        seed = self._options.get("seed")
        header = {
            "messages": messages,
            "speech": speech,
            "seed": seed if request.seed is None else request.seed,
            "task": request.task,
            "options": list(request.options),
        }
        if request.continuations:
            header["continuations"] = request.continuations
            header["without"] = [{"role": m.role, "parts": [m.text]} for m in request.without]
        size = len(protocol.pack({"type": "item", **header})) + sum(map(len, blobs))
        if size > self._limit - _ROOM:
            most = self._limit / 1e6
            raise ModelFailure("too_large", f"a request of {size / 1e6:.1f} MB; a worker takes at most {most:.0f} MB")
        return Job(header, blobs, asyncio.get_running_loop().create_future(), size)

    async def _serve(self, seat: _Seat) -> None:
        """Send batches to this seat's process, and restart it if it died."""
        while True:
            jobs = seat.jobs = await self._gather(seat)
            try:
                process = await seat.ready(self._start_timeout)
            except StartFailed as error:
                seat.deaths += 1
                for job in jobs:
                    if not job.answer.done():
                        detail = f"it could not be started again: {error}"
                        job.answer.set_exception(ModelFailure("worker_died", detail, retry=True))
            else:
                await process.submit(jobs, self._timeout)
                if process.dead:
                    seat.deaths += 1
            for job in jobs:
                if job.answer.done() and not job.answer.cancelled() and not job.answer.exception():
                    seat.deaths = 0
                    seat.batch = min(seat.batch or self._batch, int(job.answer.result()[0]["batch"]))
            if seat.deaths > self._restarts:
                seat.retired = True
                if all(s.retired for s in self._seats):
                    why = f"the worker died {seat.deaths} times in a row without an answer"
                    tail = seat.process.tail() if seat.process else ""
                    self._over = ModelFailure("worker_died", f"{why}{tail}", fatal=True)
                    self._kept_logs = True
                    self._fail_all(self._over)
                return

    async def _gather(self, seat: _Seat) -> list[Job]:
        """Wait for at least one job. Return as many waiting jobs as fit into a batch and into one message."""
        jobs: list[Job] = []
        size = 0
        most = seat.batch or self._batch
        loop = asyncio.get_running_loop()
        until = 0.0
        while len(jobs) < most:
            while self._queue and self._queue[0].answer.done():
                self._queue.popleft()  # cancelled while it waited
            if self._queue:
                if jobs and size + self._queue[0].size > self._limit - _ROOM:
                    break
                job = self._queue.popleft()
                jobs.append(job)
                size += job.size
                until = until or loop.time() + _GATHER
                continue
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), until - loop.time() if jobs else None)
            except TimeoutError:
                break
        return jobs

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._over = ModelFailure("worker_died", f"serving the worker failed: {error!r}", fatal=True)
            self._fail_all(self._over)

    def _fail_all(self, failure: ModelFailure) -> None:
        """Fail every job that waits or was taken from the queue without an answer."""
        for job in (*self._queue, *(job for seat in self._seats for job in seat.jobs)):
            if not job.answer.done():
                job.answer.set_exception(failure)
        self._queue.clear()

    def _misconfigured(self, error: BaseException) -> BaseException:
        if not isinstance(error, StartFailed):
            return error
        if error.missing:
            return MissingExtra(
                f"{self.spec}: the worker's environment has no package {error.missing!r}; install it there: "
                f"{self.install()}"
            )
        return UsageError(f"{self.spec}: the worker did not start: {error}")


class _Seat:
    """The state of one process across restarts: how often it died without an answer, and the batch size that fits its
    GPU."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.process: WorkerProcess | None = None
        self.jobs: list[Job] = []
        self.deaths = 0
        self.batch = 0
        self.retired = False

    async def ready(self, timeout: float) -> WorkerProcess:
        """Return the running process, after starting or restarting it if necessary."""
        if self.process is None or self.process.dead:
            if self.process is not None:
                await self.process.close()
            self.process = WorkerProcess(self.plan)
            await self.process.start(timeout)
        return self.process


load = WorkerModel


def _at_rate(sound: Sound, rate: int) -> bytes:
    """Return the sound's WAV at the rate that the worker wants. The header has the rate at byte 24."""
    if int.from_bytes(sound.wav[24:28], "little") == rate:
        return sound.wav
    from overtone.audio import decode, encode_wav

    try:
        samples, _ = decode(sound.wav, rate=rate)
    except AudioError as error:
        raise ModelFailure("bad_clip", str(error)) from None
    return encode_wav(samples, rate)
