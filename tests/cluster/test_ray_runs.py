"""Runs on a real cluster behave as without Ray: limits, budgets, interrupts, dead endpoints. Ray gives out GPUs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.data import make
from overtone.errors import EXIT_BUDGET, EXIT_INTERRUPTED
from overtone.runs.store import Store
from tests.cluster.ray_cluster import Cluster, cluster, environment
from tests.peers import BIN
from tests.servers import OpenAIServer

pytestmark = [pytest.mark.peers, pytest.mark.full, pytest.mark.timeout(400)]
ECHO = Path(__file__).parents[1] / "models" / "echo_worker.py"
# A model that says which GPU it has, and notes when it is open.
HOLDING = """
import asyncio, os, time
from pathlib import Path
from overtone.schema import Reply
ROOM = "models"
class Holding:
    slots = 2
    def __init__(self, spec):
        self.spec = spec
    def note(self, word):
        with Path("notes.txt").open("a") as file:
            file.write(f"{time.time()} {word} {self.spec.name} {os.environ.get('CUDA_VISIBLE_DEVICES')}\\n")
    async def open(self):
        self.note("open")
    async def ask(self, request):
        await asyncio.sleep(0.15)
        return Reply(f"on GPU {os.environ.get('CUDA_VISIBLE_DEVICES')}")
    async def close(self):
        self.note("close")
    def describe(self):
        return {"name": self.spec.name}
load = Holding
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with cluster("4:1", "4:1") as nodes:
        yield nodes


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make(tmp_path / "data", scripts=20, questions=1, seconds=0.05)


def overtone(folder: Path, *words: object, code: int = 0) -> str:
    """Run a command in the peers' environment and a folder; return all that it prints."""
    command = [str(BIN / "python"), "-m", "overtone", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=folder, timeout=200)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def replies(out: Path) -> dict[str, str]:
    with Store.read(out) as store:
        return {str(reply.key): reply.text for reply in store.replies()}


def lab(folder: Path, data: Path, models: list[str], **ray: object) -> Path:
    """Write a run file with a table [ray]."""
    lines = ["[run]", "levels = [3]", 'out = "runs"', "[ray]", *(f"{key} = {value!r}" for key, value in ray.items())]
    lines += ["[[benchmark]]", 'name = "echomind"', f'data = "{data}"']
    for spec in models:
        lines += ["[[model]]", f'spec = "{spec}"']
    path = folder / "lab.toml"
    path.write_text("\n".join(lines).replace("'", '"'))
    return path


def test_three_models_share_two_gpus(nodes: Cluster, data: Path, tmp_path: Path) -> None:
    (tmp_path / "holding.py").write_text(HOLDING)
    file = lab(tmp_path, data, ["holding:a", "holding:b", "holding:c"], gpus=1, actors=1, address=nodes.address)
    overtone(tmp_path, "run", file, "--jobs", 3, "--trust", "--plugin", "holding.py")
    runs = sorted((tmp_path / "runs").iterdir())
    assert len(runs) == 3
    assert {text for out in runs for text in replies(out).values()} == {"on GPU 0"}, "each node has one"
    assert all(len(replies(out)) == 60 for out in runs)
    events = [line.split() for line in (tmp_path / "notes.txt").read_text().splitlines()]
    held = most = 0
    for _, word, *_ in sorted(events):
        held += 1 if word == "open" else -1
        most = max(most, held)
    assert len(events) == 6 and most == 2, "the third waited for a GPU"


def test_actors_of_several_runs_keep_to_one_limit_of_their_endpoint(nodes: Cluster, data: Path, tmp_path: Path) -> None:
    with OpenAIServer(latency=0.05, speech=False) as server:
        models = [f"openai:{name}?base_url={server.base_url}" for name in ("one", "two")]
        file = lab(tmp_path, data, models, actors=2, address=nodes.address)
        overtone(tmp_path, "run", file, "--jobs", 2, "--max-connections", 5, "--trust")
        assert server.count == 2 * 60
        assert server.most_at_once == 5


def test_a_worker_in_an_actor_answers_as_here_and_the_run_is_the_same(
    nodes: Cluster, data: Path, tmp_path: Path
) -> None:
    words = [
        "run",
        "echomind",
        "--data",
        data,
        "--levels",
        3,
        "--model",
        f"worker:{ECHO}?python={sys.executable}&batch=2",
    ]
    overtone(tmp_path, *words, "--out", "there", "--limit", 20, "--ray-address", nodes.address)
    said = overtone(tmp_path, *words, "--out", "there")
    assert "20 answered before" in said, "resumed without Ray"
    overtone(tmp_path, *words, "--out", "here")
    assert replies(tmp_path / "there") == replies(tmp_path / "here")


def test_a_budget_and_a_wrong_key_stop_a_run_at_once(
    nodes: Cluster, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "echomind", "--data", data, "--levels", 3, "--ray-address", nodes.address]
    with OpenAIServer(latency=0.02, speech=False) as server:
        model = f"openai:any?base_url={server.base_url}"
        overtone(tmp_path, *words, "--model", model, "--out", "a", "--budget-requests", 20, code=EXIT_BUDGET)
        assert server.count == len(replies(tmp_path / "a")) == 20
    monkeypatch.setenv("A_KEY", "some-other-key")
    with OpenAIServer(key="the-right-key") as server:
        model = f"openai:any?base_url={server.base_url}&api_key_env=A_KEY"
        said = overtone(tmp_path, *words, "--model", model, "--out", "b", code=2)
        assert server.count == 1 and "auth" in said
        monkeypatch.setenv("A_KEY", "the-right-key")
        overtone(tmp_path, *words, "--model", model, "--out", "b", "--limit", 5)
        assert len(replies(tmp_path / "b")) == 5


@pytest.mark.parametrize("own", [False, True], ids=["cluster", "ray of its own"])
def test_an_interrupt_waits_for_what_is_in_flight(nodes: Cluster, data: Path, tmp_path: Path, own: bool) -> None:
    with OpenAIServer(latency=0.3, speech=False) as server:
        words = [
            "run",
            "echomind",
            "--data",
            data,
            "--levels",
            "3",
            "--out",
            tmp_path / "run",
            "--max-connections",
            "4",
        ]
        words += ["--model", f"openai:any?base_url={server.base_url}"]
        words += ["--ray-address", "local" if own else nodes.address]
        command = [str(BIN / "python"), "-m", "overtone", *map(str, words)]
        driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True)
        end = time.monotonic() + 100
        while server.count < 6:
            assert driver.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: also to a Ray that the command has started
        _, err = driver.communicate(timeout=60)
        assert driver.returncode == EXIT_INTERRUPTED, err
        assert "Traceback" not in err and "raylet" not in err
        assert server.count < 40 and len(replies(tmp_path / "run")) == server.count


def test_a_run_without_any_node_left_waits_for_one(data: Path, tmp_path: Path) -> None:
    with cluster("2") as nodes, OpenAIServer(latency=0.3, light=True) as server:
        words = [
            "run",
            "echomind",
            "--data",
            data,
            "--levels",
            "3",
            "--out",
            tmp_path / "run",
            "--max-connections",
            "2",
        ]
        words += ["--model", f"openai:any?base_url={server.base_url}&speech=no", "--ray-address", nodes.address]
        command = [str(BIN / "python"), "-m", "overtone", *map(str, words)]
        driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment())
        end = time.monotonic() + 100
        while server.count < 6:
            assert driver.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        nodes.tell("kill 0")
        time.sleep(8)
        assert driver.poll() is None
        nodes.tell("add 2")
        _, err = driver.communicate(timeout=200)
        assert driver.returncode == 0, err
        assert "the run is paused" in err and "asking again after a pause" in err
        assert len(replies(tmp_path / "run")) == 60 and server.count <= 64


def test_resources_that_no_node_has_are_named(nodes: Cluster, data: Path, tmp_path: Path) -> None:
    file = lab(tmp_path, data, ["openai:any?base_url=http://127.0.0.1:9/v1"], gpus=2, address=nodes.address)
    said = overtone(tmp_path, "run", file, "--trust", code=2)
    assert "no node of the Ray cluster has 1 CPU, 2 GPU for an actor" in said and "4 CPU, 1 GPU" in said
