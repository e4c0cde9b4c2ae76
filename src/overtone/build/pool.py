"""How this room's worker processes begin and end: one thread of arithmetic each, gone when their parent is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, how much there is

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def spread(work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """`work` on every task, in this process or in several; results as they come."""
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        yield from map(work, tasks)
        return
    with workers(jobs) as pool:
        for future in as_completed([pool.submit(work, task) for task in tasks]):
            yield future.result()


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes. Each uses one thread for arithmetic: with one process a core, more would only wait. When the
    body is left by an error or an interrupt, what has not begun is not done."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # read when a process first loads NumPy
    try:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=start_worker) as pool:
            try:
                yield pool
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def start_worker() -> None:
    """Leave interrupts to the parent, and end with it: a killed build must not leave processes behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
