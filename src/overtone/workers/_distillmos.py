"""DistillMOS (Stahl and Gamper 2025): the network of the `distillmos` package. All sounds' windows form one batch."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from overtone.workers import _torchaudio
    from overtone.workers._mel import Floats
else:
    import _torchaudio

    Floats = Any

RATE = 16_000
_SAMPLES = 122_880  # of one window, 7.68 s; a shorter sound is padded with silence
_HOP = 16_000  # at most
_ROWS = 4  # windows at once


class DistillMos:
    """The network. `rate` is the sampling rate of its input; `facts` identifies the weights."""

    rate = RATE

    def __init__(self, options: dict[str, Any]) -> None:
        _torchaudio.stand_in()
        with contextlib.redirect_stdout(sys.stderr):  # it prints the path of its weights
            from distillmos import sqa

            self.model = sqa.ConvTransformerSQAModel(segmenting_in_forward=False).eval()
        path = Path(sqa.DEFAULT_WEIGHTS_CHKPT)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        self.facts = {"names": ["distillmos"], "weights": f"{path.stem}.{digest}", "least": 0.25, "most": None}

    def __call__(self, sounds: list[Floats]) -> list[dict[str, float]]:
        """Return the value of each sound: the mean over its windows."""
        cut = [windows(x) for x in sounds]
        flat = torch.from_numpy(np.concatenate(cut))
        with torch.inference_mode():
            marks = torch.cat([self.model(flat[i : i + _ROWS]).reshape(-1) for i in range(0, len(flat), _ROWS)])
        return [{"distillmos": float(part.mean())} for part in marks.split([len(c) for c in cut])]


def windows(x: Floats) -> Floats:
    """Return evenly spaced windows (windows, samples) that cover the sound and start at most a second apart."""
    over = len(x) - _SAMPLES
    if over < 0:
        x, over = np.pad(x, (0, -over)), 0
    starts = [int(c * over) for c in np.linspace(0, 1, math.ceil(over / _HOP) + 1)]
    return np.stack([x[s : s + _SAMPLES] for s in starts])
