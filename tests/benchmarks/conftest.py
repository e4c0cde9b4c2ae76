"""The excerpt of EchoMind that lies beside the project, where it does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def demo(request: pytest.FixtureRequest) -> Path:
    shared = Path(os.environ.get("OVERTONE_SHARED") or Path(__file__).parents[2] / ".." / "shared")
    folder = shared / "data" / "echomind_demo"
    if not folder.is_dir():
        pytest.skip("the excerpt of EchoMind is not here (set OVERTONE_SHARED)")
    return folder
