"""An interrupt stops a run and its spending wherever the run was started, and the same call resumes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.data import make
from overtone.errors import EXIT_INTERRUPTED
from overtone.runs.store import Store
from tests.servers import OpenAIServer

# Each program runs the cell twice. A kernel executes cells inside its running loop with Python's own SIGINT handler;
# asyncio.run has a handler of its own, which only cancels the task; a script has no loop at all.
CELL = """
import sys, threading, time
import overtone

def cell():
    data, url, out = sys.argv[1:]
    model = f"openai:any?base_url={url}&speech=no"
    with overtone.run("echomind", data=data, model=model, out=out, max_connections=2) as run:
        return sum(1 for _ in run.replies())

def interrupted():
    print("began", flush=True)
    try:
        cell()
    except KeyboardInterrupt:
        alive = [thread.name for thread in threading.enumerate() if thread.name == "overtone-run"]
        print("interrupted", *alive, flush=True)
        sys.stdin.readline()
    else:
        print("not interrupted", flush=True)
"""
KERNEL = """
import asyncio
async def kernel():
    interrupted()
    print("replies", cell(), flush=True)
loop = asyncio.new_event_loop()
loop.run_until_complete(kernel())
"""
ASYNCIO_RUN = """
import asyncio
async def main():
    interrupted()
    print("replies", cell(), flush=True)
asyncio.run(main())
"""
SCRIPT = """
interrupted()
print("replies", cell(), flush=True)
"""


@pytest.mark.parametrize("around", [KERNEL, ASYNCIO_RUN, SCRIPT], ids=["kernel", "asyncio.run", "script"])
def test_an_interrupt_stops_the_run_and_the_cell_can_be_run_again(tmp_path: Path, around: str) -> None:
    data, out = make(tmp_path / "data", scripts=30, questions=6, seconds=0.1), tmp_path / "run"
    program = tmp_path / "cell.py"
    program.write_text(CELL + around)
    with OpenAIServer(latency=0.1) as server:
        command = [sys.executable, str(program), str(data), server.base_url, str(out)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes) as process:  # type: ignore[call-overload]
            try:
                assert process.stdout.readline().strip() == "began"
                deadline = time.monotonic() + 60
                while server.count < 6 and time.monotonic() < deadline:
                    time.sleep(0.02)
                began = time.monotonic()
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline().strip() == "interrupted", "and no thread of the run is left"
                assert time.monotonic() - began < 10
                time.sleep(0.3)  # what was on its way
                spent = server.count
                time.sleep(1.0)
                assert server.count == spent, "nothing more is asked"
                with Store.read(out) as store:
                    kept = store.counts()["answered"]
                    assert store.meta()["open"] == "no", "the folder was closed in order"
                assert 4 <= kept < 126
                server.latency = 0.0
                print(file=process.stdin, flush=True)
                assert process.stdout.readline().strip() == "replies 126"
                assert process.wait(60) == 0
            finally:
                process.kill()
        assert server.count - spent == 126 - kept, "and nothing is asked twice"


WINDOWS = """
import asyncio, sys
def add_signal_handler(*arguments):
    raise NotImplementedError
asyncio.SelectorEventLoop.add_signal_handler = add_signal_handler
from overtone.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_stops_a_command_whose_event_loop_knows_no_signals(tmp_path: Path) -> None:
    data, out = make(tmp_path / "data", scripts=30, questions=6, seconds=0.1), tmp_path / "run"
    with OpenAIServer(latency=0.1) as server:
        model = f"openai:any?base_url={server.base_url}&speech=no"
        command = [
            "run",
            "echomind",
            "--data",
            str(data),
            "--model",
            model,
            "--out",
            str(out),
            "--max-connections",
            "2",
        ]
        with subprocess.Popen([sys.executable, "-c", WINDOWS, *command, "-q"]) as process:
            deadline = time.monotonic() + 60
            while server.count < 6 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == EXIT_INTERRUPTED
        asked = server.count
    with Store.read(out) as store:
        assert store.counts()["answered"] == asked, "what was in flight came back and was kept"
