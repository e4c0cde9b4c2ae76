"""One script per cue of the open set, built once for all tests of this room, with two jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.build.builder import build
from overtone.build.script import Script, read_set
from overtone.build.speak_set import Built
from tests.needs import missing


@pytest.fixture(scope="session")
def scripts() -> tuple[Script, ...]:
    return read_set("open")


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    """Where the part lies, and what its building reported."""
    if reason := missing("local"):
        pytest.skip(reason)
    out = tmp_path_factory.mktemp("open")
    return out, build("open", out, per_cue=1, jobs=2, gates=False)
