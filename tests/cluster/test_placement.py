"""Where models run on Ray: the table of a run file, the flags, and what is refused before anything starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from overtone import run
from overtone.cli import main
from overtone.cluster.placement import Placement, placement
from overtone.cluster.ray_nodes import Node, default_actors, impossible
from overtone.errors import MissingExtra, UsageError
from overtone.runs.settings import read_run_file, resolve, runs_at_once, to_toml

FILE = """
[run]
jobs = 3
[ray]
gpus = 1
actors = 2
[[benchmark]]
name = "echomind"
data = "data"
[[model]]
spec = "openai:small?base_url=http://127.0.0.1:9/v1"
[[model]]
spec = "openai:large?base_url=http://127.0.0.1:9/v1"
gpus = 4
resources = {A100 = 1}
"""


def written(folder: Path, text: str = FILE) -> Path:
    path = folder / "lab.toml"
    path.write_text(text)
    return path


def test_a_model_of_a_run_file_may_ask_for_more_than_the_table(tmp_path: Path) -> None:
    file = read_run_file(written(tmp_path))
    small, large = resolve({}, file, {})
    assert small.ray == Placement(gpus=1, actors=2)
    assert large.ray == Placement(gpus=4, actors=2, resources={"A100": 1})
    assert large.ray.demand == {"CPU": 1, "GPU": 4, "A100": 1}
    assert runs_at_once(None, file, {}) == 3
    assert runs_at_once(2, file, {}) == 2


def test_flags_win_over_the_file_and_can_leave_ray_out(tmp_path: Path) -> None:
    file = read_run_file(written(tmp_path))
    one, _ = resolve({"ray_address": "10.0.0.1:6379", "ray_actors": 7}, file, {})
    assert one.ray == Placement(address="10.0.0.1:6379", gpus=1, actors=7)
    assert [each.ray for each in resolve({"ray": False}, file, {})] == [None, None]
    flags = {"benchmark": "echomind", "data": ".", "model": ["cascade"]}
    assert resolve(flags, None, {})[0].ray is None
    assert resolve(flags | {"ray": True}, None, {})[0].ray == Placement()
    assert resolve(flags | {"ray": {"gpus": 0.5}}, None, {})[0].ray == Placement(gpus=0.5)


def test_the_stored_configuration_repeats_the_placement(tmp_path: Path) -> None:
    _, large = resolve({}, read_run_file(written(tmp_path)), {})
    (again,) = resolve({}, read_run_file(written(tmp_path, to_toml(large))), {})
    assert again.ray == large.ray


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"gpu": 1}, "unknown key 'gpu'; did you mean 'gpus'"),
        ({"gpus": "two"}, "Expected `float`"),
        ({"gpus": 1.5}, "gpus above 1 must be a whole number"),
        ({"cpus": -1}, "cpus must be 0 or more"),
        ({"actors": -2}, "actors must be from"),
        ({"address": "ray://10.0.0.1:10001"}, "start this command on a node of the cluster"),
        ({"address": "http://10.0.0.1"}, "address must be HOST:PORT, auto or local"),
        ({"resources": {"GPU": 2}}, "resources must not name GPU"),
    ],
)
def test_a_wrong_table_is_a_clear_error(table: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=r"^\[ray\]: ") as caught:
        placement("[ray]", table)
    assert told in str(caught.value)


def test_a_cluster_that_the_file_names_needs_trust(tmp_path: Path) -> None:
    text = FILE.replace("gpus = 1\n", 'gpus = 1\naddress = "10.0.0.1:6379"\n', 1)
    (reason,) = read_run_file(written(tmp_path, text)).needs_trust()
    assert "on the Ray cluster at 10.0.0.1:6379" in reason
    assert read_run_file(written(tmp_path, text)).needs_trust({"ray_address": "10.0.0.2:6379"}) == []
    assert read_run_file(written(tmp_path)).needs_trust() == []


def test_without_ray_the_error_is_the_line_that_installs_it(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["run", "echomind", "--data", str(small), "--out", str(tmp_path / "run"), "--ray"]
    assert main([*words, "--model", "openai:any?base_url=http://127.0.0.1:9/v1"]) == 2
    assert "pip install" in (err := capsys.readouterr().err) and "[ray]" in err
    with pytest.raises(MissingExtra, match="pip install"):
        run("echomind", data=small, out=tmp_path / "run", model="predictions:x.jsonl" and "cascade", ray=True)
    assert main(["build", "open", "--out", str(tmp_path / "set"), "--only", "rain", "--ray"]) == 2
    assert "[ray]" in capsys.readouterr().err and not (tmp_path / "set").exists()


def test_what_ray_cannot_hold_is_refused_before_it_starts(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(UsageError, match="cannot be sent to a Ray cluster; write the model as a plug-in file"):
        run("echomind", data=small, out=out, model=lambda request: "I hear you", ray=True)
    program = Path(__file__).parents[1] / "models" / "echo_worker.py"
    with pytest.raises(UsageError, match=r"write gpus in \[ray\] and not in the SPEC"):
        run("echomind", data=small, out=out, model=f"worker:{program}?gpus=0,1", ray=True)
    assert not out.exists()


def test_a_plan_says_where_the_model_runs(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "echomind", "--data", str(small), "--model", "openai:any?base_url=http://127.0.0.1:9/v1"]
    assert main([*words, "--ray-address", "10.0.0.1:6379", "--ray-actors", "4"]) == 0
    assert "runs on      Ray, 10.0.0.1:6379: 4 actors, each with 1 CPU" in capsys.readouterr().out
    assert main(words) == 0
    assert "Ray" not in capsys.readouterr().out


def test_actors_fill_the_gpus_or_take_one_node_each() -> None:
    nodes = [Node("a", "10.0.0.1", {"CPU": 8, "GPU": 4}), Node("b", "10.0.0.2", {"CPU": 2})]
    assert default_actors(nodes, Placement()) == 2
    assert default_actors(nodes, Placement(gpus=1)) == 4
    assert default_actors(nodes, Placement(gpus=0.5)) == 8
    assert default_actors(nodes, Placement(gpus=1, cpus=4)) == 2
    assert impossible(nodes, Placement(gpus=4).demand) == ""
    told = impossible(nodes, Placement(gpus=8).demand)
    assert "no node of the Ray cluster has 1 CPU, 8 GPU for an actor" in told
    assert "10.0.0.1 has 8 CPU, 4 GPU; 10.0.0.2 has 2 CPU, 0 GPU" in told
