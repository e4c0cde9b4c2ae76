"""One browser for all tests here, and studies of every design."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from overtone.studio.study import Study
from tests.studio.browser import rater, site

MakeStudy = Callable[..., Study]
MakeRater = Callable[..., rater.Rater]
PLAIN = {"headphones": "false", "training": "0", "traps": "0", "gold": "0", "overlap": "0"}


@pytest.fixture(scope="module")  # Playwright allows one at a time in a process; other modules start their own
def chromium() -> Iterator[Any]:
    with rater.browser() as browser:
        yield browser


@pytest.fixture
def enter(chromium: Any) -> Iterator[MakeRater]:
    """Returns a function that starts a rater; whatever a page complained about fails the test."""
    raters: list[rater.Rater] = []

    def make(**options: Any) -> rater.Rater:
        raters.append(rater.Rater(chromium, **options))
        return raters[-1]

    yield make
    complaints = [line for one in raters for line in one.complaints(network=one.loses_network)]
    for one in raters:
        one.close()
    assert complaints == []


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns a function that returns the folder of a design's study, made once."""
    made: dict[str, Path] = {}

    def folder(design: str) -> Path:
        if design not in made:
            made[design] = site.template(tmp_path_factory.mktemp(design), design).parent
        return made[design]

    return folder


@pytest.fixture
def make_study(templates: Callable[[str], Path], tmp_path: Path) -> MakeStudy:
    """Returns a function that copies a design's study, with some keys of its file set."""

    def make(design: str = "acr", **changes: str) -> Study:
        target = tmp_path / design
        shutil.copytree(templates(design), target)
        return site.changed(target / "study.toml", {**PLAIN, **changes})

    return make


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=[pytest.mark.full, pytest.mark.postgres])])
def desk_url(request: pytest.FixtureRequest) -> str:
    """The database of a desk: "" for the file that its study names, and PostgreSQL in the long tests."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgres").url)
