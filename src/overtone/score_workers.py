"""Processes that compute slow metrics, so that scoring uses every core, or every core of a cluster. Each process scores
one page of replies at a time.

The caller divides the replies into pages, which do not depend on the number of processes, and stores the scores itself,
in order. If a process cannot score a page (the metric raises, the process dies), the result is None, and the caller
scores the page itself. `multiprocessing` would start the caller's own script again in each process; these processes
import only Overtone. `workers/host.py` does not fit either: it runs programs of other environments, which get JSON and
a few variables that are not secret, but a scoring process needs Python objects and the caller's whole environment
(plug-ins, WordNet).
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import IO

from overtone.embedded.embedder import share_vectors
from overtone.errors import raised
from overtone.metrics import Answered, Metric
from overtone.pool import cluster_in_use
from overtone.processes import usable_cores
from overtone.schema import Score

Rows = list[list[Score]]
Part = tuple[Metric, Sequence[Answered]]  # a metric and the replies of a page that it scores
MOST = 8  # processes; each may hold the embedder
LEAST = 64  # replies, below which starting processes takes longer than it saves
_COMMAND = [sys.executable, "-P", "-m", "overtone.score_workers"]
log = logging.getLogger("overtone")
_kept: list[ScoreWorkers] = []  # the processes that `keep_workers` holds between calls


def default_processes() -> int:
    """Return the number of scoring processes: one per core that this process may use, at most MOST."""
    return min(MOST, usable_cores())


class ScoreWorkers:
    """A pool of up to `processes` processes, started with the first page. With a `cluster`, its processes score."""

    def __init__(self, processes: int, cluster: Executor | None = None) -> None:
        self.processes = processes
        self._cluster = cluster
        self._jobs: queue.SimpleQueue[tuple[bytes, Future[list[Rows] | None]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def submit(self, parts: Sequence[Part]) -> Future[list[Rows] | None] | None:
        """Score a page in a process, with one metric or several. The result has one list of rows per part.

        Return None if a metric does not ask for a process or cannot be sent to one.
        """
        if not all(getattr(metric, "slow", False) for metric, _ in parts):
            return None
        try:
            job = pickle.dumps([(pickle.dumps(metric), list(answered)) for metric, answered in parts])
        except Exception:  # noqa: BLE001 - a plug-in's object may refuse in any way; it is scored in this process
            return None
        if self._cluster is not None:
            return _or_none(self._cluster.submit(score_page, job))
        while len(self._threads) < self.processes:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()
        future: Future[list[Rows] | None] = Future()
        self._jobs.put((job, future))
        return future

    def close(self) -> None:
        """End the processes. The result of an unfinished page becomes None."""
        self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for child in self._children:
            child.kill()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        child: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # without a process, every page comes back as None
            child = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())
            self._children.append(child)
        while (work := self._jobs.get()) is not None:
            job, future = work
            future.set_result(None if self._closed else _ask(child, job))
        if child is not None:
            child.kill()
            child.communicate()


@contextlib.contextmanager
def workers(processes: int, replies: int) -> Iterator[ScoreWorkers | None]:
    """Yield a pool of processes for a run with this many replies, or None if a single process is as fast."""
    if (cluster := cluster_in_use()) is not None:
        yield ScoreWorkers(0, cluster)
    elif processes < 2 or replies < LEAST:
        yield None
    elif _kept:
        yield _kept[-1]
    else:
        mine = ScoreWorkers(processes)
        try:
            yield mine
        finally:
            mine.close()


@contextlib.contextmanager
def keep_workers() -> Iterator[None]:
    """Use the same processes for all runs that are scored inside this block."""
    _kept.append(ScoreWorkers(default_processes()))
    atexit.register(_kept[-1].close)
    try:
        yield
    finally:
        atexit.unregister(_kept[-1].close)
        _kept.pop().close()


def _environment() -> dict[str, str]:
    """Return the environment of a scoring process: NumPy may use only one thread, because there is one process per
    core."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _ask(child: subprocess.Popen[bytes] | None, job: bytes) -> list[Rows] | None:
    if child is None or child.stdin is None or child.stdout is None:
        return None
    try:
        child.stdin.write(len(job).to_bytes(8, "little") + job)
        child.stdin.flush()
        rows: list[Rows] | None = pickle.load(child.stdout)
    except (OSError, EOFError, ValueError, pickle.UnpicklingError):  # the process has died
        return None
    return rows


def _or_none(job: Future[list[Rows]]) -> Future[list[Rows] | None]:
    """Return a future whose result is None if a job of a cluster raised or was lost."""
    page: Future[list[Rows] | None] = Future()

    def settle(done: Future[list[Rows]]) -> None:
        if error := done.exception():
            log.warning("a page is scored on this machine, because the cluster could not: %s", raised(error))
        page.set_result(None if error else done.result())

    job.add_done_callback(settle)
    return page


_metrics: dict[bytes, Metric] = {}  # that this process has unpacked


def score_page(job: bytes) -> list[Rows]:
    """Score a packed page, in a process that keeps its metrics for the next one."""
    rows: list[Rows] = []
    with share_vectors():
        for packed, answered in pickle.loads(job):
            if packed not in _metrics:
                _metrics[packed] = pickle.loads(packed)
            rows.append(_metrics[packed].score(answered))
    return rows


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Score pages until the requests end."""
    while len(size := requests.read(8)) == 8:
        try:
            data = pickle.dumps(score_page(requests.read(int.from_bytes(size, "little"))))
        except Exception:  # noqa: BLE001 - the caller scores this page itself and reports the error
            data = pickle.dumps(None)
        answers.write(data)
        answers.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the caller, which ends this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
