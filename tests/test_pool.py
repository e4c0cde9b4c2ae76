"""Jobs are spread over processes here or over a cluster, with the same results."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from overtone import pool


class Threads(pool.Cluster):
    """A cluster of four threads that counts the jobs at once."""

    cores = 4

    def __init__(self) -> None:
        self.running = self.most = self.given = 0
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(self.cores)

    def submit(self, work: Any, /, *given: Any, **named: Any) -> Future[Any]:
        self.given += 1
        return self._threads.submit(self._counted, work, *given)

    def _counted(self, work: Any, *given: Any) -> Any:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(0.002)
            return work(*given)
        finally:
            with self._lock:
                self.running -= 1


def half(number: int) -> float:
    if number == 13:
        raise ValueError("thirteen")
    return number / 2


def test_jobs_go_to_the_cluster_in_use_at_most_as_many_as_asked() -> None:
    tasks = [2 * n for n in range(50)]
    here = sorted(pool.spread(half, tasks, 2))
    cluster = Threads()
    with pool.use(cluster):
        assert pool.default_jobs() == 4
        assert sorted(pool.spread(half, tasks, 3)) == here
    assert cluster.given == 50 and 1 < cluster.most <= 3
    assert pool.cluster_in_use() is None


def test_an_error_of_a_job_is_raised_and_no_further_job_begins() -> None:
    cluster = Threads()
    with pool.use(cluster), pytest.raises(ValueError, match="thirteen"):
        list(pool.spread(half, list(range(1000)), 2))
    assert cluster.given < 30
