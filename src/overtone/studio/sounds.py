"""The sounds that raters hear: each source is checked, processed and stored once, before a session needs it.

A rendering is a FLAC file named by the hash of its source and its processing, in a folder beside the study file. The
file's content and name tell a rater nothing. `sounds.jsonl` in that folder logs every rendering with its gain, and by
how much the limiter lowered its peak.
"""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections import OrderedDict
from pathlib import Path

import msgspec
import numpy as np
import soundfile
from msgspec import Struct

from overtone.audio import Samples, decode, read_bytes, resample
from overtone.errors import AudioError, DataError, StoreError
from overtone.paths import shown, write_whole
from overtone.studio.replies import PEAK, TARGET_DB

VERSION = 1  # of the processing; another version renders again
LOG = "sounds.jsonl"
RATES = range(8_000, 48_001)  # other rates are resampled to 48 kHz, which every browser plays
LIMITER_SECONDS = 0.005
CAP_SECONDS = 0.4
MEMORY = 64 << 20  # bytes of rendered sounds kept in memory
LOWPASS_TAPS = 401


class LostSound(DataError):
    """A source is missing or has changed since the study was made. The text names the file, for the owner."""


class Wanted(Struct, frozen=True):
    """A source and its processing.

    `level_db` is the level to which the sound is brought, instead of a gain. If a part of 0.4 s exceeds `cap_db`, the
    whole sound is made softer, to protect the listener's ears.
    """

    path: str
    sha256: str
    gain_db: float = 0.0
    level_db: float | None = None
    cap_db: float = 0.0
    lowpass: int = 0  # Hz; 0: none
    backwards: bool = False

    @property
    def key(self) -> str:
        """The name of the rendering. It does not depend on the place of the source."""
        content = (VERSION, self.sha256, self.gain_db, self.level_db, self.cap_db, self.lowpass, self.backwards)
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


class Rendered(Struct, frozen=True, kw_only=True):
    """A line of the log. `sha256` is the hash of the FLAC file.

    `limited_db` is how much the limiter lowered the highest peak, `capped_db` how much the cap lowered the whole sound.
    """

    key: str
    source: str
    sha256: str
    seconds: float
    rate: int
    gain_db: float
    limited_db: float = 0.0
    capped_db: float = 0.0
    lowpass: int = 0
    backwards: bool = False
    at: float = 0.0


class Sounds:
    """The folder of renderings. It is thread-safe; the renderings of one process are made one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: dict[str, Rendered] = {}
        self._recent: OrderedDict[str, bytes] = OrderedDict()
        self._recent_bytes = 0
        self._making = threading.Lock()
        self._changing = threading.Lock()
        self._read_log()

    def _read_log(self) -> None:
        try:
            lines = (self.folder / LOG).read_bytes().splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                known = msgspec.json.decode(line, type=Rendered)
            except msgspec.DecodeError:
                continue  # a line cut off by a crash: the sound is rendered again
            self._index[known.key] = known

    def known(self, wanted: Wanted) -> Rendered | None:
        """Return a rendering that exists already, otherwise None."""
        return self._index.get(wanted.key)

    def render(self, wanted: Wanted) -> Rendered:
        """Return a rendering, and make it if it does not exist.

        Raises LostSound if the source is missing, has changed or is not audio, and StoreError if the rendering cannot
        be written.
        """
        if (known := self.known(wanted)) is not None:
            return known
        with self._making:
            if (known := self.known(wanted)) is not None:
                return known
            data, made = rendering(wanted)
            try:
                write_whole(self._path(wanted.key), data)
                with (self.folder / LOG).open("ab") as log:
                    log.write(msgspec.json.encode(made) + b"\n")
            except OSError as error:
                where = shown(str(self.folder))
                raise StoreError(f"{where}: a sound cannot be written ({error.strerror}); free some space") from None
            self._index[made.key] = made
            self._keep(made.key, data)
            return made

    def data(self, wanted: Wanted) -> bytes:
        """Return the bytes of a rendering. If its file is missing or damaged, the sound is rendered again."""
        made = self.render(wanted)
        with self._changing:
            if (data := self._recent.get(made.key)) is not None:
                self._recent.move_to_end(made.key)
                return data
        try:
            data = self._path(made.key).read_bytes()
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() == made.sha256:
            self._keep(made.key, data)
            return data
        self._index.pop(made.key, None)
        self.render(wanted)
        return self._recent[made.key] if made.key in self._recent else self._path(made.key).read_bytes()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.flac"

    def _keep(self, key: str, data: bytes) -> None:
        with self._changing:
            if key in self._recent:
                return
            self._recent[key] = data
            self._recent_bytes += len(data)
            while self._recent_bytes > MEMORY and len(self._recent) > 1:
                _, dropped = self._recent.popitem(last=False)
                self._recent_bytes -= len(dropped)


# ── processing ────────────────────────────────────────────────────────────────────────────────────────────────────────
def rendering(wanted: Wanted) -> tuple[bytes, Rendered]:
    """Return a processed source as FLAC, and its line of the log. Raises LostSound."""
    try:
        raw = read_bytes(wanted.path)
        if hashlib.sha256(raw).hexdigest() != wanted.sha256:
            raise LostSound(
                f"{shown(wanted.path)} has changed since the study was made; restore the file, or make a new study"
            )
        samples, rate = decode(raw, name=wanted.path)
    except AudioError as error:
        raise LostSound(f"{error}; restore the file, or make a new study") from None
    if rate not in RATES:
        samples, rate = resample(samples, rate, RATES[-1]), RATES[-1]
    if wanted.lowpass:
        samples = lowpass(samples, rate, wanted.lowpass)
    if wanted.backwards:
        samples = np.ascontiguousarray(samples[::-1])
    gain = wanted.gain_db if wanted.level_db is None else wanted.level_db - level_db(samples)
    samples = samples * np.float32(10 ** (gain / 20))
    capped = max(0.0, loudest_db(samples, rate) - wanted.cap_db)
    samples, limited = limit(samples * np.float32(10 ** (-capped / 20)), rate)
    data = flac(samples, rate)
    made = Rendered(
        key=wanted.key, source=wanted.sha256, sha256=hashlib.sha256(data).hexdigest(), rate=rate,
        seconds=round(len(samples) / rate, 3), gain_db=round(gain, 2), limited_db=limited, lowpass=wanted.lowpass,
        backwards=wanted.backwards, capped_db=round(capped, 2), at=round(time.time(), 3),
    )  # fmt: skip
    return data, made


def level_db(samples: Samples) -> float:
    """Return the level of a sound in dB below full scale. For silence, return the common level of the study."""
    power = float(np.mean(np.square(samples, dtype=np.float64))) if len(samples) else 0.0
    return 10 * float(np.log10(power)) if power > 0 else TARGET_DB


def loudest_db(samples: Samples, rate: int) -> float:
    """Return the level of the loudest 0.4 s of a sound, in dB below full scale."""
    width = min(len(samples), max(1, round(CAP_SECONDS * rate)))
    if not width:
        return -np.inf
    sums = np.cumsum(np.concatenate([[0.0], np.square(samples, dtype=np.float64)]))
    power = float(np.max(sums[width:] - sums[:-width])) / width
    return 10 * float(np.log10(power)) if power > 0 else -np.inf


def limit(samples: Samples, rate: int) -> tuple[Samples, float]:
    """Return a sound without peaks above the limit, and by how many dB the highest peak was lowered.

    The gain falls and rises smoothly around each peak, so that nothing clicks. Other parts do not change.
    """
    peak = float(np.max(np.abs(samples), initial=0.0))
    if peak <= PEAK:
        return samples, 0.0
    width = max(2, round(LIMITER_SECONDS * rate))
    needed = np.minimum(1.0, PEAK / np.maximum(np.abs(samples, dtype=np.float64), 1e-9))
    lowest = _sliding_minimum(np.pad(needed, (width - 1, width - 1), constant_values=1.0), width)
    sums = np.cumsum(np.concatenate([[0.0], lowest]))
    gain = (sums[width:] - sums[:-width]) / width  # a mean of values that are all low enough here
    limited: Samples = np.clip(samples * gain[: len(samples)], -PEAK, PEAK).astype(np.float32)
    return limited, round(20 * float(np.log10(peak / PEAK)), 2)


def _sliding_minimum(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], width: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the minimum of each `width` neighbours, by doubling the span."""
    span = 1
    while span < width:
        step = min(span, width - span)
        values = np.minimum(values[:-step], values[step:])
        span += step
    return values


def lowpass(samples: Samples, rate: int, cutoff: int) -> Samples:
    """Return a sound without frequencies above `cutoff` Hz (linear phase, 60 dB), e.g. an anchor of MUSHRA."""
    if cutoff >= rate / 2:
        return samples
    places = np.arange(LOWPASS_TAPS) - LOWPASS_TAPS // 2
    taps = np.sinc(2 * cutoff / rate * places) * np.kaiser(LOWPASS_TAPS, 5.65)
    out: Samples = np.convolve(samples, taps / taps.sum(), mode="full").astype(np.float32)
    start = LOWPASS_TAPS // 2
    return out[start : start + len(samples)]


def flac(samples: Samples, rate: int) -> bytes:
    """Return a sound as FLAC of 16 bits, without tags. One column per channel."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return file.getvalue()
