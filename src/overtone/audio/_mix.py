"""Set the level of a clip, and mix speech with background noise at a given signal-to-noise ratio, without clipping."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from overtone.audio._read import Samples
from overtone.errors import AudioError

CEILING = 0.98  # of full scale; a clip that would exceed it is turned down as a whole
_LOOP_FADE = 0.05  # seconds over which a background's end fades into its beginning


def level(samples: npt.ArrayLike, dbfs: float, *, ceiling: float = CEILING) -> Samples:
    """Scale a clip to an RMS of `dbfs` (full-scale square wave = 0), or as close as `ceiling` allows for its peaks.

    Raises AudioError for silence, which has no level to set.
    """
    x: Samples = np.asarray(samples, dtype=np.float32)
    rms = _rms(x)
    if rms == 0.0:
        raise AudioError("cannot set the level of a silent clip; check the recording")
    return _limited(x * np.float32(10.0 ** (dbfs / 20.0) / rms), ceiling)


def mix(
    speech: npt.ArrayLike,
    background: npt.ArrayLike,
    rate: int,
    snr_db: float,
    *,
    speech_dbfs: float | None = None,
    ceiling: float = CEILING,
) -> Samples:
    """Mix speech with a background that is `snr_db` weaker. Both RMS levels are taken over the whole length of the
    speech.

    A longer background is cut to the speech, a shorter one is looped with a crossfade. `speech_dbfs` sets the speech's
    level first. If the sum would exceed `ceiling`, the whole mix is turned down, so the ratio holds. Raises AudioError
    if the speech or the background is silent.
    """
    voice: Samples = np.asarray(speech, dtype=np.float32)
    if speech_dbfs is not None:
        voice = level(voice, speech_dbfs, ceiling=ceiling)
    noise = fit(background, len(voice), rate)
    loud, soft = _rms(voice), _rms(noise)
    if loud == 0.0 or soft == 0.0:
        raise AudioError(
            f"the {'speech' if loud == 0.0 else 'background'} is silent; a signal-to-noise ratio needs both"
        )
    return _limited(voice + noise * np.float32(loud / soft * 10.0 ** (-snr_db / 20.0)), ceiling)


def fit(background: npt.ArrayLike, frames: int, rate: int) -> Samples:
    """Cut the background to `frames`, or loop it with its end faded into its beginning at equal power."""
    x: Samples = np.asarray(background, dtype=np.float32)
    if not len(x):
        raise AudioError("the background has no samples")
    if len(x) >= frames:
        return x[:frames]
    fade = min(int(_LOOP_FADE * rate), len(x) // 2)
    lap = x[: len(x) - fade].copy()
    if fade:
        angle = (np.arange(fade, dtype=np.float32) + 0.5) * np.float32(np.pi / 2 / fade)
        lap[:fade] = x[:fade] * np.sin(angle) + x[len(x) - fade :] * np.cos(angle)
    out: Samples = np.tile(lap, -(-frames // len(lap)))[:frames]
    out[:fade] = x[: min(fade, frames)]  # the first lap begins as the background itself does
    return out


def _rms(x: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) if len(x) else 0.0


def _limited(x: Samples, ceiling: float) -> Samples:
    peak = float(np.abs(x).max(initial=0.0))
    return x * np.float32(ceiling / peak) if peak > ceiling else x
