"""Read the speech of a reply: base64 or raw PCM in, a complete WAV with a correct header out, or a failure."""

from __future__ import annotations

import binascii
import struct

from overtone.errors import AudioError, ModelFailure

MAX_SPEECH_BYTES = 48 * 2**20
_OTHER_CONTAINERS = (b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
# Writers that stream a WAV do not know its length; they write this number or a larger one into the header.
_UNKNOWN_LENGTH = 0x7FFF_0000


def from_base64(text: str, *, pcm_rate: int | None = None) -> bytes:
    """Decode base64 to a WAV. With `pcm_rate`, the bytes are 16-bit PCM at that rate without a header."""
    if len(text) > MAX_SPEECH_BYTES * 4 // 3 + 4:
        raise ModelFailure("too_large", f"the reply's speech is larger than {MAX_SPEECH_BYTES // 2**20} MB")
    if text.startswith("data:"):  # some servers send a data URL
        text = text.partition(",")[2]
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ModelFailure(
            "truncated_audio", f"the reply's speech is not valid base64 ({len(text)} characters): {error}", retry=True
        ) from None
    return pcm_to_wav(data, pcm_rate) if pcm_rate else whole_wav(data)


def pcm_to_wav(data: bytes, rate: int) -> bytes:
    """Put a WAV header before 16-bit little-endian mono PCM."""
    if data[:4] == b"RIFF":  # labelled as PCM, but already a WAV
        return whole_wav(data)
    if len(data) < 2:
        raise ModelFailure("truncated_audio", "the reply's speech contains no samples", retry=True)
    if len(data) % 2:
        raise ModelFailure("truncated_audio", "the reply's speech ends in the middle of a sample", retry=True)
    return _header(rate, len(data)) + data


def _header(rate: int, size: int) -> bytes:
    """Return the 44-byte header of a mono 16-bit WAV."""
    form = struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + form + b"data" + struct.pack("<I", size)


def whole_wav(data: bytes) -> bytes:
    """Return a complete WAV: correct the length in a streamed header, and decode other containers.

    Raises ModelFailure `truncated_audio` if the data chunk has fewer bytes than its header declares.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return _decoded(data)
    at, align = 12, 0
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        body = at + 8
        if name == b"fmt " and body + 16 <= len(data):
            align = int.from_bytes(data[body + 12 : body + 14], "little")
        if name == b"data":
            received = len(data) - body
            if size >= _UNKNOWN_LENGTH or size == 0:
                return _with_length(data, at, received - received % max(align, 1))
            if size > received:
                detail = f"the reply's WAV was cut: {received} of {size} bytes of sound were received"
                raise ModelFailure("truncated_audio", detail, retry=True)
            return data
        at = body + size + size % 2
    raise ModelFailure("truncated_audio", f"the reply's WAV ends before its sound ({len(data)} bytes)", retry=True)


def _with_length(data: bytes, at: int, size: int) -> bytes:
    """Correct the sizes in a WAV's header; `at` is the index of its data chunk."""
    if size <= 0:
        raise ModelFailure("truncated_audio", "the reply's WAV contains no sound", retry=True)
    end = at + 8 + size
    riff = struct.pack("<I", end - 8)
    return data[:4] + riff + data[8 : at + 4] + struct.pack("<I", size) + data[at + 8 : end]


def _decoded(data: bytes) -> bytes:
    if not data.startswith(_OTHER_CONTAINERS):
        start = data[:4].hex()
        detail = f"the reply's speech is not WAV, FLAC, Ogg or MP3 (it begins with {start})"
        raise ModelFailure("malformed", detail, retry=True)
    from overtone import audio

    try:
        samples, rate = audio.decode(data)
        return audio.encode_wav(samples, rate)
    except AudioError as error:
        raise ModelFailure("truncated_audio", f"the reply's speech cannot be decoded: {error}", retry=True) from None
