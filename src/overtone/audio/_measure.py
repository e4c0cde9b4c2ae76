"""Measure a voice: level, noise, pauses, pitch, pace and timbre, in plain NumPy.

These are descriptions of the signal for quality gates, features and tables, not a phonetician's analysis. Each field's
comment says how it is measured.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.audio._pitch import drop_short, runs, track
from overtone.audio._read import Samples, resample
from overtone.errors import AudioError

FLOOR_DBFS = -120.0
_RATE = 16_000  # everything except level and clipping is measured at this rate or below
_HOP, _WIDTH = 0.010, 0.025
_GATE_DBFS = -70.0  # nothing below this is speech
_PAUSE = 20  # frames
_PEAK_GAP, _PEAK_DEPTH_DB = 9, 1.5  # two syllables are 90 ms apart and have a valley between them
_BLOCK = 4096

Array = npt.NDArray[np.float64]


class Measures(Struct, frozen=True):
    """The result of `measure`. A value is None if it cannot be measured, because the clip has no speech or no pitch."""

    seconds: float
    rms_dbfs: float  # over the whole sound; -120 for silence
    peak_dbfs: float
    clipped: float  # share of samples in runs of three or more at full scale
    noise_floor_dbfs: float  # level of the quietest tenth of the frames
    snr_db: float | None  # active frames' level over that floor; too low for a sound without pauses
    active: float  # share of frames with speech (or any foreground sound)
    pauses: int  # gaps of 200 ms or more between the first and the last active frame
    pause_seconds: float
    longest_pause: float
    voiced: float  # share of active frames with a pitch
    f0_hz: float | None  # median
    f0_range_st: float | None  # 10th to 90th percentile, semitones
    f0_sd_st: float | None  # standard deviation, semitones
    rate_hz: float | None  # energy peaks per second outside pauses: about syllables
    tilt_db_oct: float | None  # slope of the long-term spectrum, dB per octave; white noise 0, pink -3
    centroid_hz: float | None  # of the long-term power spectrum
    hnr_db: float | None  # periodic over aperiodic energy, median of voiced frames
    modulation: float | None  # standard deviation over mean of the amplitude envelope
    f0_speed_st: float | None = None  # how far the pitch moves, in semitones per second of voice, smoothed over 70 ms
    rhythm: float | None = None  # standard deviation over mean of the spaces between energy peaks, three or more


def measure(samples: npt.ArrayLike, rate: int) -> Measures:
    """Measure mono samples (full scale ±1). Raises AudioError for samples that are empty or not finite."""
    x: Samples = np.asarray(samples, dtype=np.float32)
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise AudioError("only a mono sound with finite samples can be measured")
    peak, power = float(np.abs(x).max()), float(np.mean(np.square(x, dtype=np.float64)))
    seconds, clipped = len(x) / rate, clipped_share(x)
    if rate > _RATE:
        x, rate = resample(x, rate, _RATE), _RATE
    x = x - x.mean(dtype=np.float64).astype(np.float32)
    hop, width = int(_HOP * rate), int(_WIDTH * rate)
    if len(x) < width:
        x = np.pad(x, (0, width - len(x)))
    levels = _decibel(_frame_power(x, hop, width))
    floor = float(np.percentile(levels, 10))
    active = _active(levels, floor)
    speech = float(_decibel(np.mean(10.0 ** (levels[active] / 10.0)))) if active.any() else None
    pitch = track(x, rate, hop, len(levels), width)
    voiced = pitch.voiced & active
    semitones = 12.0 * np.log2(pitch.hz[voiced])
    gaps = _gaps(active)
    spectrum, band = _spectra(x, rate, hop, active)
    peaks = _peaks(band, active)
    return Measures(
        seconds=seconds,
        rms_dbfs=float(_decibel(power)),
        peak_dbfs=float(_decibel(peak * peak)),
        clipped=clipped,
        noise_floor_dbfs=floor,
        snr_db=None if speech is None else speech - floor,
        active=float(active.mean()),
        pauses=len(gaps),
        pause_seconds=float(gaps.sum() * _HOP),
        longest_pause=float(gaps.max(initial=0) * _HOP),
        voiced=float(voiced.sum() / active.sum()) if active.any() else 0.0,
        f0_hz=float(np.median(pitch.hz[voiced])) if voiced.any() else None,
        f0_range_st=float(np.ptp(np.percentile(semitones, (10, 90)))) if voiced.any() else None,
        f0_sd_st=float(semitones.std()) if voiced.any() else None,
        rate_hz=_pace(peaks, active, gaps),
        tilt_db_oct=_tilt(spectrum, rate),
        centroid_hz=_centroid(spectrum, rate),
        hnr_db=_hnr(pitch.strength[voiced]),
        modulation=_modulation(levels, active),
        f0_speed_st=_speed(pitch.hz, voiced),
        rhythm=_rhythm(peaks, active),
    )


def audible(samples: npt.ArrayLike, rate: int) -> tuple[float, float] | None:
    """Return where the foreground of a mono sound begins and ends, in seconds; None for silence.

    The foreground is the frames that `measure` counts as active, so a constant background noise is not part of it.
    """
    x: Samples = np.asarray(samples, dtype=np.float32)
    hop, width = max(1, int(_HOP * rate)), max(1, int(_WIDTH * rate))
    if not len(x):
        return None
    x = x - x.mean(dtype=np.float64).astype(np.float32)
    levels = _decibel(_frame_power(np.pad(x, (0, max(0, width - len(x)))), hop, width))
    active = np.flatnonzero(_active(levels, float(np.percentile(levels, 10))))
    if not len(active):
        return None
    # A frame is active as soon as it contains some sound: its end at the beginning, and its start at the end.
    first = 0 if not active[0] else int(active[0]) * hop + width - hop
    last = len(x) if active[-1] == len(levels) - 1 else int(active[-1]) * hop + hop
    return min(first, len(x)) / rate, min(last, len(x)) / rate


def clipped_share(x: Samples) -> float:
    """Return the share of samples that are in a run of three or more at full scale. A single peak is not clipping."""
    at = np.flatnonzero(np.abs(x) >= 32766 / 32768)
    if len(at) < 3:
        return 0.0
    first = np.flatnonzero(at[2:] - at[:-2] == 2)  # at[i], at[i + 1] and at[i + 2] are neighbours
    return len(np.unique(np.concatenate((first, first + 1, first + 2)))) / len(x)


def _decibel(power: npt.ArrayLike) -> Array:
    out: Array = 10.0 * np.log10(np.maximum(np.asarray(power, dtype=np.float64), 10.0 ** (FLOOR_DBFS / 10.0)))
    return out


def _frame_power(x: Samples, hop: int, width: int) -> Array:
    sums = np.concatenate(([0.0], np.cumsum(np.square(x, dtype=np.float64))))
    starts = np.arange(0, len(x) - width + 1, hop)
    power: Array = np.maximum(sums[starts + width] - sums[starts], 0.0) / width
    return power


def _active(levels: Array, floor: float) -> npt.NDArray[np.bool_]:
    """Return a mask of the frames whose level is above a threshold.

    The threshold is 6 dB above the noise floor, but at most 35 and at least 6 dB below the 95th percentile of the
    levels.
    """
    loud = float(np.percentile(levels, 95))
    threshold = max(min(max(floor + 6.0, loud - 35.0), loud - 6.0), _GATE_DBFS)
    return drop_short(levels > threshold, min(5, len(levels)))  # 50 ms: shorter is a click


def _gaps(active: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the length of each pause in frames."""
    begins, ends = runs(active)
    lengths = begins[1:] - ends[:-1]
    return lengths[lengths >= _PAUSE]


def _spectra(x: Samples, rate: int, hop: int, active: npt.NDArray[np.bool_]) -> tuple[Array | None, Array]:
    """Return the mean power spectrum of the active frames, and each frame's power in the vowel band."""
    size = 1 << (int(0.032 * rate) - 1).bit_length()
    padded = np.pad(x, (0, max(0, (len(active) - 1) * hop + size - len(x))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop][: len(active)]
    window = np.hanning(size).astype(np.float32)
    hz = np.fft.rfftfreq(size, 1.0 / rate)
    vowels = (hz >= 250.0) & (hz <= 2500.0)
    total, band = np.zeros(len(hz)), np.zeros(len(active))
    for at in range(0, len(active), _BLOCK):
        part = slice(at, at + _BLOCK)
        power = np.square(np.abs(np.fft.rfft(frames[part] * window, axis=1)))
        band[part] = power[:, vowels].sum(axis=1)
        total += power[active[part]].sum(axis=0, dtype=np.float64)
    return (total if total.sum() > 0 else None), band


def _tilt(spectrum: Array | None, rate: int) -> float | None:
    """Return the spectral tilt: the slope of a line through the mean densities of third-octave bands. Bands of equal
    width in octaves give every octave the same weight."""
    if spectrum is None:
        return None
    hz = np.linspace(0.0, rate / 2, len(spectrum))
    edges = 100.0 * 2.0 ** np.arange(0, np.log2(0.47 * rate / 100.0), 1 / 3)
    band = np.digitize(hz, edges)
    bands = [band == b for b in range(1, len(edges)) if (band == b).any()]
    octave = np.array([np.log2(hz[b]).mean() for b in bands])
    density = np.array([spectrum[b].mean() for b in bands])
    density = 10.0 * np.log10(np.maximum(density, density.max() * 1e-12))
    return float(np.polyfit(octave, density, 1)[0])


def _centroid(spectrum: Array | None, rate: int) -> float | None:
    if spectrum is None:
        return None
    return float(np.average(np.linspace(0.0, rate / 2, len(spectrum)), weights=spectrum))


def _hnr(strength: Array) -> float | None:
    if not len(strength):
        return None
    r = float(np.clip(np.median(strength), 1e-4, 1 - 1e-5))
    return float(10.0 * np.log10(r / (1.0 - r)))


def _span(active: npt.NDArray[np.bool_]) -> slice:
    at = np.flatnonzero(active)
    return slice(int(at[0]), int(at[-1]) + 1)


def _peaks(band: Array, active: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the frames at peaks of the smoothed vowel-band level, about one per syllable."""
    if not active.any():
        return np.zeros(0, np.int64)
    kernel = np.hanning(11)[1:-1]
    middle = slice(len(kernel) // 2, len(kernel) // 2 + len(band))  # "same" gives more than a very short sound has
    smooth = 10.0 * np.log10(np.convolve(band, kernel / kernel.sum())[middle] + 1e-12)
    tops = np.flatnonzero((smooth[1:-1] > smooth[:-2]) & (smooth[1:-1] >= smooth[2:])) + 1
    tops = tops[active[tops] & (smooth[tops] > smooth[active].max() - 30.0)]
    kept: list[int] = []
    for top in tops.tolist():
        if kept:
            last = kept[-1]
            valley = float(smooth[last : top + 1].min())
            if top - last < _PEAK_GAP or valley > min(smooth[last], smooth[top]) - _PEAK_DEPTH_DB:
                if smooth[top] > smooth[last]:
                    kept[-1] = top
                continue
        kept.append(top)
    return np.array(kept, np.int64)


def _pace(peaks: npt.NDArray[np.int64], active: npt.NDArray[np.bool_], gaps: npt.NDArray[np.int64]) -> float | None:
    """Return the number of peaks per second of speech, without pauses."""
    if not active.any():
        return None
    span = _span(active)
    return float(len(peaks) / ((span.stop - span.start - int(gaps.sum())) * _HOP))


def _rhythm(peaks: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> float | None:
    """Return the coefficient of variation of the intervals between peaks. Intervals with a pause are left out."""
    begins, ends = runs(active)
    pauses = ends[:-1][begins[1:] - ends[:-1] >= _PAUSE]
    spaces = np.diff(peaks)[np.diff(np.searchsorted(pauses, peaks)) == 0]
    return float(spaces.std() / spaces.mean()) if len(spaces) >= 3 else None


def _speed(hz: Array, voiced: npt.NDArray[np.bool_]) -> float | None:
    """Return the mean speed of the pitch in semitones per second. Smoothing first removes jitter of the tracker."""
    semitones = np.where(voiced, 12.0 * np.log2(np.maximum(hz, 1.0)), 0.0)
    kernel = np.ones(7)
    near = np.convolve(voiced, kernel)[3 : 3 + len(hz)]
    smooth = np.convolve(semitones, kernel)[3 : 3 + len(hz)] / np.maximum(near, 1.0)
    steps = np.abs(np.diff(smooth))[voiced[1:] & voiced[:-1]]
    return float(steps.mean() / _HOP) if len(steps) else None


def _modulation(levels: Array, active: npt.NDArray[np.bool_]) -> float | None:
    if not active.any():
        return None
    envelope = 10.0 ** (levels[_span(active)] / 20.0)
    return float(envelope.std() / envelope.mean())
