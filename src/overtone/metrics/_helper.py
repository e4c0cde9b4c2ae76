"""A helper of a metric: a program of `workers/` that runs in the measuring environment and answers calls.

Heavy predictors need torch, which is no part of Overtone. They live in a virtual environment of their own, made by
`overtone setup measures`, and are spoken to over the workers' wire: one call, one answer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from overtone.errors import MissingExtra, OvertoneError
from overtone.paths import user_data
from overtone.workers import host, protocol

SETUP = "overtone setup measures"
_HEARTBEAT = 2.0
_PATIENCE = 120.0  # seconds without a heartbeat after which it counts as hung
_GRACE = 5.0  # seconds it gets to end by itself


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
        self._process: subprocess.Popen[bytes] | None = None
        self._finish: weakref.finalize[..., Helper] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start it and wait until it is ready. MissingExtra where its environment or a package of it is missing."""
        if self._process is not None:
            return
        python = self._python or measures_python(os.environ)
        ours, theirs = socket.socketpair()
        environment = host.worker_environment(os.environ, hub=self._hub, gpu=None)
        environment[protocol.FD_VARIABLE] = str(theirs.fileno())
        handle, name = tempfile.mkstemp(prefix=f"overtone-{self.program.stem}-", suffix=".log")
        self._log = Path(name)
        try:
            process = subprocess.Popen(
                [str(python), str(self.program)],
                stdin=subprocess.DEVNULL,
                stdout=handle,
                stderr=handle,
                pass_fds=(theirs.fileno(),),
                env=environment,
                start_new_session=True,  # so that all it starts can be killed with it, and Ctrl-C stays ours
            )
        except OSError as error:
            ours.close()
            self._log.unlink()
            raise MissingExtra(f"{python} cannot be started: {error.strerror}; run '{SETUP}'") from None
        finally:
            os.close(handle)
            theirs.close()
        self._process = process
        self._channel = protocol.Channel(ours)
        self._finish = weakref.finalize(self, _end, process, ours, self._log)
        hello = {"type": "hello", "protocol": protocol.VERSION, "options": self.options}
        message, _ = self._exchange(
            {**hello, "heartbeat": _HEARTBEAT, "limit": protocol.MAX_MESSAGE}, (), self._start_timeout
        )
        if message["type"] != "ready":
            self.close()
            self._refuse(str(message.get("detail", "")), str(message.get("missing", "")))
        self.facts = dict(message["facts"])

    def call(self, header: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> dict[str, Any]:
        """Its answer to one call; bytes that came with it are under "blobs".

        HelperDied when the process is gone, OvertoneError with its own words when it cannot answer this call.
        """
        self.start()
        try:
            message, found = self._exchange({**header, "type": "call"}, blobs, self._timeout)
        except protocol.TooLarge as error:
            raise OvertoneError(f"{self.program.stem}: {error}") from None
        kind = message.pop("type")
        if kind == "error":
            raise OvertoneError(f"{self.program.stem}: {message['detail']}")
        return {**message, "blobs": found} if found else message

    def close(self) -> None:
        """End it. A later call starts it again."""
        if self._finish is not None:
            self._finish()
        self._process = None

    def _exchange(
        self, header: dict[str, Any], blobs: Sequence[bytes], timeout: float
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Send, and wait for the next message that is no heartbeat."""
        until = time.monotonic() + timeout
        self._channel.end.settimeout(_PATIENCE if header["type"] == "call" else timeout)
        try:
            self._channel.send(header, blobs)
            while time.monotonic() < until:
                frame = self._channel.receive()
                if frame is None:
                    return self._died("")
                if frame[0]["type"] != "heartbeat":
                    return frame
            return self._died(f"no answer within {timeout:g} s")
        except TimeoutError:
            return self._died("no sign of life")
        except ConnectionError:
            return self._died("")
        except protocol.TooLarge:
            raise  # nothing was sent
        except protocol.ProtocolError as error:
            return self._died(f"it broke the protocol: {error}")
        except BaseException:  # interrupted between sending and receiving: what comes next would answer the wrong call
            self.close()
            raise

    def _died(self, why: str) -> tuple[dict[str, Any], list[bytes]]:
        assert self._process is not None
        if not why:
            with contextlib.suppress(subprocess.TimeoutExpired):  # the socket closed: let it finish its last words
                why = f"it ended with {host.ended_with(self._process.wait(_GRACE))}"
        tail = host.tail(self._log).replace(f" ({self._log})", "")  # the log goes with the process
        self.close()
        if missing := host.missing_module(tail):
            self._refuse(tail, missing)
        raise HelperDied(f"{self.program.stem}: {why or 'it closed its socket'}{tail}")

    def _refuse(self, detail: str, missing: str) -> None:
        if missing:
            raise MissingExtra(
                f"{self.program.stem}: the measuring environment ({measures_folder(os.environ)}) has no package "
                f"{missing!r}; run '{SETUP}'"
            )
        raise OvertoneError(f"{self.program.stem}: {detail}")


def _end(process: subprocess.Popen[bytes], end: socket.socket, log: Path) -> None:
    """Close the socket, which ends the program; then make sure, of all that it started too."""
    end.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # the group outlives its leader when a grandchild does
    process.wait()
    log.unlink(missing_ok=True)
