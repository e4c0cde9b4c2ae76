"""The scenes' part of the realness measurement: real ones (ESC-50) and ours, both without speech.

`families(data)` lists the real sounds of each family, `read` makes one of them a row, `built(number)` makes ours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.realness_rows import File, Row, listed, measured
from overtone import audio
from overtone.build.delivery import RATE
from overtone.build.scenes import scene

SCENES = {
    "rain": "rain", "sea_waves": "waves", "thunderstorm": "thunder", "wind": "wind", "dog": "dog",
    "clapping": "applause", "clock_alarm": "alarm", "car_horn": "honking", "engine": "car", "train": "subway",
}  # fmt: skip


def families(data: Path) -> dict[str, list[File]]:
    """The real sounds of each family of scenes; `read` takes each."""
    return {"scene": listed(data / "esc50", lambda r: SCENES.get(r["category"], ""), "file")}


def read(file: File) -> Row:
    samples, rate = audio.read(file[0])
    return file[1], file[2], measured(samples, rate)


def built(number: int) -> dict[str, list[Row]]:
    """Every class of every family once, by the same names."""
    rng = np.random.default_rng([32, number])
    return {
        "scene": [(slug, str(number), measured(scene(slug, 5 * RATE, RATE, rng), RATE)) for slug in SCENES.values()]
    }
