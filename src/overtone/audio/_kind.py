"""The audio formats that are opened: WAV, FLAC, Ogg and MP3, recognised by their first bytes, not by file name.

libsndfile reads some thirty formats, but every decoder is another target for a hostile file, and no benchmark needs
more than these four.
"""

from __future__ import annotations

from typing import BinaryIO

KINDS = "WAV, FLAC, Ogg or MP3"
_TAG_HEADER = 10  # bytes of an ID3 tag before its content, and of a footer after it
_MAX_TAGS = 16


def media_type(file: BinaryIO) -> str:
    """Return the media type of an audio file that is open at its beginning; "" for any other file."""
    for _ in range(_MAX_TAGS):
        head = file.read(12)
        if head[:3] != b"ID3":
            return _plain_type(head)
        if len(head) < _TAG_HEADER or max(head[6:10]) > 127:
            return ""
        size = sum(part << 7 * (3 - place) for place, part in enumerate(head[6:10]))  # seven bits each
        footer = _TAG_HEADER if head[5] & 0x10 else 0
        file.seek(_TAG_HEADER + size + footer - len(head), 1)
    return ""


def _plain_type(head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    if head[:4] == b"fLaC":
        return "audio/flac"
    if head[:4] == b"OggS":
        return "audio/ogg"
    return "audio/mpeg" if _is_mp3_frame(head) else ""


def _is_mp3_frame(head: bytes) -> bool:
    """Return whether `head` begins an MPEG audio frame of layer III. AAC frames begin alike, but their layer field is
    0."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    return version != 1 and layer == 1 and head[2] >> 4 != 15 and head[2] >> 2 & 3 != 3
