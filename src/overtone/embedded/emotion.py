"""A small emotion predictor: angry, disgusted, fearful, happy, neutral, sad, surprised, or unknown if it is unsure.

It was trained on two kinds of speech (`scripts/fit_emotion.py`): synthetic voices with the deliveries of this project's
recipes, and open recordings of ordinary speech. It was not trained on acted emotion;
docs/explanation/emotion-predictor.md gives its accuracy on real actors. It hears one utterance, has no information on
the speaker, and ignores words and loudness. It needs only NumPy.
"""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.audio import Samples
from overtone.embedded._emotion_features import FEATURES, features
from overtone.errors import DataError

LABELS = ("angry", "disgusted", "fearful", "happy", "neutral", "sad", "surprised")
UNKNOWN = "unknown"
DATA = Path(__file__).with_name("emotion.npz")
_LIMIT = 4.0  # standard deviations: a measure far outside the training data is clipped to its border

Array = npt.NDArray[np.float64]


class Emotion(Struct, frozen=True):
    """The predicted emotion. `probabilities` has all LABELS, even if `label` is unknown; it is empty without speech."""

    label: str
    probabilities: dict[str, float]

    @property
    def probability(self) -> float:
        """The probability of the most likely emotion; 0 without speech."""
        return max(self.probabilities.values(), default=0.0)


class Network(Struct, frozen=True):
    """Several small networks of two hidden layers, whose probabilities are averaged."""

    version: str
    centre: Array
    scale: Array
    layers: tuple[tuple[Array, Array], ...]  # (members, in, out), (members, out)
    threshold: float  # if the most likely emotion is below this, the label is unknown
    sha256: str

    def probabilities(self, rows: Array) -> Array:
        """Return probabilities (rows, LABELS) from features (rows, FEATURES)."""
        z = np.nan_to_num((rows - self.centre) / self.scale)  # a missing measure becomes the mean
        x = np.clip(z, -_LIMIT, _LIMIT)[None]
        for at, (weights, bias) in enumerate(self.layers):
            x = x @ weights + bias[:, None]  # (members, rows, out)
            if at < len(self.layers) - 1:
                x = np.maximum(x, 0.0)
        likely = np.exp(x - x.max(-1, keepdims=True))
        return np.asarray((likely / likely.sum(-1, keepdims=True)).mean(0))


@functools.cache
def load() -> Network:
    """Load the predictor that comes with the package."""
    try:
        data = DATA.read_bytes()
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            parts = {name: archive[name] for name in archive.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{DATA}: cannot be read ({error}); install Overtone again, or run {_SCRIPT}") from error
    if tuple(parts.get("features", ())) != FEATURES or tuple(parts.get("labels", ())) != LABELS:
        raise DataError(f"{DATA}: fitted to other measures than these; run {_SCRIPT}")
    depth = sum(name.startswith("weights") for name in parts)
    return Network(
        version=str(parts["version"]),
        centre=parts["centre"].astype(np.float64),
        scale=parts["scale"].astype(np.float64),
        layers=tuple(
            (parts[f"weights{k}"].astype(np.float64), parts[f"bias{k}"].astype(np.float64)) for k in range(depth)
        ),
        threshold=float(parts["threshold"]),
        sha256=hashlib.sha256(data).hexdigest(),
    )


_SCRIPT = "scripts/fit_emotion.py"


def identity() -> str:
    """Return version and hash of the predictor, for signatures."""
    network = load()
    return f"overtone-emotion-{network.version}-{network.sha256[:8]}"


def predict(samples: Samples, rate: int) -> Emotion:
    """Predict the emotion of one mono clip. Only its first thirty seconds are used."""
    row = features(samples, rate)
    if row is None:
        return Emotion(UNKNOWN, {})
    network = load()
    probabilities = network.probabilities(row[None])[0]
    best = int(probabilities.argmax())
    label = LABELS[best] if probabilities[best] >= network.threshold else UNKNOWN
    return Emotion(label, dict(zip(LABELS, probabilities.tolist(), strict=True)))
