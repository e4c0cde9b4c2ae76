"""Run a coroutine to its end for a synchronous caller, in a script or inside a running event loop.

In a notebook, the cell's loop cannot be used, so the coroutine gets a loop in a separate thread. An interrupt reaches
only the cell. It is passed to that thread, so that the work stops before the cell does.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any


def wait(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end and return its result.

    An interrupt cancels the coroutine, waits until it has cleaned up, and is then raised as KeyboardInterrupt.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    ended: Future[Any] = Future()

    async def inside() -> Any:
        task = asyncio.create_task(work)
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    def run() -> None:
        try:
            ended.set_result(asyncio.run(inside()))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            ended.set_exception(error)

    with _interruptible():
        threading.Thread(target=run, name="overtone-run", daemon=True).start()
        try:
            return ended.result()
        except KeyboardInterrupt:
            if not ended.done():
                loop, task = started.result()
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(task.cancel)
                ended.exception()  # until it has cleaned up; a second interrupt does not wait
            raise


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt inside this block.

    Under `asyncio.run`, Ctrl-C takes effect only when the main task awaits something. Here the main task blocks in
    `wait`, so Ctrl-C would have no effect.
    """
    handler = signal.getsignal(signal.SIGINT)
    owner = getattr(handler.func, "__self__", None) if isinstance(handler, functools.partial) else None
    if not isinstance(owner, asyncio.Runner) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
