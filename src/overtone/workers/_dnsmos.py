"""DNSMOS P.835 and P.808 (Reddy et al. 2021, 2022): Microsoft's ONNX networks from the `speechmos` package, used as
published. The package itself is not imported, because it needs librosa and pandas."""

from __future__ import annotations

import hashlib
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from overtone.workers import _mel
    from overtone.workers._mel import Floats
else:
    import _mel

    Floats = Any

RATE = 16_000
SECONDS = 9.01  # length of a window; a shorter sound is repeated until it fills one
_SAMPLES = int(SECONDS * RATE)
_ROWS = 8  # windows at once
# The published polynomials from raw outputs to the scale of listeners' means (highest power first).
_FITS = {
    "dnsmos_sig": (-0.08397278, 1.22083953, 0.0052439),
    "dnsmos_bak": (-0.13166888, 1.60915514, -0.39604546),
    "dnsmos_ovrl": (-0.06766283, 1.11546468, 0.04602535),
}
NAMES = ("dnsmos_ovrl", "dnsmos_sig", "dnsmos_bak", "dnsmos_p808")


class Dnsmos:
    """Both networks. `rate` is the sampling rate of their input; `facts` identifies the weights."""

    rate = RATE

    def __init__(self, options: dict[str, Any]) -> None:
        folder = Path(str(distribution("speechmos").locate_file("speechmos/dnsmos_models")))
        paths = [folder / name for name in ("sig_bak_ovr.onnx", "model_v8.onnx")]
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 3
        self.p835, self.p808 = (
            onnxruntime.InferenceSession(str(p), quiet, providers=["CPUExecutionProvider"]) for p in paths
        )
        digests = "+".join(f"{p.stem}.{hashlib.sha256(p.read_bytes()).hexdigest()[:8]}" for p in paths)
        self.facts = {"names": list(NAMES), "weights": digests, "least": 0.25, "most": None}

    def __call__(self, sounds: list[Floats]) -> list[dict[str, float]]:
        """Return name → value for each sound: the mean over its windows. The windows of all sounds form one batch."""
        cut = [windows(x) for x in sounds]
        flat = np.concatenate(cut)
        raw, p808 = [], []
        for at in range(0, len(flat), _ROWS):
            rows = flat[at : at + _ROWS]
            raw.append(self.p835.run(None, {"input_1": rows})[0])
            p808.append(self.p808.run(None, {"input_1": np.stack([spectrogram(row[:-160]) for row in rows])})[0][:, 0])
        marks = dict(zip(("dnsmos_sig", "dnsmos_bak", "dnsmos_ovrl"), np.concatenate(raw).T, strict=True))
        rows_of = {name: np.polyval(fit, marks[name].astype(np.float64)) for name, fit in _FITS.items()}
        rows_of["dnsmos_p808"] = np.concatenate(p808).astype(np.float64)
        ends = np.cumsum([len(c) for c in cut])
        return [
            {name: float(rows_of[name][end - len(c) : end].mean()) for name in NAMES}
            for c, end in zip(cut, ends, strict=True)
        ]


def windows(x: Floats) -> Floats:
    """Return windows of 9.01 s, one starting every second: (windows, samples).

    The published code doubles a short sound until it is long enough, and drops a window whose end, computed in floating
    point, is one sample short. Both are reproduced, so that scores are comparable with those of the published code.
    """
    while len(x) < _SAMPLES:
        x = np.append(x, x)
    count = int(np.floor(len(x) / RATE) - SECONDS) + 1
    cut = [x[int(n * RATE) : int((n + SECONDS) * RATE)] for n in range(count)]
    return np.stack([c for c in cut if len(c) >= _SAMPLES]).astype(np.float32)


def spectrogram(x: Floats) -> Floats:
    """Return the input of the P.808 network: a mel spectrogram (frames, 120) in dB, scaled to about −1 to 1."""
    power = np.square(_mel.frames(x, 321, 160, 321, "constant")) @ _mel.filters(RATE, 321, 120, RATE / 2).T
    out: Floats = (_mel.decibels(power, 1e-10, float(power.max())) + 40.0) / 40.0
    return out
