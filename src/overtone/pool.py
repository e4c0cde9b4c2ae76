"""Spread jobs over processes, of this machine or of a cluster.

A local process uses one thread for arithmetic and ends with its parent. A cluster is an executor, see the folder
`cluster`.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, as_completed, wait
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

from overtone.processes import usable_cores

Task = TypeVar("Task")
Result = TypeVar("Result")

Progress = Callable[[str, int, int], None]  # called with the kind of work, how much is done, and the total

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


class Cluster(Executor):
    """An executor whose processes run on other machines. `use` gives it to everything that spreads jobs."""

    cores: int  # that it may use at once


_clusters: list[Cluster] = []  # in use, the last one first


@contextmanager
def use(cluster: Cluster) -> Iterator[None]:
    """Spread the jobs of this block over a cluster instead of this machine's processes."""
    _clusters.append(cluster)
    try:
        yield
    finally:
        _clusters.pop()


def cluster_in_use() -> Cluster | None:
    """Return the cluster that jobs are spread over, or None for this machine's processes."""
    return _clusters[-1] if _clusters else None


def default_jobs() -> int:
    """Return the default number of jobs at once: one per core that may be used."""
    cluster = cluster_in_use()
    return cluster.cores if cluster else usable_cores()


def spread(work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    """Run `work` on every task: in this process, in several, or on the cluster in use, at most `jobs` at once. Yield
    results in the order of completion. `work` and its tasks must be importable in another process."""
    cluster = cluster_in_use()
    jobs = min(jobs, len(tasks))
    if jobs <= 1 and cluster is None:
        yield from map(work, tasks)
    elif cluster is None:
        with workers(jobs) as pool:
            for future in as_completed([pool.submit(work, task) for task in tasks]):
                yield future.result()
    else:
        yield from _on_cluster(cluster, work, tasks, jobs)


def _on_cluster(cluster: Cluster, work: Callable[[Task], Result], tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
    left = iter(tasks)
    running = {cluster.submit(work, task) for task in itertools.islice(left, jobs)}
    try:
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {cluster.submit(work, task) for task in itertools.islice(left, len(done))}
            for future in done:
                yield future.result()
    finally:
        for future in running:
            future.cancel()


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
