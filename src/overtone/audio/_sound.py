"""Audio as it is sent to a model: mono 16-bit PCM WAV with a correct 44-byte header, by default at the file's own
rate."""

from __future__ import annotations

import contextlib
import os
from hashlib import sha256
from pathlib import Path

from overtone.audio._read import MAX_BYTES, MAX_SECONDS, check_length, decode, read_bytes, resample
from overtone.audio._wav import (
    AGAIN,
    HEADER_BYTES,
    PCM,
    Fault,
    encode_wav,
    is_wav,
    parse_wav,
    plain_seconds,
    wav_header,
)
from overtone.schema import Sound

_HEAD_BYTES = 4096


def load_sound(
    source: Path | str | bytes,
    *,
    rate: int | None = None,
    max_rate: int | None = None,
    max_seconds: float = MAX_SECONDS,
    max_bytes: int = MAX_BYTES,
    name: str = "",
) -> Sound:
    """Return the audio of a file, or of a file's bytes, ready to send.

    A mono 16-bit PCM WAV is sent unchanged, byte for byte; if its header is wrong or longer, only the samples are kept.
    Anything else is decoded and mixed to mono. The audio is resampled only if `rate` is given or the file's own rate is
    above `max_rate`. `sha256` is the hash of the bytes to send. Raises AudioError as `read` does.
    """
    called = name or ("sound" if isinstance(source, bytes) else str(source))
    data = source if isinstance(source, bytes) else read_bytes(source, max_bytes, called)
    if is_wav(data) and len(data) <= max_bytes:
        wav = parse_wav(data, called)
        if wav.code == PCM and wav.bits == 16 and wav.channels == 1 and wav.rate == _wanted(wav.rate, rate, max_rate):
            check_length(wav.frames, wav.rate, max_seconds, max_bytes, called)
            header = wav_header(wav.size, wav.rate)
            if len(data) != HEADER_BYTES + wav.size or data[:HEADER_BYTES] != header:
                data = header + data[wav.start : wav.start + wav.size]
            return _sound(data, wav.frames / wav.rate)
    samples, own = decode(data, max_seconds=max_seconds, max_bytes=max_bytes, name=called)
    wanted = _wanted(own, rate, max_rate)
    samples = resample(samples, own, wanted)
    if not len(samples):
        raise Fault(called, "empty", f"too short to resample to {wanted} Hz", AGAIN)
    return _sound(encode_wav(samples, wanted), len(samples) / wanted)


def _wanted(own: int, rate: int | None, max_rate: int | None) -> int:
    return rate or (min(own, max_rate) if max_rate else own)


def probe(path: Path | str, *, name: str = "") -> float:
    """Return the length of an audio file in seconds, from its header if that can be trusted, else by decoding it.

    Raises AudioError as `load_sound` does for faults found by decoding; the samples of a plain WAV are not checked.
    """
    called = name or str(path)
    claimed = None
    if Path(path).is_file():  # opening a pipe could block permanently
        with contextlib.suppress(OSError), Path(path).open("rb") as file:  # decoding reports what is wrong
            size = os.fstat(file.fileno()).st_size
            claimed = plain_seconds(file.read(_HEAD_BYTES), size) if size <= MAX_BYTES else None
    if claimed is None or claimed > MAX_SECONDS:
        return load_sound(path, name=called).seconds
    return claimed


def silence(seconds: float, rate: int = 16_000) -> Sound:
    """Return digital silence of this length, at least one frame. A model gets it in place of a clip."""
    frames = max(1, round(seconds * rate))
    return _sound(wav_header(frames * 2, rate) + bytes(frames * 2), frames / rate)


def _sound(wav: bytes, seconds: float) -> Sound:
    return Sound(wav, sha256(wav).hexdigest(), seconds)
