"""Makes WAV files in every shape, true and broken, for the tests of this room."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def tone(seconds: float = 0.5, rate: int = 16000, hz: float = 220.0, level: float = 0.5) -> npt.NDArray[np.float32]:
    return (level * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def pack(samples: npt.NDArray[np.float32], bits: int, is_float: bool) -> bytes:
    """Interleaved samples as little-endian PCM or float of this width."""
    if is_float:
        return samples.astype(f"<f{bits // 8}").tobytes()
    scaled = np.rint(samples.astype(np.float64) * (2 ** (bits - 1) - 1)).astype(np.int64)
    if bits == 8:
        return (scaled + 128).astype(np.uint8).tobytes()
    return scaled.astype("<i8").reshape(-1, 1).view(np.uint8)[:, : bits // 8].tobytes()


def wav(
    body: bytes,
    *,
    rate: int = 16000,
    channels: int = 1,
    bits: int = 16,
    code: int = 1,
    claim: int | None = None,
    extensible: bool = False,
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A WAV file with whatever its header is told to say."""
    block = channels * (bits // 8)
    fmt = struct.pack(
        "<HHIIHH", 0xFFFE if extensible else code, channels, rate, rate * block & 0xFFFFFFFF, block & 0xFFFF, bits
    )
    if extensible:
        fmt += struct.pack("<HHIH", 22, bits, 0, code) + _GUID_TAIL
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt + before
    chunks += b"data" + struct.pack("<I", len(body) if claim is None else claim) + body + after
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks
