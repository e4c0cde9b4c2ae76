"""A process of a node becomes like the driver: plug-ins, variables and the working directory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from overtone import registry
from overtone.cluster.node_setup import difference, setup_of, versions

MODEL = """
ROOM = "models"
def load(spec):
    return "the driver's model"
"""
NODE = """
import json, os, pickle, sys
from overtone.cluster import node_setup
setup = pickle.load(sys.stdin.buffer)
node_setup.apply(setup)
from overtone import registry
kind = registry.find("models", "held-there")
known = {name: os.environ.get(name) for name in ("THE_KEY", "OTHER_KEY", "OVERTONE_MARK")}
print(json.dumps([kind.load(None), kind.__file__, os.getcwd(), known]))
"""


def on_a_node(setup: object, tmp_path: Path) -> list[object]:
    """Apply a setup in another process, which knows nothing of this one."""
    inherited = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environment = inherited | {"XDG_DATA_HOME": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-c", NODE],
        input=pickle.dumps(setup),
        capture_output=True,
        env=environment,
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.json.decode(done.stdout, type=list[object])


def test_a_plugin_its_key_and_the_folder_reach_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "held_there.py"
    plugin.write_text(MODEL)
    registry.load_plugin(plugin)
    monkeypatch.chdir(tmp_path)
    for name in ("THE_KEY", "OTHER_KEY", "OVERTONE_MARK"):
        monkeypatch.setenv(name, f"value of {name}")
    setup = setup_of(["THE_KEY"])
    said, file, folder, known = on_a_node(setup, tmp_path)
    assert (said, file, folder) == ("the driver's model", str(plugin), str(tmp_path))
    assert known == {"THE_KEY": "value of THE_KEY", "OTHER_KEY": None, "OVERTONE_MARK": "value of OVERTONE_MARK"}
    plugin.write_text(MODEL.replace("driver's", "node's own"))
    said, file, *_ = on_a_node(setup, tmp_path)
    assert said == "the driver's model" and file != str(plugin), "the bytes count, not the path"
    plugin.unlink()
    assert on_a_node(setup, tmp_path)[0] == "the driver's model"


def test_variables_that_the_user_names_are_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "a secret token")
    monkeypatch.setenv("OVERTONE_RAY_ENV", "MY_TOKEN, NOT_SET")
    setup = setup_of()
    assert setup.environment["MY_TOKEN"] == "a secret token" and "NOT_SET" not in setup.environment
    assert "secret" not in repr(setup)


def test_other_versions_are_named() -> None:
    setup = setup_of()
    assert difference(setup, packages=True) == ""
    changed = msgspec.structs.replace(setup, versions=versions() | {"overtone": "0.0.1", "numpy": "0.1"})
    assert "overtone" in difference(changed, packages=False) and "numpy" not in difference(changed, packages=False)
    assert "instead of 0.1" in difference(changed, packages=True)
