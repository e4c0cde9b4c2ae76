"""Offline speech recognition: Moonshine tiny (English), called through the C library inside the moonshine-voice wheel.

The wheel's Python package imports a sound card and a downloader; only its library and its model are used here.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.embedded import require, version
from overtone.errors import OvertoneError

RATE = 16_000
_HEADER = 30_000  # the version of the C interface that the structures below describe
_TINY = 0
_KNOWN = "0.1.0"
_FRAME = RATE // 40
_LONGEST = 15  # seconds; the model was trained on short recordings
_QUIETEST_DB, _STEADY_DB = -60.0, 4.0
_lock = threading.Lock()


class _Line(ctypes.Structure):
    """The C struct transcript_line_t. Only its text is read; the other fields are declared because they determine its
    size."""

    _fields_ = (
        ("text", ctypes.c_char_p),
        ("audio_data", ctypes.c_void_p),
        ("audio_data_count", ctypes.c_size_t),
        ("start_time", ctypes.c_float),
        ("duration", ctypes.c_float),
        ("id", ctypes.c_uint64),
        ("flags", ctypes.c_int8 * 5),
        ("speaker_spans", ctypes.c_void_p),
        ("speaker_span_count", ctypes.c_uint64),
        ("latency_ms", ctypes.c_uint32),
        ("words", ctypes.c_void_p),
        ("word_count", ctypes.c_uint64),
    )


class _Transcript(ctypes.Structure):
    _fields_ = (("lines", ctypes.POINTER(_Line)), ("line_count", ctypes.c_uint64))


class _Option(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_char_p))


class _Recogniser:
    """The loaded model; used only under the lock."""

    def __init__(self) -> None:
        folder = require("moonshine_voice", "the offline recogniser")
        if (installed := version("moonshine-voice")) != _KNOWN:  # another version may have other structures
            raise OvertoneError(
                f"moonshine-voice {_KNOWN} is needed, {installed} is installed; run 'overtone setup local'"
            )
        name = "libmoonshine.dylib" if sys.platform == "darwin" else "libmoonshine.so"
        try:
            self.lib: Any = ctypes.CDLL(str(folder / name))
        except OSError as error:
            raise OvertoneError(f"the recogniser's library cannot be loaded: {error}") from error
        self.lib.moonshine_error_to_string.restype = ctypes.c_char_p
        # Its voice detector carries its state from one recording into the next, so that transcripts would depend on
        # their order; a threshold of 0 turns it off, and `_pieces` does its work.
        options = (_Option * 2)(_Option(b"vad_threshold", b"0.0"), _Option(b"return_audio_data", b"false"))
        model = str(folder / "assets" / "tiny-en").encode()
        self.handle = self.lib.moonshine_load_transcriber_from_files(
            model, _TINY, options, ctypes.c_uint64(len(options)), _HEADER
        )
        if self.handle < 0:
            raise OvertoneError(f"the recogniser's model cannot be loaded: {self._message(self.handle)}")

    def _message(self, code: int) -> str:
        return (self.lib.moonshine_error_to_string(code) or b"unknown error").decode("utf-8", "replace")

    def transcribe(self, samples: NDArray[np.float32]) -> str:
        out = ctypes.POINTER(_Transcript)()
        pointer = samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        code = self.lib.moonshine_transcribe_without_streaming(
            self.handle, pointer, ctypes.c_uint64(len(samples)), RATE, 0, ctypes.byref(out)
        )
        if code < 0:
            raise OvertoneError(f"the recogniser failed: {self._message(code)}")
        lines = [out.contents.lines[i].text or b"" for i in range(out.contents.line_count)] if out else []
        return " ".join(" ".join(line.decode("utf-8", "replace").split()) for line in lines if line.strip())


def _levels(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the level of each 25 ms frame in dB re full scale."""
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME).astype(np.float64)
    return np.asarray(10.0 * np.log10((frames**2).mean(1) + 1e-12))


def _pieces(samples: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Cut a recording into pieces of at most 15 s, at the quietest points. Pieces without speech are dropped.

    Such pieces are too quiet, or steady like noise. For them the model would invent a word.
    """
    pieces = []
    while len(samples) >= _FRAME:
        levels = _levels(samples)
        end = len(samples)
        if end > _LONGEST * RATE:
            low, high = _LONGEST * RATE // _FRAME // 2, _LONGEST * RATE // _FRAME
            end = (low + int(levels[low:high].argmin())) * _FRAME + _FRAME // 2
            levels = levels[: end // _FRAME]
        quiet, loud = np.percentile(levels, (5, 95))
        if loud > _QUIETEST_DB and loud - quiet > _STEADY_DB:
            pieces.append(np.ascontiguousarray(samples[:end]))
        samples = samples[end:]
    return pieces


@functools.cache
def _recogniser() -> _Recogniser:
    return _Recogniser()


def transcribe(samples: NDArray[np.float32], rate: int) -> str:
    """Transcribe a mono recording; "" if no words are heard. The model is loaded at the first call."""
    pieces = _pieces(np.ascontiguousarray(audio.resample(samples, rate, RATE), np.float32))
    with _lock:
        return " ".join(filter(None, (_recogniser().transcribe(piece) for piece in pieces)))


def identity() -> str:
    """Return the identity of a transcript, for descriptions and cache keys."""
    return f"moonshine-tiny-en@{version('moonshine-voice')}"
