"""Plug-ins: found by file name, by file, and by nearest name when misspelt."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone import registry
from overtone.errors import UsageError


def test_every_built_in_has_a_line_that_says_what_it_is() -> None:
    for room in registry.ROOMS:
        found = registry.builtins(room)
        assert found
        assert all(len(line) > 15 and not line.endswith(",") for line in found.values()), found


def test_helpers_of_a_room_are_not_plug_ins() -> None:
    assert not {"http", "-speech", "init"} & set(registry.builtins("models"))
    assert not {"normalise", "fetch"} & (set(registry.builtins("metrics")) | set(registry.builtins("benchmarks")))


def test_a_file_becomes_a_plug_in_by_saying_its_room(tmp_path: Path) -> None:
    path = tmp_path / "my_metric.py"
    path.write_text('"""Counts nothing, for a test."""\nROOM = "metrics"\ndef load():\n    return None\n')
    registry.load_plugin(path)
    try:
        assert registry.find("metrics", "my-metric").load() is None
        assert registry.listing("metrics")["my-metric"] == "Counts nothing, for a test."
    finally:
        registry._plugins["metrics"].clear()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("x = 1", "must say ROOM"), ('ROOM = "metrics"', "has no function load"), ('ROOM = "attic"', "must say ROOM")],
)
def test_a_file_that_is_no_plug_in_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        registry.load_plugin(path)
    with pytest.raises(UsageError, match="does not exist"):
        registry.load_plugin(tmp_path / "nowhere.py")


def test_a_typo_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown model 'gemni'; did you mean 'gemini'"):
        registry.find("models", "gemni")
