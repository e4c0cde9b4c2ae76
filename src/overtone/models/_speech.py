"""Speech as it comes back from a model: base64 or raw PCM in, a whole WAV with a true header out, or a failure."""

from __future__ import annotations

import binascii
import struct

from overtone.errors import AudioError, ModelFailure

MAX_SPEECH_BYTES = 48 * 2**20
_OTHER_CONTAINERS = (b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
# Writers that stream a WAV cannot know its length and leave one of these in the header.
_UNKNOWN_LENGTH = 0x7FFF_0000


def from_base64(text: str, *, pcm_rate: int | None = None) -> bytes:
    """The WAV that base64 `text` holds. `pcm_rate` says the bytes are bare 16-bit PCM at that rate."""
    if len(text) > MAX_SPEECH_BYTES * 4 // 3 + 4:
        raise ModelFailure("too_large", f"the reply's speech is larger than {MAX_SPEECH_BYTES // 2**20} MB")
    if text.startswith("data:"):  # some servers send a data URL
        text = text.partition(",")[2]
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ModelFailure(
            "truncated_audio", f"the reply's speech is not whole base64 ({len(text)} characters): {error}", retry=True
        ) from None
    return pcm_to_wav(data, pcm_rate) if pcm_rate else whole_wav(data)


def pcm_to_wav(data: bytes, rate: int) -> bytes:
    """Bare 16-bit little-endian mono PCM with a WAV header in front."""
    if data[:4] == b"RIFF":  # labelled as PCM, yet already a WAV
        return whole_wav(data)
    if len(data) < 2:
        raise ModelFailure("truncated_audio", "the reply's speech holds no samples", retry=True)
    if len(data) % 2:
        raise ModelFailure("truncated_audio", "the reply's speech ends in the middle of a sample", retry=True)
    return _header(rate, len(data)) + data


def _header(rate: int, size: int) -> bytes:
    """A WAV's first 44 bytes: mono, 16-bit."""
    form = struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + form + b"data" + struct.pack("<I", size)


def whole_wav(data: bytes) -> bytes:
    """`data` if it is a complete WAV (a streamed header gets its true length); other containers are decoded.

    A data chunk that promises more bytes than came is truncated_audio: the reply was cut on its way.
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
            came = len(data) - body
            if size >= _UNKNOWN_LENGTH or (size == 0 and came):
                return _with_length(data, at, came - came % max(align, 1))
            if size > came:
                raise ModelFailure(
                    "truncated_audio", f"the reply's WAV was cut: {came} of {size} bytes of sound came", retry=True
                )
            if size == 0:
                raise ModelFailure("truncated_audio", "the reply's WAV holds no sound", retry=True)
            return data
        at = body + size + size % 2
    raise ModelFailure("truncated_audio", f"the reply's WAV ends before its sound ({len(data)} bytes)", retry=True)


def _with_length(data: bytes, at: int, size: int) -> bytes:
    """The WAV with the true sizes in its header; `at` is where its data chunk begins."""
    if size <= 0:
        raise ModelFailure("truncated_audio", "the reply's WAV holds no sound", retry=True)
    end = at + 8 + size
    riff = struct.pack("<I", end - 8)
    return data[:4] + riff + data[8 : at + 4] + struct.pack("<I", size) + data[at + 8 : end]


def _decoded(data: bytes) -> bytes:
    if not data.startswith(_OTHER_CONTAINERS):
        start = data[:4].hex()
        raise ModelFailure("malformed", f"the reply's speech is no WAV, FLAC, Ogg or MP3 (begins {start})", retry=True)
    from overtone import audio

    try:
        samples, rate = audio.decode(data)
        return audio.encode_wav(samples, rate)
    except AudioError as error:
        raise ModelFailure("truncated_audio", f"the reply's speech cannot be decoded: {error}", retry=True) from None
