"""Start programs in new sessions, end them together with their children, and describe how they ended.

Used for workers (`workers/host.py`), `command:` models and the programs of voices.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from overtone.paths import shown_lines
from overtone.safety import without_secrets

TERMINATE = signal.SIGTERM
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows, SIGTERM ends a process at once
_SHOWN_CHARS = 2000


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def signal_group(pid: int, number: signal.Signals = KILL) -> None:
    """Send a signal to a process started with `start_new_session=True` and to its children; do nothing if all ended.

    Windows has no process groups: only the process itself gets the signal.
    """
    send = getattr(os, "killpg", os.kill)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(pid, number)


async def start(command: Sequence[str], **options: Any) -> asyncio.subprocess.Process:
    """Start a program in a new session, so that a kill also ends its children, and Ctrl-C does not reach it."""
    return await asyncio.create_subprocess_exec(*command, start_new_session=True, **options)


async def end(process: asyncio.subprocess.Process, grace: float, signals: Sequence[signal.Signals] = (KILL,)) -> int:
    """Wait for a program to end, and return its exit status. Send it `signals`, one after the other, if it does not
    end.

    The wait is `grace` seconds before the first signal and after each signal. Finally all its children are killed,
    because a process group outlives its leader.
    """
    for number in (None, *signals):
        if number is not None:
            signal_group(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), grace)
            break
    signal_group(process.pid)
    return await process.wait()


def run(command: Sequence[str], feed: bytes | None, timeout: float) -> tuple[int, bytes, bytes]:
    """Run a program to its end; return its exit status, stdout and stderr.

    Raises OSError when it cannot be started and TimeoutError when it takes longer; its children end with it.
    """
    pipe = subprocess.PIPE
    stdin = subprocess.DEVNULL if feed is None else pipe
    with subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        try:
            out, err = process.communicate(feed, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            signal_group(process.pid)
    return process.returncode, out, err


def ended_with(status: int) -> str:
    """Return the exit status of a process in words."""
    if status >= 0:
        return f"exit status {status}"
    name = signal.Signals(-status).name
    return f"{name} (out of memory?)" if name == "SIGKILL" else name


def last_lines(stderr: str, stdout: str = "") -> str:
    """Return the end of a program's output as a clause that begins with ";", without secrets from the environment."""
    text = without_secrets(stderr.strip() or stdout.strip())
    return f"; its output ends:\n{shown_lines(text[-_SHOWN_CHARS:])}" if text else "; it wrote no error message"
