"""Study files over spoken runs: made once, copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from overtone.studio import study
from overtone.studio.study import Study
from tests.studio.helpers import new_study

NAMES = ("zebra-voice", "quokka-voice")
MakeStudy = Callable[..., Study]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with runs and a study file, by design."""
    made = {}
    for design in ("acr", "ab"):
        folder = tmp_path_factory.mktemp(design)
        new_study(folder, "--design", design, "--session", "3", names=NAMES, scripts=7)
        made[design] = folder
    return made


@pytest.fixture
def make_study(templates: dict[str, Path], tmp_path: Path) -> MakeStudy:
    """Returns a function that makes a study of a design, with lines of its file replaced."""

    def make(design: str = "acr", *changes: tuple[str, str], url: str = "sqlite:study.db") -> Study:
        shutil.copytree(templates[design], tmp_path, dirs_exist_ok=True)
        path = tmp_path / "study.toml"
        text = path.read_text()
        for old, new in (('url = "sqlite:study.db"', f'url = "{url}"'), *changes):
            assert old in text, old
            text = text.replace(old, new)
        path.write_text(text)
        return study.read(path)

    return make


@pytest.fixture
def quick(make_study: MakeStudy) -> Study:
    """A study of ratings without a headphone test."""
    return make_study("acr", ("headphones = true", "headphones = false"))
