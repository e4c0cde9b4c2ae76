"""A helper of a metric: a program of `workers/` that runs in the measuring environment and answers calls.

Heavy predictors need torch, which is no part of Overtone. They live in a virtual environment of their own, made by
`overtone setup measures`, and are spoken to over the workers' wire: one call, one answer. The workers' host runs them
on an event loop in a thread of its own, because metrics are not asynchronous.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from overtone.errors import MissingExtra, ModelFailure, OvertoneError
from overtone.paths import user_data
from overtone.workers import host, protocol

SETUP = "overtone setup measures"
_PATIENCE = 120.0  # seconds without a heartbeat after which it counts as hung


class HelperDied(OvertoneError):
    """The process is gone, or does not answer; the text holds the last lines of its log. Calling again starts anew."""


def measures_folder(environ: Mapping[str, str]) -> Path:
    """The measuring environment's folder: OVERTONE_MEASURES, else overtone/measures among the user's data."""
    return user_data("OVERTONE_MEASURES", "measures", environ)


def measures_python(environ: Mapping[str, str] = os.environ) -> Path:
    """The measuring environment's interpreter. MissingExtra, with the one line that makes it, where there is none."""
    path = measures_folder(environ) / "bin" / "python"
    if not os.access(path, os.X_OK):
        raise MissingExtra(f"the measuring environment is not installed (no {path}); run '{SETUP}'")
    return path


class Helper:
    """A running program. As a context manager it starts at once; otherwise at the first call, and it ends with `close`
    or with its last reference.

    `program` is the name of a file in `workers/`, which ends in `sys.exit(protocol.serve_calls(load))`, or a path;
    `hub` lets it see proxies and HF_TOKEN, for models that are fetched; `python` is the interpreter of another
    environment than the measuring one; `start_timeout` and `timeout` are seconds until
    it must be ready and for one call. `facts` is what it said of itself when it was ready.
    """

    def __init__(
        self,
        program: str,
        options: Mapping[str, Any],
        *,
        hub: bool = False,
        python: Path | None = None,
        start_timeout: float = 1800.0,
        timeout: float = 1800.0,
    ) -> None:
        self.program = Path(program) if program.endswith(".py") else host.WORKERS / f"{program}.py"
        self.options = dict(options)
        self.facts: dict[str, Any] = {}
        self._hub = hub
        self._python = python
        self._start_timeout = start_timeout
        self._timeout = timeout
        self._hosted: _Hosted | None = None
        self._finish: weakref.finalize[..., Helper] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start it and wait until it is ready. MissingExtra where its environment or a package of it is missing."""
        if self._hosted is not None:
            return
        python = self._python or measures_python(os.environ)
        if not os.access(python, os.X_OK):
            raise MissingExtra(f"{python} cannot be started; run '{SETUP}'")
        handle, name = tempfile.mkstemp(prefix=f"overtone-{self.program.stem}-", suffix=".log")
        os.close(handle)
        environment = host.worker_environment(os.environ, hub=self._hub, gpu=None)
        plan = host.Plan(self.program, python, self.options, environment, Path(name), patience=_PATIENCE)
        self._hosted = _Hosted(host.WorkerProcess(plan))
        self._finish = weakref.finalize(self, self._hosted.end)
        self._wait(self._hosted.process.start(self._start_timeout))
        self.facts = self._hosted.process.facts

    def call(self, header: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> dict[str, Any]:
        """Its answer to one call; bytes that came with it are under "blobs".

        HelperDied when the process is gone, OvertoneError with its own words when it cannot answer this call.
        """
        self.start()
        assert self._hosted is not None
        try:
            message, answer_blobs = self._wait(self._hosted.process.call(header, blobs, self._timeout))
        except protocol.TooLarge as error:
            raise OvertoneError(f"{self.program.stem}: {error}") from None
        if message.pop("type") == "error":
            raise OvertoneError(f"{self.program.stem}: {message['detail']}")
        return {**message, "blobs": answer_blobs} if answer_blobs else message

    def close(self) -> None:
        """End it. A later call starts it again."""
        if self._finish is not None:
            self._finish()
        self._hosted = None

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what the host's coroutine returns. The process is ended when that fails or is interrupted."""
        assert self._hosted is not None
        log = self._hosted.process.plan.log
        try:
            return self._hosted.wait(work)
        except protocol.TooLarge:
            raise  # nothing was sent
        except (host.StartFailed, ModelFailure) as error:
            text = error.detail if isinstance(error, ModelFailure) else str(error)
            detail = text.replace(f" ({log})", "")  # the log goes with the process
            missing = error.missing if isinstance(error, host.StartFailed) else host.missing_module(detail)
            self.close()
        except BaseException:  # interrupted between sending and receiving: what comes next would answer the wrong call
            self.close()
            raise
        if missing:
            raise MissingExtra(
                f"{self.program.stem}: the measuring environment ({measures_folder(os.environ)}) has no package "
                f"{missing!r}; run '{SETUP}'"
            )
        raise HelperDied(f"{self.program.stem}: {detail}")


class _Hosted:
    """A worker process on an event loop that runs in a thread of its own."""

    def __init__(self, process: host.WorkerProcess) -> None:
        self.process = process
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="overtone-helper", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def end(self) -> None:
        """End the process and the thread, and remove the log."""
        if threading.current_thread() is self._thread:  # the garbage collector may run here, where nothing may wait
            threading.Thread(target=self.end, daemon=True).start()
            return
        self.wait(self.process.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.process.plan.log.unlink(missing_ok=True)
