"""Read an audio file as mono float32 at its own rate or a given one. Limits are checked before memory is allocated."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from overtone.audio._kind import KINDS, media_type
from overtone.audio._wav import AGAIN, Fault, Wav, check_shape, is_wav, parse_wav, wav_samples

Samples: TypeAlias = npt.NDArray[np.float32]

MAX_SECONDS = 600.0
MAX_BYTES = 200_000_000
_FORMATS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3")  # libsndfile's names
_BLOCK = 1 << 16  # frames decoded at once, so that a false length costs one block


def read(
    path: Path | str,
    *,
    rate: int | None = None,
    max_seconds: float = MAX_SECONDS,
    max_bytes: int = MAX_BYTES,
    name: str = "",
) -> tuple[Samples, int]:
    """Read a file; return its samples (mono, full scale ±1) and their rate, resampled to `rate` if given.

    Reads WAV in every common form, also with the header of a stream, and FLAC, Ogg (Vorbis, Opus) and MP3 through
    libsndfile. No other format is opened. Raises AudioError, which names the file and the fault, if the file is
    missing, empty, not audio, truncated, not finite, longer than `max_seconds`, or larger than `max_bytes` as a file or
    decoded. Errors use `name` instead of the path if given.
    """
    called = name or str(path)
    data = read_bytes(path, max_bytes, called)
    return decode(data, rate=rate, max_seconds=max_seconds, max_bytes=max_bytes, name=called)


def decode(
    data: bytes,
    *,
    rate: int | None = None,
    max_seconds: float = MAX_SECONDS,
    max_bytes: int = MAX_BYTES,
    name: str = "sound",
) -> tuple[Samples, int]:
    """Read audio from bytes in memory, as `read` does from files. Errors refer to the bytes as `name`."""
    if not data:
        raise Fault(name, "empty", "the file is empty", AGAIN)
    if len(data) > max_bytes:
        raise _too_large(name, len(data), max_bytes)
    wav = parse_wav(data, name) if is_wav(data) else None
    if wav is not None and wav.direct:
        check_length(wav.frames, wav.rate, max_seconds, max_bytes, name)
        samples, own = wav_samples(data, wav), wav.rate
    else:
        samples, own = _decode_other(data, wav, max_seconds, max_bytes, name)
    if (wav is None or wav.code != 1) and not np.isfinite(samples).all():
        raise Fault(name, "not-finite", "it has NaN or infinite samples", AGAIN)
    if rate is None or rate == own:
        return samples, own
    samples = resample(samples, own, rate)
    if not len(samples):
        raise Fault(name, "empty", f"too short to resample from {own} to {rate} Hz", AGAIN)
    return samples, rate


def resample(samples: npt.ArrayLike, rate: int, to: int) -> Samples:
    """Return the same audio at another rate (soxr, high quality). Works on (frames,) and on (frames, channels)."""
    x: Samples = np.asarray(samples, dtype=np.float32)
    if rate == to or not len(x):
        return x
    import soxr

    out: Samples = soxr.resample(x, rate, to, quality="HQ")
    return out


def read_bytes(path: Path | str, max_bytes: int = MAX_BYTES, name: str = "") -> bytes:
    """Read a regular file's bytes after checking its size. Errors refer to the file by `name`, else by its path."""
    called = name or str(path)
    try:
        info = os.stat(path)  # noqa: PTH116 - os and open take half the time of Path here, the hot path
        if not stat.S_ISREG(info.st_mode):  # opening a pipe or a device could block permanently
            raise Fault(called, "unreadable", "not a regular file")
        if info.st_size > max_bytes:
            raise _too_large(called, info.st_size, max_bytes)
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            data = file.read(info.st_size + 1)
    except FileNotFoundError:
        raise Fault(called, "missing", "there is no such file", "check the data folder and its download") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = getattr(error, "strerror", None) or error  # without the path, which `name` replaces
        raise Fault(called, "unreadable", f"cannot be read: {reason}") from None
    if not data:
        raise Fault(called, "empty", "the file is empty", AGAIN)
    return data


def check_length(frames: int, rate: int, max_seconds: float, max_bytes: int, name: str) -> None:
    """Raise AudioError if the decoded audio would exceed the limits."""
    if frames > max_seconds * rate:
        raise Fault(name, "too-long", f"{frames / rate:.1f} s is too long (limit {max_seconds:g} s)", "cut it")
    if frames * 4 > max_bytes:
        raise _too_large(name, frames * 4, max_bytes)


def _too_large(name: str, size: int, limit: int) -> Fault:
    return Fault(name, "too-long", f"{size / 1e6:.1f} MB is too large (limit {limit / 1e6:g} MB)", "cut the sound")


def _foreign(name: str) -> Fault:
    return Fault(name, "foreign", f"it is not a sound file in {KINDS}", "convert it, or leave it out")


class _Tape(io.BytesIO):
    """A file in memory that ignores a seek to before its beginning, which libsndfile attempts for some broken files."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        try:
            return super().seek(offset, whence)
        except ValueError:
            return self.tell()


def _decode_other(data: bytes, wav: Wav | None, max_seconds: float, max_bytes: int, name: str) -> tuple[Samples, int]:
    import soundfile

    if not media_type(io.BytesIO(data)):
        raise _foreign(name)
    try:
        with soundfile.SoundFile(_Tape(data)) as file:
            if file.format not in _FORMATS:  # after a tag, libsndfile may detect another format
                raise _foreign(name)
            rate, claim = int(file.samplerate), int(file.frames)
            check_shape(file.channels, rate, name)
            if claim < 1 << 62:  # libsndfile's value for "unknown" is above
                check_length(claim, rate, max_seconds, max_bytes, name)
            samples = _decode_blocks(file, rate, max_seconds, max_bytes, name)
            exact = file.format == "FLAC"  # for MP3 and Ogg the length is an estimate
    except soundfile.LibsndfileError as error:
        what = "its samples cannot be decoded" if wav is not None else "it is damaged or truncated"
        raise Fault(name, "unreadable", f"{what} ({str(error.error_string).strip()})", AGAIN) from None
    if not len(samples):
        raise Fault(name, "empty", "it holds no samples", AGAIN)
    if exact and claim < 1 << 62 and len(samples) < claim:
        have, want = len(samples) / rate, claim / rate
        raise Fault(name, "truncated", f"truncated after {have:.2f} of {want:.2f} s", AGAIN)
    return samples, rate


def _decode_blocks(file: Any, rate: int, max_seconds: float, max_bytes: int, name: str) -> Samples:
    blocks: list[Samples] = []
    total = 0
    while True:
        block: Samples = file.read(_BLOCK, dtype="float32", always_2d=True)
        if not len(block):
            break
        total += len(block)
        check_length(total, rate, max_seconds, max_bytes, name)
        with np.errstate(over="ignore", invalid="ignore"):
            blocks.append(block[:, 0].copy() if block.shape[1] == 1 else block.mean(axis=1, dtype=np.float32))
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
