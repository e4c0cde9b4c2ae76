"""The offline language model behind a real server, for tests of its clients."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from overtone.embedded.llm_server import serve
from overtone.errors import OvertoneError


@contextlib.contextmanager
def serving(port: int = 0, token: str = "") -> Iterator[str]:
    """Serve in a thread inside a `with` block, which gets the base URL. Port 0 picks a free port."""
    loop = asyncio.new_event_loop()
    up = threading.Event()
    urls: list[str] = []
    failures: list[OvertoneError] = []

    def ready(url: str) -> None:
        urls.append(url)
        up.set()

    task = loop.create_task(serve(port, token, ready))

    def run() -> None:
        try:
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        except OvertoneError as error:
            failures.append(error)
        finally:
            loop.close()
            up.set()

    thread = threading.Thread(target=run, daemon=True, name="smollm2")
    thread.start()
    up.wait()
    if failures:
        raise failures[0]
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
