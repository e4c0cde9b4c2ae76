"""Builds and slow metrics on a real cluster: the same bytes and scores as on one machine, also if a node is killed."""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path

import pytest

from overtone.runs.store import Store
from tests.cluster.ray_cluster import cluster, environment
from tests.peers import BIN
from tests.report.fake_run import make_run
from tests.test_score_workers import stored

pytestmark = [pytest.mark.peers, pytest.mark.full, pytest.mark.local, pytest.mark.timeout(600)]


def overtone(*words: str | Path) -> str:
    """Run a command in the peers' environment and return what it writes to stderr."""
    command = [str(BIN / "python"), "-m", "overtone", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(embedded=True), timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a set."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def test_a_build_on_two_nodes_has_the_bytes_of_a_build_on_one_machine(tmp_path: Path) -> None:
    build = ["build", "open", "--only", "whisper,rain", "--per-cue", "3"]
    overtone(*build, "--out", tmp_path / "here", "--jobs", "1")
    with cluster("1", "1", environ=environment(embedded=True)) as nodes:
        overtone(*build, "--out", tmp_path / "there", "--ray-address", nodes.address)
    here, there = files(tmp_path / "here"), files(tmp_path / "there")
    assert [name for name in here if name.endswith(".wav")]
    assert here.keys() == there.keys()
    assert {name for name in here if here[name] != there[name]} <= {"facts.jsonl"}  # one line per clip, as they end
    lines = [sorted((tmp_path / name / "facts.jsonl").read_text().splitlines()) for name in ("here", "there")]
    assert lines[0] == lines[1]


def test_a_build_of_exchanges_survives_a_killed_node_with_the_same_bytes(tmp_path: Path) -> None:
    build = ["build", "echat", "--count", "200", "--only", "train", "--no-gates", "--speech", "units"]
    overtone(*build, "--out", tmp_path / "here", "--jobs", "2")
    with cluster("1", "1", environ=environment(embedded=True)) as nodes:
        command = [str(BIN / "python"), "-m", "overtone", *build, "--out", str(tmp_path / "there")]
        command += ["--ray-address", nodes.address]
        driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(embedded=True))
        end = time.monotonic() + 200
        while not list((tmp_path / "there" / "pieces").glob("*.json")):
            assert driver.poll() is None and time.monotonic() < end, driver.communicate()[1]
            time.sleep(0.05)
        nodes.tell("kill 1")
        _, err = driver.communicate(timeout=400)
        assert driver.returncode == 0, err[-3000:]
    here, there = files(tmp_path / "here"), files(tmp_path / "there")
    assert len([name for name in here if name.endswith(".wav")]) > 100
    assert here.keys() == there.keys()
    assert {name for name in here if here[name] != there[name]} <= {"replies.jsonl"}  # one line per reply, as they end


def test_slow_metrics_on_a_cluster_give_the_same_scores_in_the_same_order(tmp_path: Path) -> None:
    for name in ("here", "there"):
        make_run(tmp_path / name, scripts=24)
    overtone("score", tmp_path / "here", "-q")
    with cluster("1", "1", environ=environment(embedded=True)) as nodes:
        err = overtone("score", tmp_path / "there", "-q", "--ray-address", nodes.address)
    assert "scored on this machine" not in err
    assert stored(tmp_path / "here") == stored(tmp_path / "there")
    with Store.read(tmp_path / "there") as store:
        assert next(store.scores(), None) is not None
