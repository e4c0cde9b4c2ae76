"""A metric's helper: a program in `workers/` that runs in the measuring environment and answers calls.

Heavy predictors need torch, which Overtone does not install. They run in a separate virtual environment, made by
`overtone setup measures`, and talk over the workers' protocol: one call, one answer. Metrics are not asynchronous, so
the workers' host runs on an event loop in a separate thread.
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
from overtone.workers import host, protocol
from overtone.workers.measuring_environment import measures_folder

SETUP = "overtone setup measures"
_PATIENCE = 120.0  # seconds without a heartbeat after which the process counts as hung


class HelperDied(OvertoneError):
    """The helper ended or does not answer; the message has the last lines of its log. The next call restarts it."""


def measures_python(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the measuring environment's interpreter. Raises MissingExtra with the command that installs it."""
    path = measures_folder(environ) / "bin" / "python"
    if not os.access(path, os.X_OK):
        raise MissingExtra(f"the measuring environment is not installed (no {path}); run '{SETUP}'")
    return path


class Helper:
    """A helper process. It starts at the first call, or on entering the context manager. It ends with `close`, or when
    this object is no longer referenced.

    `program` is a path, or the name of a file in `workers/` that ends in `sys.exit(protocol.serve_calls(load))`. `hub`
    passes proxies and HF_TOKEN on, for models that are downloaded. `python` is an interpreter other than the measuring
    environment's. `start_timeout` and `timeout` limit the start and one call, in seconds. `facts` is the program's
    description of itself once it is ready.
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
        self._start_error: OvertoneError | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process and wait until ready. Raises MissingExtra if the environment or a package is missing."""
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

    def start_once(self) -> Helper:
        """Start this helper if it is not running, and return it. If an earlier start failed, raise the same error
        again."""
        if self._start_error is not None:
            raise self._start_error
        try:
            self.start()
        except OvertoneError as error:
            self._start_error = error
            raise
        return self

    def call(self, header: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> dict[str, Any]:
        """Return the answer to one call, with its bytes as "blobs" if it has any.

        Raises HelperDied if the process ended, and OvertoneError with the helper's message if it cannot answer.
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
        """End the process. A later call starts it again."""
        if self._finish is not None:
            self._finish()
        self._hosted = None

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for a coroutine of the host and return its result. A failure or interruption ends the process."""
        assert self._hosted is not None
        log = self._hosted.process.plan.log
        try:
            return self._hosted.wait(work)
        except protocol.TooLarge:
            raise  # nothing was sent
        except (host.StartFailed, ModelFailure) as error:
            text = error.detail if isinstance(error, ModelFailure) else str(error)
            detail = text.replace(f" ({log})", "")  # the log is deleted with the process
            missing = error.missing if isinstance(error, host.StartFailed) else host.missing_module(detail)
            self.close()
        except BaseException:  # interrupted before the answer: it would be taken for the next call's
            self.close()
            raise
        if missing:
            raise MissingExtra(
                f"{self.program.stem}: the measuring environment ({measures_folder(os.environ)}) has no package "
                f"{missing!r}; run '{SETUP}'"
            )
        raise HelperDied(f"{self.program.stem}: {detail}")


class _Hosted:
    """A worker process on an event loop in a separate thread."""

    def __init__(self, process: host.WorkerProcess) -> None:
        self.process = process
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="overtone-helper", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def end(self) -> None:
        """End the process and the thread, and remove the log."""
        if (
            threading.current_thread() is self._thread
        ):  # called by the garbage collector on the loop's own thread, which cannot wait
            threading.Thread(target=self.end, daemon=True).start()
            return
        self.wait(self.process.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.process.plan.log.unlink(missing_ok=True)
