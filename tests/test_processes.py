"""A program is ended together with its children; one that has ended already is no error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from overtone.processes import KILL, signal_group

PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '600']).pid, flush=True); sys.stdin.read()"


def start() -> tuple[subprocess.Popen[str], psutil.Process]:
    command = [sys.executable, "-c", PARENT]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert parent.stdout is not None
    return parent, psutil.Process(int(parent.stdout.readline()))


def test_children_end_with_their_parent() -> None:
    parent, child = start()
    with parent:
        signal_group(parent.pid)
        assert parent.wait(30) == -KILL
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    signal_group(parent.pid)


def test_without_process_groups_the_process_itself_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    parent, child = start()
    with parent:
        monkeypatch.delattr(os, "killpg")
        signal_group(parent.pid, signal.SIGTERM)
        assert parent.wait(30) == -signal.SIGTERM
    child.kill()
