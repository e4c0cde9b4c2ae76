"""Several runs of a run file at the same time: one limit per endpoint, a log each, and one Ctrl-C for all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.data import make
from overtone.cli import main
from overtone.errors import EXIT_INTERRUPTED
from overtone.runs.store import Store
from tests.cli.test_run_file import NOBODY, run_file
from tests.servers import OpenAIServer

MODELS = ("first", "second", "third")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make(tmp_path / "data", scripts=8, questions=6, seconds=0.1)


def answered(folder: Path) -> int:
    with Store.read(folder) as store:
        return store.counts()["answered"]


def test_runs_at_the_same_time_share_the_limit_of_their_endpoint(data: Path, tmp_path: Path) -> None:
    with OpenAIServer(latency=0.05, speech=False) as server:
        urls = dict.fromkeys(MODELS, server.base_url)
        file = run_file(tmp_path, {"echomind": data}, urls, out=str(tmp_path / "runs"))
        assert main(["run", str(file), "--jobs", "3", "--max-connections", "4", "--levels", "3", "-q"]) == 0
        assert server.count == 3 * 24
        assert server.most_at_once == 4, "as many as one run alone"
        order = [asked.body["model"] for asked in server.asked]
    assert len(set(order[:12])) > 1, "they were asked at the same time"
    for model in MODELS:
        folder = next((tmp_path / "runs").glob(f"echomind-openai-{model}*"))
        assert answered(folder) == 24
        log = (folder / "run.log").read_text()
        assert f"openai:{model}" in log and not [other for other in MODELS if other != model and other in log]
        with Store.read(folder) as store:
            assert next(store.scores(), None) is not None


def test_a_run_that_fails_does_not_stop_the_others(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(speech=False) as server:
        urls = {"first": server.base_url, "gone": NOBODY, "third": server.base_url}
        file = run_file(tmp_path, {"echomind": data}, urls, out=str(tmp_path / "runs"))
        assert main(["run", str(file), "--jobs", "2", "--levels", "3"]) == 2
    captured = capsys.readouterr()
    assert "3 of 3 runs asked" in captured.err and "gone" in captured.err and "the first request failed" in captured.err
    assert captured.out.count("24 answered, 0 failed") == 2


def test_one_interrupt_stops_all_runs_and_the_same_command_resumes_them(data: Path, tmp_path: Path) -> None:
    with OpenAIServer(latency=0.2, speech=False) as server:
        urls = dict.fromkeys(MODELS, server.base_url)
        file = run_file(tmp_path, {"echomind": data}, urls, out=str(tmp_path / "runs"))
        words = ["run", str(file), "--jobs", "2", "--max-connections", "2", "--levels", "3", "-q"]
        with subprocess.Popen([sys.executable, "-m", "overtone", *words], cwd=tmp_path) as process:
            deadline = time.monotonic() + 60
            while server.count < 6 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == EXIT_INTERRUPTED
        sent = server.count
        kept = sum(answered(folder) for folder in (tmp_path / "runs").iterdir())
        assert sent < 20 and sent == kept, "requests in flight were waited for"
        server.latency = 0.0
        assert main(words) == 0
        assert server.count == 3 * 24
