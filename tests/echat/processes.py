"""Several processes of one training, as torchrun starts them."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable
from typing import Any


def run_together(process: Callable[..., None], size: int, *given: Any, seconds: float) -> list[int | None]:
    """Run `process(rank, size, port, *given)` in `size` forks. Return their exit codes.

    A process that takes longer is killed.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=process, args=(rank, size, port, *given)) for rank in range(size)]
    for one in started:
        one.start()
    for one in started:
        one.join(seconds)
        if one.is_alive():
            one.kill()
    return [one.exitcode for one in started]
