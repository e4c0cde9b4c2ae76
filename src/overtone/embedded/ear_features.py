"""The input of a fitted ear: states of the speech encoder over a clip, measures of prosody and spectrum, and length.

None of it depends on the recording's level, which says more about the microphone than about the speaker.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from overtone.audio import Samples, resample
from overtone.embedded import _emotion_features as prosody
from overtone.embedded import hearing, speech_states
from overtone.embedded.speech_states import RATE, WIDTH

Array = NDArray[np.float32]

VERSION = 1  # raise it with every change of the numbers below
STATES = (1, 2, 3)  # the layers that were best on speakers and corpora left out; later ones keep words only
LONGEST = 30  # seconds
_FRAME = RATE // 50
_TRIM_DB = 40.0  # frames quieter than this below the loudest are cut off at both ends
_SILENT_DBFS = -70.0
_PEAK = 0.5
_SUMMARIES = ("mean", "spread")
FEATURES: tuple[str, ...] = (
    *(f"state {layer} {name} {k}" for layer in STATES for name in _SUMMARIES for k in range(WIDTH)),
    *prosody.FEATURES,
    *(f"sound {name}" for name in hearing.FEATURES),
    *("log seconds", "crest", "level sd"),
)


def identity() -> str:
    """Return the version of these features and the identity of the encoder. Raises MissingExtra without it."""
    return f"ear-features-{VERSION}+{speech_states.identity()}"


def features(samples: Samples, rate: int) -> Array | None:
    """Return the numbers in the order of FEATURES, NaN if one cannot be measured; None for silence."""
    whole = np.asarray(resample(np.asarray(samples, np.float32), rate, RATE), np.float32)
    if whole.size < _FRAME or not np.isfinite(whole).all():
        return None
    frames = whole[: whole.size // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    level = 10 * np.log10(np.square(frames).mean(1) + 1e-12)
    if level.max() < _SILENT_DBFS:
        return None
    loud = np.flatnonzero(level > level.max() - _TRIM_DB)
    x = whole[loud[0] * _FRAME : (loud[-1] + 1) * _FRAME][: LONGEST * RATE]
    x = x * np.float32(_PEAK / np.abs(x).max())
    states = speech_states.load().states(x, max(STATES))[list(STATES)]
    spoken = prosody.features(x, RATE)
    rms = float(np.sqrt(np.square(x.astype(np.float64)).mean()))
    parts = (
        np.stack([states.mean(1), states.std(1)], 1).reshape(-1),
        np.full(len(prosody.FEATURES), np.nan) if spoken is None else spoken,
        hearing.features(x, RATE),
        np.array([np.log2(x.size / RATE), 20 * np.log10(_PEAK / rms), level[loud[0] : loud[-1] + 1].std()]),
    )
    return np.concatenate(parts).astype(np.float32)
