"""The clips of the worked examples."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from overtone.audio import encode_wav
from tests.conftest import REPOSITORY

EXAMPLES = REPOSITORY / "examples"


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """A folder as the worked benchmark reads it: its table, and a tone for each sound the table names."""
    folder = tmp_path / "clips"
    folder.mkdir()
    shutil.copy(EXAMPLES / "clips.csv", folder)
    seconds = np.arange(4_000) / 16_000
    for name, pitch in (("outside.wav", 220.0), ("late.wav", 330.0)):
        tone = 0.1 * np.sin(2 * np.pi * pitch * seconds)
        (folder / name).write_bytes(encode_wav(tone.astype(np.float32), 16_000))
    return folder
