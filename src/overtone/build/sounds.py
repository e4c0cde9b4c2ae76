"""Real sounds from a user's folder, in place of the synthesised scenes and vocal events.

`Library(folder)` finds out how the folder is laid out (ESC-50, FSD50K, AudioCaps, or one folder per cue), which of its
sounds stand for which of our cues, and what licence each has.
"""

from __future__ import annotations

import numpy as np

from overtone.audio import Samples
from overtone.build.tract import Rng

_FADE = 0.25  # seconds over which a short recording's end fades into its beginning
_SILENT_DB = -50.0  # below the loudest: not part of the sound


def stretch(samples: Samples, n: int, rate: int, rng: Rng) -> Samples:
    """`n` samples of a recording from a random place on, without the silence around it; looped when it is shorter."""
    x = trimmed(samples, rate)
    if x.size > n:
        start = int(rng.integers(0, x.size - n + 1))
        return x[start : start + n]
    fade = min(int(_FADE * rate), x.size // 3)
    if fade:
        turn = np.sin(np.pi / 2 * (np.arange(fade, dtype=np.float32) + 0.5) / fade)
        lap = x[fade:].copy()
        lap[-fade:] = lap[-fade:] * turn[::-1] + x[:fade] * turn
        x = np.concatenate([x[:fade], np.tile(lap, -(-n // max(lap.size, 1)))])
    else:
        x = np.tile(x, -(-n // x.size))
    return x[:n]


def trimmed(samples: Samples, rate: int) -> Samples:
    """The recording from its first to its last moment that is not silent; empty when all of it is."""
    hop = max(int(0.02 * rate), 1)
    count = samples.size // hop
    if not count:
        return samples[:0] if not np.any(samples) else samples
    power = np.square(samples[: count * hop].reshape(count, hop), dtype=np.float64).mean(1)
    if power.max() < 1e-9:
        return samples[:0]
    loud = np.flatnonzero(power > power.max() * 10 ** (_SILENT_DB / 10))
    return samples[loud[0] * hop : (loud[-1] + 1) * hop]
