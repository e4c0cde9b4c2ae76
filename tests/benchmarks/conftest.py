"""The excerpt of EchoMind that lies beside the project, where it does."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def demo(shared: Path) -> Path:
    return shared / "data" / "echomind_demo"
