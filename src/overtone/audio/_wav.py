"""WAV headers: find the samples in a RIFF file, even if its header is wrong, and write a correct header.

A streamed file has a header that claims a `data` size of 0, or of nearly 2^31 or 2^32 bytes; then the file's own size
decides. Any other claim beyond the end of the file means that the file was truncated, and raises an error.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.errors import AudioError
from overtone.paths import shown

HEADER_BYTES = 44
AGAIN = "make or copy it again; 'overtone data check' on its folder lists such files"
MAX_CHANNELS = 64
MIN_RATE, MAX_RATE = 1_000, 768_000
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_STREAMED_FROM = 0x7FFFF000  # writers that cannot seek put 0, 2^31 or 2^32 here, minus the length of a header
_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_FMT = struct.Struct("<HHIIHH")


class Fault(AudioError):
    """An AudioError with the file, the problem and advice; `code` is the code of the finding in a folder check."""

    def __init__(self, name: str, code: str, what: str, advice: str = "") -> None:
        super().__init__(f"{shown(name)}: {what}" + (f"; {advice}" if advice else ""))
        self.code, self.what, self.advice = code, what, advice


class Wav(Struct, frozen=True):
    """The contents of a WAV header, with the `data` size clamped to whole frames."""

    code: int  # PCM, FLOAT, or another format's number
    channels: int
    rate: int
    bits: int
    start: int  # where the samples begin
    size: int  # their number of bytes
    streamed: bool  # the header was written before the length was known

    @property
    def frame_bytes(self) -> int:
        return self.channels * ((self.bits + 7) // 8)

    @property
    def frames(self) -> int:
        return self.size // self.frame_bytes if self.frame_bytes else 0

    @property
    def direct(self) -> bool:
        """Whether NumPy alone can read the samples."""
        return (self.code == PCM and self.bits in (8, 16, 24, 32)) or (self.code == FLOAT and self.bits in (32, 64))


def is_wav(data: bytes) -> bool:
    """Return whether these bytes begin a little-endian RIFF/WAVE file."""
    return data[:4] == b"RIFF" and data[8:12] == b"WAVE"


def parse_wav(data: bytes, name: str) -> Wav:
    """Walk the chunks up to `data`. Raises AudioError naming `name` and what is wrong with its header."""
    total = len(data)
    at, code, channels, rate, bits = 12, 0, 0, 0, 0
    while at + 8 <= total:
        kind, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if kind == b"fmt ":
            if size < 16 or at + 16 > total:
                raise Fault(name, "truncated", "the fmt chunk is cut short", AGAIN)
            code, channels, rate, _, _, bits = _FMT.unpack_from(data, at)
            if code == EXTENSIBLE:
                if size < 40 or at + 40 > total:
                    raise Fault(name, "truncated", "the extensible fmt chunk is cut short", AGAIN)
                code = int.from_bytes(data[at + 24 : at + 26], "little") if data[at + 26 : at + 40] == _GUID_TAIL else 0
        elif kind == b"data":
            if channels == rate == bits == code == 0:
                raise Fault(name, "unreadable", "the data chunk comes before any fmt chunk", AGAIN)
            return _clamped(data, at, size, Wav(code, channels, rate, bits, at, 0, False), name)
        at += size + (size & 1)
    raise Fault(name, "truncated", "there is no data chunk", AGAIN)


def plain_seconds(head: bytes, total: int) -> float | None:
    """Return the length of a PCM WAV of `total` bytes that begins with `head`; None if that is uncertain."""
    at, shape = 12, None
    while is_wav(head) and at + 8 <= len(head):
        kind, size = struct.unpack_from("<4sI", head, at)
        at += 8
        if kind == b"fmt " and size >= 16 and at + 16 <= len(head):
            shape = _FMT.unpack_from(head, at)
        elif kind == b"data":
            if shape is None or not 0 < size <= total - at:
                return None
            code, channels, rate, _, _, bits = shape
            usual = code == PCM and bits in (8, 16, 24, 32) and 1 <= channels <= MAX_CHANNELS
            whole = size // (channels * bits // 8) if usual and MIN_RATE <= rate <= MAX_RATE else 0
            return whole / rate if whole else None
        at += size + (size & 1)
    return None


def _clamped(data: bytes, at: int, claim: int, wav: Wav, name: str) -> Wav:
    check_shape(wav.channels, wav.rate, name)
    left = len(data) - at
    size, streamed = claim, False
    if (claim == 0 and not _chunk_follows(data, at)) or (claim >= _STREAMED_FROM and claim > left):
        size, streamed = left, left > 0
    elif claim > left and left:
        what = f"truncated: {left} of the {claim} bytes of sound that its header promises are there"
        raise Fault(name, "truncated", what, AGAIN)
    if wav.frame_bytes:
        size -= size % wav.frame_bytes
    if size == 0 or not left:
        raise Fault(name, "empty", "the data chunk is empty", AGAIN)
    return Wav(wav.code, wav.channels, wav.rate, wav.bits, at, size, streamed)


def _chunk_follows(data: bytes, at: int) -> bool:
    """Return whether a complete chunk begins at `at`. If so, a `data` size of 0 means that there are no samples."""
    if at + 8 > len(data):
        return False
    kind, size = struct.unpack_from("<4sI", data, at)
    return all(32 <= c < 127 for c in kind) and at + 8 + size <= len(data) and len(data) - (at + 8 + size) in (0, 1)


def check_shape(channels: int, rate: int, name: str) -> None:
    """Raise AudioError for a rate or channel count that no recording has."""
    if rate == 0:
        raise Fault(name, "wrong-rate", "its sampling rate is 0", AGAIN)
    if not MIN_RATE <= rate <= MAX_RATE:
        raise Fault(name, "wrong-rate", f"its sampling rate is {rate} Hz, outside {MIN_RATE} to {MAX_RATE}", AGAIN)
    if not 1 <= channels <= MAX_CHANNELS:
        raise Fault(name, "unreadable", f"it claims {channels} channels; 1 to {MAX_CHANNELS} can be read", AGAIN)


def wav_samples(data: bytes, wav: Wav) -> npt.NDArray[np.float32]:
    """Return the samples of a `direct` WAV as mono float32, full scale ±1; channels are averaged."""
    count = wav.frames * wav.channels
    scale = 1.0
    raw: npt.NDArray[Any]
    if wav.code == FLOAT:
        raw = np.frombuffer(data, "<f4" if wav.bits == 32 else "<f8", count, wav.start)
    elif wav.bits == 16:
        raw, scale = np.frombuffer(data, "<i2", count, wav.start), 2.0**-15
    elif wav.bits == 32:
        raw, scale = np.frombuffer(data, "<i4", count, wav.start), 2.0**-31
    elif wav.bits == 24:
        wide = np.zeros((count, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8, count * 3, wav.start).reshape(-1, 3)
        raw, scale = wide.view("<i4")[:, 0], 2.0**-31
    else:
        raw, scale = np.frombuffer(data, np.uint8, count, wav.start).astype(np.int16) - 128, 2.0**-7
    with np.errstate(over="ignore", invalid="ignore"):  # the caller rejects samples that are not finite
        # Summing columns is several times faster than mean(axis=1) over a short axis.
        mono = raw[:: wav.channels].astype(np.float32)
        for channel in range(1, wav.channels):
            mono += raw[channel :: wav.channels].astype(np.float32)
        if scale != 1.0 or wav.channels > 1:
            mono *= np.float32(scale / wav.channels)
    return mono


def wav_header(data_bytes: int, rate: int) -> bytes:
    """Return the 44-byte header for `data_bytes` of mono 16-bit PCM."""
    return _HEADER.pack(
        b"RIFF", 36 + data_bytes, b"WAVE", b"fmt ", 16, PCM, 1, rate, rate * 2, 2, 16, b"data", data_bytes
    )


def encode_wav(samples: npt.ArrayLike, rate: int) -> bytes:
    """Encode mono samples (full scale ±1) as a 16-bit PCM WAV with a correct header.

    Reading the result back gives the same 16-bit values; values beyond full scale are clipped. Raises AudioError for
    samples that are not finite or not one-dimensional.
    """
    x = np.asarray(samples, dtype=np.float32)
    if x.ndim != 1:
        raise AudioError(f"cannot write audio of shape {x.shape}; average its channels first")
    if not np.isfinite(x).all():
        raise AudioError("cannot write audio with NaN or infinite samples")
    pcm = np.clip(np.rint(x * np.float32(32768.0)), -32768, 32767).astype("<i2")
    body: bytes = pcm.tobytes()
    return wav_header(len(body), rate) + body


def stereo_wav(left: bytes, right: bytes, rate: int) -> bytes:
    """Return two channels of 16-bit PCM as one WAV; silence follows the shorter channel."""
    frames = max(len(left), len(right)) // 2
    both = np.zeros((frames, 2), "<i2")
    for channel, pcm in enumerate((left, right)):
        both[: len(pcm) // 2, channel] = np.frombuffer(pcm[: len(pcm) // 2 * 2], "<i2")
    size = both.nbytes
    header = _HEADER.pack(b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, PCM, 2, rate, rate * 4, 4, 16, b"data", size)
    return header + both.tobytes()
