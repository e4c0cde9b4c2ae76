"""Nodes, actors and the driver are killed during a run of 5,000 items on a real cluster: nothing is lost or doubled.

Requests are counted at the HTTP server that the actors ask. A request that was in flight when its actor, node or driver
was killed may be sent twice, as without Ray; no other may.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.data import make
from overtone.runs.store import Store
from tests.cluster.ray_cluster import cluster, environment
from tests.peers import BIN
from tests.servers import OpenAIServer

pytestmark = [pytest.mark.peers, pytest.mark.full, pytest.mark.timeout(600)]
ITEMS, CONNECTIONS = 5_000, 16


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("data"), scripts=ITEMS // 3 + 1, questions=1, seconds=0.05)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(latency=0.05, light=True) as server:
        yield server


def command(data: Path, out: Path, server: OpenAIServer, address: str, *more: str) -> list[str]:
    model = f"openai:any?base_url={server.base_url}&speech=no"
    words = ["run", "echomind", "--data", data, "--levels", "3", "--limit", ITEMS, "--out", out, "--model", model]
    words += ["--max-connections", CONNECTIONS, "--ray-address", address, "-v", *more]
    return [str(BIN / "python"), "-m", "overtone", *map(str, words)]


def started(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def until(reached: Callable[[], bool], driver: subprocess.Popen[str] | None = None, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert driver is None or driver.poll() is None, driver.communicate()[1][-3000:]
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def finished(driver: subprocess.Popen[str]) -> str:
    """Return what a driver wrote to stderr; it must have succeeded, without a word from Ray itself."""
    _, err = driver.communicate(timeout=400)
    assert driver.returncode == 0, err[-3000:]
    assert not re.search(r"(?i)\(raylet|\(pid=|traceback|futurewarning|core_worker|gcs_", err), err[-3000:]
    return err


def pids(out: Path) -> list[int]:
    """Return the processes of the actors, in the order of their start."""
    return [int(pid) for pid in re.findall(r"actor \d+ of \d+: node \S+, pid (\d+)", (out / "run.log").read_text())]


def check_whole(out: Path, server: OpenAIServer, most_in_flight: int) -> None:
    """Every item has one reply, and no more requests were paid than items and what was in flight at the kills."""
    with Store.read(out) as store:
        assert store.counts() == {"pending": 0, "answered": ITEMS, "failed": 0}
        replies = list(store.replies())
    assert len({str(reply.key) for reply in replies}) == len(replies) == ITEMS
    assert ITEMS <= server.count <= ITEMS + most_in_flight


def test_actors_and_a_node_are_killed_and_every_item_is_answered_once(
    data: Path, tmp_path: Path, server: OpenAIServer
) -> None:
    out = tmp_path / "run"
    with cluster("2", "2", "2") as nodes:
        driver = started(command(data, out, server, nodes.address))
        until(lambda: server.count > 500, driver)
        os.kill(pids(out)[0], signal.SIGKILL)
        until(lambda: server.count > 1500, driver)
        assert nodes.tell("kill 1").startswith("done")
        until(lambda: server.count > 2500, driver)
        assert nodes.tell("remove 2").startswith("done")
        until(lambda: server.count > 3500, driver)
        os.kill(pids(out)[-1], signal.SIGKILL)
        err = finished(driver)
    assert err.count("ended while it had this request") >= 3
    check_whole(out, server, 4 * CONNECTIONS)


def test_the_driver_is_killed_and_its_run_resumed_on_the_cluster(
    data: Path, tmp_path: Path, server: OpenAIServer
) -> None:
    out = tmp_path / "run"
    with cluster("2", "2") as nodes:
        for at in (1000, 2500):
            driver = started(command(data, out, server, nodes.address))
            until(lambda at=at: server.count > at, driver)  # type: ignore[misc]
            driver.kill()
            driver.wait()
            gone = server.count
            until(lambda: server.running == 0)
            assert server.count - gone <= CONNECTIONS, "the actors went on without their driver"
        finished(started(command(data, out, server, nodes.address)))
    check_whole(out, server, 2 * CONNECTIONS)
