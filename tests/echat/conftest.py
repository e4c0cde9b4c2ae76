"""These tests need torch, which is no part of the core's environment: they borrow it from the workers'."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from overtone.embedded import present

WORKER = Path(os.environ.get("OVERTONE_MEASURES", Path(__file__).parents[2] / ".venv-worker"))
BORROWED = WORKER / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

if not present("torch") and BORROWED.is_dir():
    sys.path.append(str(BORROWED))  # behind our own packages
if present("torch"):
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """What a process of ours needs to find torch as these tests do."""
    return {**os.environ, "PYTHONPATH": str(BORROWED), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of the preset `tiny`, untrained, where a run's last stage leaves it."""
    from overtone.echat.net import checkpoint, config

    torch.manual_seed(0)
    preset = config.read("tiny")
    folder = tmp_path_factory.mktemp("tiny") / "run" / "stage-3" / "model"
    folder.parent.mkdir(parents=True)
    checkpoint.save(checkpoint.make(preset), folder, preset, notes={"stage": "3"})
    return folder
