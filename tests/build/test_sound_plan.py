"""The hash that decides which clips of a set are rendered again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from overtone.build import sound_plan
from overtone.build.sound_plan import code_hash

ROOM = Path(sound_plan.__file__).parent


@pytest.fixture
def room(tmp_path: Path) -> Path:
    return shutil.copytree(ROOM, tmp_path / "build", ignore=shutil.ignore_patterns("__pycache__"))


def _edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_changed_docstring_or_comment_keeps_the_hash(room: Path) -> None:
    _edit(room / "vocal_events.py", '"""', '"""Reworded. ')
    _edit(room / "recipes.py", "\n\n\n", "\n\n\n# A comment.\n")
    assert code_hash(room) == code_hash()


def test_a_changed_number_changes_the_hash(room: Path) -> None:
    _edit(room / "room.py", "0.", "1.")
    assert code_hash(room) != code_hash()


def test_every_file_that_the_hash_names_exists() -> None:
    assert [name for name in sound_plan._CODE if not list(ROOM.glob(name))] == []
