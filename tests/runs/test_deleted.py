"""A run folder that disappears while it is written ends the run within seconds: what is asked would be lost."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.data import make
from overtone.cli import main
from overtone.errors import StoreError
from overtone.judges.judge_run import judge_run
from overtone.judges.policy import parse_judge
from overtone.runs.session import Hooks, execute
from overtone.runs.store import Store
from tests.judges.helpers import QUICK as JUDGE_QUICK
from tests.judges.server import JudgeServer
from tests.runs.helpers import QUICK, settings
from tests.servers import OpenAIServer


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def move(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replace(folder: Path) -> None:
    move(folder)
    Store.create(folder).close()


@pytest.mark.parametrize("how", [remove, move, replace])
@pytest.mark.parametrize("latency", [0.02, 30.0])
def test_a_run_whose_folder_disappears_stops_within_seconds(
    tmp_path: Path, how: Callable[[Path], None], latency: float
) -> None:
    data, out = make(tmp_path / "data", scripts=300, questions=6, seconds=0.1), tmp_path / "run"

    async def go(server: OpenAIServer) -> tuple[float, int]:
        told = settings(data, server.base_url, out, max_connections=4)
        working = asyncio.create_task(execute(told, Hooks(policy=QUICK)))
        while server.count < 5:
            await asyncio.sleep(0.01)
        server.latency = latency
        while server.running < 4:
            await asyncio.sleep(0.01)
        began, before = time.monotonic(), server.count
        how(out)
        with pytest.raises(StoreError, match=r"run.db was (deleted or moved|replaced by another file)"):
            await working
        return time.monotonic() - began, server.count - before

    with OpenAIServer(latency=0.02) as server:
        seconds, requests = asyncio.run(go(server))
    assert seconds < 5
    assert requests <= 4 * (5 / 0.02), "bounded by the time it took, not by the 1,000 items"
    assert requests < 800


def test_judges_stop_too(tmp_path: Path) -> None:
    data, out = make(tmp_path / "data", scripts=60, questions=6, seconds=0.1), tmp_path / "run"
    with OpenAIServer() as server:
        words = ["run", "echomind", "--levels", "3", "-q", "--data", str(data), "--out", str(out)]
        assert main([*words, "--model", f"openai:any?base_url={server.base_url}&speech=no"]) == 0

    async def go(server: JudgeServer) -> int:
        with Store.create(out) as store:
            judges = [parse_judge(server.spec("connections=2"))]
            working = asyncio.create_task(judge_run(store, judges, retries=JUDGE_QUICK))
            while server.count < 3:
                await asyncio.sleep(0.01)
            shutil.rmtree(out)
            await working
        return server.count

    with JudgeServer(latency=0.05) as server:
        with pytest.raises(StoreError, match="was deleted or moved"):
            asyncio.run(go(server))
        assert server.count < 120, "of 180 verdicts"


def test_a_folder_that_is_only_read_may_go(tmp_path: Path) -> None:
    Store.create(tmp_path / "run").close()
    with Store.read(tmp_path / "run") as store:
        shutil.rmtree(tmp_path / "run")
        store.commit()
