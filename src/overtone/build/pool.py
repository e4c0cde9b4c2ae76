"""Run the work of a build in processes. Each uses one thread for arithmetic and ends with its parent."""

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

Progress = Callable[[str, int, int], None]  # called with the kind of work, how much is done, and the total

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


def spread(work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """Run `work` on every task, in this process or in several. Yield results in the order of completion."""
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        yield from map(work, tasks)
        return
    with workers(jobs) as pool:
        for future in as_completed([pool.submit(work, task) for task in tasks]):
            yield future.result()


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Open a pool of processes that each use one thread for arithmetic, so one process per core is enough. If the body
    raises or is interrupted, tasks that have not started are cancelled."""
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # read when a process first loads NumPy
    try:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=start_worker) as pool:
            try:
                yield pool
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    finally:
        for name in _THREADS:
            os.environ.pop(name, None)
        os.environ.update(before)


def start_worker() -> None:
    """Ignore interrupts, which the parent handles, and exit when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
