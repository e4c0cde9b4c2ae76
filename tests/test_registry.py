"""Plug-ins: found by file name, by file, by entry point, and by nearest name when misspelt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from overtone import plugins, registry
from overtone.errors import UsageError

DEFINES = {
    "CORPUS": "CORPUS = 1",
    "DESIGN": "DESIGN = 1",
    "FINDING": "FINDING = 1",
    "draw": "def draw(source, width): ...",
    "load": "def load(): ...",
}
MODULES = [room for room in registry.PLUGIN_ROOMS if room != "rubrics"]


def written(path: Path, room: str, more: str = "") -> Path:
    path.write_text(
        f'"""Does nothing, for a test.\n\nMore."""\nROOM = "{room}"\n{DEFINES[registry.ROOMS[room].defines]}\n{more}'
    )
    return path


def test_every_built_in_has_a_line_that_says_what_it_is() -> None:
    for room in registry.ROOMS:
        found = registry.builtins(room)
        assert found, room
        assert all(len(line) > 15 and not line.endswith(",") for line in found.values()), found


def test_helpers_of_a_room_are_not_plug_ins() -> None:
    assert not {"http", "-speech", "init"} & set(registry.builtins("models"))
    assert not {"normalise", "fetch"} & (set(registry.builtins("metrics")) | set(registry.builtins("benchmarks")))
    assert not {"finding", "analysis", "lookup"} & set(registry.builtins("findings"))


def test_a_built_in_may_be_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "findings" / "my_question").mkdir(parents=True)
    written(tmp_path / "findings" / "my_question" / "__init__.py", "findings")
    (tmp_path / "findings" / "helper.py").write_text('"""Helps."""\n')
    monkeypatch.setattr(registry, "_HERE", tmp_path)
    registry._built_in.cache_clear()
    try:
        assert registry.listing("findings") == {"my-question": "Does nothing, for a test."}
    finally:
        registry._built_in.cache_clear()


@pytest.mark.parametrize("room", MODULES)
def test_a_file_becomes_a_plug_in_by_saying_its_room(tmp_path: Path, room: str) -> None:
    path = written(tmp_path / "my_own.py", room)
    assert registry.load_plugin(path) == (room, "my-own")
    assert room == registry.find(room, "My_Own").ROOM
    assert registry.entries(room)["my-own"] == ("Does nothing, for a test.", str(path))
    assert all("my-own" not in registry.listing(other) for other in MODULES if other != room)


def test_a_rubric_is_a_plug_in_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "my_rubric.toml"
    path.write_text(registry.find_rubric("ves").read_text().replace("Vocal empathy", "My empathy"))
    assert registry.load_plugin(path) == ("rubrics", "my-rubric")
    assert registry.find_rubric("my-rubric") == path
    assert registry.listing("rubrics")["my-rubric"].startswith("My empathy")
    for text, complaint in (("[run]\nlimit = 3\n", r"no \[\[dimension\]\]"), ("broken", "cannot be read")):
        path.write_text(text)
        with pytest.raises(UsageError, match=complaint):
            registry.load_plugin(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1", "must define ROOM"),
        ('ROOM = "metrics"', r"has no function load\(\)"),
        ('ROOM = "findings"', "has no FINDING"),
        ('ROOM = "attic"', "must define ROOM"),
        ('ROOM = "rubrics"', "must define ROOM"),
    ],
)
def test_a_file_that_is_no_plug_in_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        registry.load_plugin(path)
    with pytest.raises(UsageError, match="does not exist"):
        registry.load_plugin(tmp_path / "nowhere.py")


def test_two_files_of_one_name_are_refused_in_any_two_rooms(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    registry.load_plugin(written(tmp_path / "mine.py", "metrics"))
    registry.load_plugin(tmp_path / "mine.py")
    with pytest.raises(UsageError, match="two plug-ins are called 'mine'"):
        registry.load_plugin(written(tmp_path / "other" / "mine.py", "models"))


def test_an_installed_package_brings_plug_ins_by_entry_points(tmp_path: Path) -> None:
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[overtone.findings]\nMy_Question = stranger.question\n[overtone.rubrics]\nmy-rubric = stranger:RUBRIC\n"
    )
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "__init__.py").write_text('RUBRIC = __file__ + ".toml"\n')
    (tmp_path / "stranger" / "question.py").write_text("FINDING = 7\n")
    code = """
from overtone import registry
import sys
print(registry.entries("findings")["my-question"].origin, "stranger" in sys.modules)
print(registry.find("findings", "my-question").FINDING, registry.find_rubric("my-rubric").name)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["stranger", "False", "7", "__init__.py.toml"]


def test_a_typo_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown model 'gemni'; did you mean 'gemini'"):
        registry.find("models", "gemni")
    with pytest.raises(UsageError, match="unknown rubric 'ecomind'; did you mean 'echomind'"):
        registry.find_rubric("ecomind")


SPAWNING = """
import multiprocessing, sys
from pathlib import Path
from overtone import registry

if __name__ == "__main__":
    registry.load_plugin(Path(sys.argv[1]))
    module = registry.find("metrics", "my-own")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (there,) = pool.map(module.halve, [module.Whole(8)])
    print(there.n, type(there) is module.Whole, there.found)
"""
HALVING = """
from overtone import registry
class Whole:
    def __init__(self, n, found=""):
        self.n, self.found = n, found
def halve(whole):
    same = registry.find("metrics", "my-own").Whole is Whole  # one class, however the child came by it
    return Whole(whole.n // 2, f"{__name__} {same}")
"""


def test_a_plug_in_is_imported_by_a_spawned_process(tmp_path: Path) -> None:
    path = written(tmp_path / "my_own.py", "metrics", HALVING)
    script = tmp_path / "script.py"
    script.write_text(SPAWNING)
    done = subprocess.run(
        [sys.executable, str(script), path.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["4", "True", "overtone.plugins.my_own", "True"], done.stderr


def test_the_environment_of_child_processes_names_every_plug_in_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = written(tmp_path / "first.py", "metrics"), written(tmp_path / "second.py", "models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, "first.py")
    assert "first" in registry.listing("metrics")
    registry.load_plugin(second)
    registry.load_plugin(second)
    assert os.environ[plugins.VARIABLE].split(os.pathsep) == [str(first), str(second)]
