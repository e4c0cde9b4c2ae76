"""Measure everything that the gates need to know about a clip, once. The gates then only compare these numbers.

Facts cover the recogniser's transcript, the acoustics, the file's format, and the comparison with the neutral twin.
"""

from __future__ import annotations

import functools
import hashlib
from itertools import pairwise
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.audio import Measures, Samples
from overtone.build.gates.twin import Pair, compare, spectrogram
from overtone.metrics.normalise import english
from overtone.metrics.wer import Alignment, align

VERSION = 1  # raised when a number below is measured in another way; stored facts of other versions are ignored
RATE = 16_000
BANDS = (100, 160, 250, 400, 630, 1000, 1600, 2500, 4000, 6300)  # edges in Hz of the long-term spectrum
SILENT = 10.0 ** (-60 / 20)
_FRAME = 0.010

Array = NDArray[np.float64]
Key = tuple[str, str, str, float]  # SHA-256, words, the twin's SHA-256, formants: the inputs that facts depend on


class ClipRecord(Struct, frozen=True):
    """The description of a clip that the gates work with. Paths are relative to the set's folder."""

    path: str  # its name, which findings use
    words: str
    case_id: str
    style: str
    cue: str = ""  # slug; "" for a plain voice
    manner: str = ""
    twin: str = ""  # path of the neutral clip with the same words, if it exists
    speaker: str = ""  # the engine's name of the voice
    sex: str = ""  # sex of the voice: male, female, or "" if unknown
    scene: str = ""  # slug of the scene behind the voice
    native: bool = False  # the engine or a person delivered the cue: no recipe promises amounts
    at: str = ""  # path of the file (default: `path`)

    @property
    def file(self) -> str:
        return self.at or self.path


class Facts(Struct, frozen=True):
    """The measurements of one clip. `twin_sha256` and `pair` are set if it has a neutral twin."""

    sha256: str
    version: int
    words: str  # the script's words
    transcript: str
    heard: Alignment  # of transcript and words, normalised as for a run's WER
    measures: Measures
    rate: int
    channels: int
    bits: int
    peak: float
    clipped: int  # samples in runs of three or more at full scale
    dc: float  # mean of the samples, full scale 1
    silent: float  # share of 10 ms frames below -60 dBFS
    lead: float  # seconds before the first frame above -60 dBFS
    trail: float
    spectrum: tuple[float, ...]  # level of each of BANDS in active frames, dB against their sum
    envelope: tuple[float, ...]  # level in 32 equal parts of its length, dB: a fingerprint to find copies
    twin_sha256: str = ""
    pair: Pair | None = None

    @property
    def wer(self) -> float:
        return self.heard.rate if self.heard.reference_words else 0.0

    @property
    def key(self) -> Key:
        return self.sha256, self.words, self.twin_sha256, self.pair.formants if self.pair else 1.0


class Sound(Struct, frozen=True):
    """A decoded file with the format that its header states."""

    sha256: str
    samples: Samples
    rate: int
    channels: int
    bits: int


def read(path: Path) -> Sound:
    """Read a clip's samples and format. Raises AudioError with the file and the fault."""
    from overtone.audio._read import read_bytes
    from overtone.audio._wav import is_wav, parse_wav

    data = read_bytes(path)
    samples, rate = audio.decode(data, name=str(path))
    wav = parse_wav(data, str(path)) if is_wav(data) else None
    channels, bits = (wav.channels, wav.bits) if wav is not None else (0, 0)
    return Sound(digest(data), samples, rate, channels, bits)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def measure_sound(
    sound: Sound, words: str, twin: Sound | None = None, formants: float = 1.0, *, listen: bool = True
) -> Facts:
    """Measure a clip that should say `words`, and compare it with its neutral twin if it has one.

    `formants` is the factor that the clip's recipe applies to the resonances. With `listen=False` the recogniser, which
    takes longer than everything else, is not run.
    """
    from overtone.embedded.recogniser import transcribe

    x = sound.samples
    measures = audio.measure(x, sound.rate)
    transcript = transcribe(x, sound.rate) if listen else ""
    levels = _levels(x, sound.rate)
    loud = np.flatnonzero(levels > 20 * np.log10(SILENT))
    return Facts(
        sha256=sound.sha256,
        version=VERSION,
        words=words,
        transcript=transcript,
        heard=heard(words, transcript),
        measures=measures,
        rate=sound.rate,
        channels=sound.channels,
        bits=sound.bits,
        peak=float(np.abs(x).max()),
        clipped=round(measures.clipped * len(x)),
        dc=float(x.mean(dtype=np.float64)),
        silent=float(1 - loud.size / levels.size),
        lead=float(loud[0] * _FRAME) if loud.size else measures.seconds,
        trail=float((levels.size - 1 - loud[-1]) * _FRAME) if loud.size else measures.seconds,
        spectrum=long_spectrum(x, sound.rate),
        envelope=tuple(round(float(v), 2) for v in _outline(x)),
        twin_sha256="" if twin is None else twin.sha256,
        pair=None if twin is None else compare(x, twin.samples, sound.rate, twin.rate, formants),
    )


@functools.lru_cache(4096)
def _normalised(words: str) -> tuple[str, ...]:
    return tuple(english(words).split())


def heard(words: str, transcript: str) -> Alignment:
    """Align a transcript with the words. Both are normalised as for the WER of a run."""
    return align(list(_normalised(words)), english(transcript).split())


def _levels(x: Samples, rate: int) -> Array:
    size = max(int(_FRAME * rate), 1)
    padded = np.pad(x, (0, -len(x) % size)).astype(np.float64)
    return np.asarray(10 * np.log10(np.square(padded.reshape(-1, size)).mean(1) + 1e-12))


def _outline(x: Samples) -> Array:
    return np.array([10 * np.log10(np.mean(np.square(p, dtype=np.float64)) + 1e-12) for p in np.array_split(x, 32)])


def long_spectrum(x: Samples, rate: int) -> tuple[float, ...]:
    """Return the long-term spectrum of the frames that are loud enough to be the voice."""
    power, hertz = spectrogram(audio.resample(x, rate, RATE))
    total = power.sum(1)
    active = power[total > total.max() * 1e-3].mean(0)
    bands = np.array([active[(hertz >= a) & (hertz < b)].sum() for a, b in pairwise(BANDS)])
    return tuple(round(float(v), 2) for v in 10 * np.log10(bands / (bands.sum() + 1e-20) + 1e-9))
