"""One process at a time writes a run, whichever way the system locks files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WINDOWS = """
import asyncio, fcntl, multiprocessing, os, subprocess, sys, tempfile, types  # the library's own use of fcntl stays

def locking(file, mode, count):
    assert mode == "now or never" and os.lseek(file, 0, os.SEEK_CUR) > 1_000_000
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, count, os.lseek(file, 0, os.SEEK_CUR))

sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK="now or never")
sys.modules["fcntl"] = None
"""
WRITE = """
import sys
from pathlib import Path
from overtone.errors import StoreError
from overtone.runs.store import Store
try:
    with Store.create(Path(sys.argv[1])):
        print("writing", flush=True)
        sys.stdin.readline()
except StoreError as error:
    print(error, flush=True)
"""


def start(code: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("system", ["", WINDOWS], ids=["flock", "msvcrt"])
def test_a_second_writer_is_refused_with_the_first_ones_process_id_until_the_first_ends(
    system: str, tmp_path: Path
) -> None:
    with start(system + WRITE, tmp_path) as first:
        assert first.stdout is not None and first.stdout.readline() == "writing\n"
        with start(system + WRITE, tmp_path) as second:
            told = second.communicate("\n", timeout=60)[0]
        assert f"is being written by another process (pid {first.pid})" in told
        first.communicate("\n", timeout=60)
    with start(system + WRITE, tmp_path) as third:
        assert third.communicate("\n", timeout=60)[0] == "writing\n"
