"""Offline speech: espeak-ng, loaded at run time through ctypes. The same text and settings give the same samples.

espeak-ng is GPL-3; nothing of it is linked into or shipped with this package. Its state is global to a process, so
one lock serialises every call.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone.embedded import require, version
from overtone.errors import OvertoneError, UsageError

Samples = NDArray[np.float32]

_SYNCHRONOUS, _PHONEMES, _DONT_EXIT = 2, 0x0001, 0x8000
_LIST_END, _PHONEME = 0, 7  # types of an event
_UTF8 = 1
_RATE, _VOLUME, _PITCH, _RANGE, _GAP = 1, 2, 3, 4, 7
_PATH_LIMIT = 120  # espeak copies the data path into a buffer of 160 bytes and appends file names to it
_lock = threading.Lock()
_links: list[tempfile.TemporaryDirectory[str]] = []  # kept alive until the process ends


class _Voice(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.POINTER(ctypes.c_char)),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("xx1", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("name", ctypes.c_char * 8),  # of a phoneme; its stress comes first
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(frozen=True)
class Phoneme:
    """A phoneme by espeak-ng's own name, such as `s`, `'eI` (stressed) or `_` (a pause), and where it begins."""

    name: str
    at: int  # the first sample


@dataclass(frozen=True)
class VoiceInfo:
    """A voice as its engine names it; pass `name` to `speak`."""

    name: str
    title: str
    gender: str  # male, female or ""
    file: str  # its file in the engine's data; the only name that the engine always accepts


class _Engine:
    """The library, loaded again for each utterance and unloaded after it; used only under the lock.

    espeak-ng keeps phases, flutter and noise from one utterance to the next, even through espeak_Terminate. Only a
    newly loaded library and fixed seeds make an utterance independent of earlier ones. It costs 3 ms.
    """

    def __init__(self) -> None:
        folder = require("espeakng_loader", "the offline voices")
        from espeakng_loader import get_data_path, get_library_path

        self.data = Path(get_data_path())
        self._libc: Any = ctypes.CDLL(None)
        try:
            self.lib: Any = ctypes.CDLL(get_library_path())
        except OSError as error:
            raise OvertoneError(f"espeak-ng in {folder} cannot be loaded: {error}") from error
        data = str(_short(self.data)).encode()
        self.rate = int(self.lib.espeak_Initialize(_SYNCHRONOUS, 0, data, _PHONEMES | _DONT_EXIT))
        if self.rate <= 0:
            raise OvertoneError(f"espeak-ng could not read its data in {self.data}")
        self.chunks: list[bytes] = []
        self.phonemes: list[Phoneme] = []
        self._callback = _Callback(self._collect)  # a reference must outlive the library's use of it
        self.lib.espeak_SetSynthCallback(self._callback)

    def __enter__(self) -> _Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.lib.espeak_Terminate()
        self._libc.dlclose(ctypes.c_void_p(self.lib._handle))

    def _collect(self, wav: Any, count: int, events: Any) -> int:
        if wav and count > 0:
            self.chunks.append(ctypes.string_at(wav, count * 2))
        at = 0
        while events and events[at].type != _LIST_END:
            if events[at].type == _PHONEME:
                self.phonemes.append(Phoneme(events[at].name.decode("utf-8", "replace"), events[at].sample))
            at += 1
        return 0

    def voices(self) -> dict[str, VoiceInfo]:
        self.lib.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        voices: dict[str, VoiceInfo] = {}
        array = self.lib.espeak_ListVoices(None)
        index = 0
        while array[index]:
            voice = array[index].contents
            language = ctypes.string_at(ctypes.addressof(voice.languages.contents) + 1).decode()
            title = (voice.name or b"").decode()
            gender = {1: "male", 2: "female"}.get(voice.gender, "")
            voices.setdefault(language, VoiceInfo(language, title, gender, (voice.identifier or b"").decode()))
            index += 1
        return voices

    def speak(self, data: bytes, voice: str, rate: int, pitch: int, span: int, gap: int) -> Samples:
        self._libc.srand(1)  # two sources of noise: the C library's and its own, which starts from the clock
        self.lib.espeak_ng_SetRandSeed(ctypes.c_long(1))
        if self.lib.espeak_SetVoiceByName(voice.encode()) != 0:
            raise OvertoneError(f"espeak-ng refused the voice {voice!r}")
        for parameter, value in ((_RATE, rate), (_VOLUME, 100), (_PITCH, pitch), (_RANGE, span), (_GAP, gap)):
            self.lib.espeak_SetParameter(parameter, value, 0)
        buffer = ctypes.create_string_buffer(data)
        status = self.lib.espeak_Synth(buffer, ctypes.c_size_t(len(buffer)), 0, 0, 0, _UTF8, None, None)
        if status != 0:
            raise OvertoneError(f"espeak-ng failed with status {status} on {data[:60]!r}")
        return np.frombuffer(b"".join(self.chunks), "<i2").astype(np.float32) / 32768.0


def _short(data: Path) -> Path:
    """Return a path of the data folder that is short enough for espeak-ng. A link is created if necessary."""
    if len(str(data).encode()) <= _PATH_LIMIT:
        return data
    link = tempfile.TemporaryDirectory(prefix="overtone-")
    _links.append(link)
    target = Path(link.name) / "espeak-ng-data"
    target.symlink_to(data, target_is_directory=True)
    return target


@functools.cache
def _catalogue() -> tuple[dict[str, VoiceInfo], tuple[str, ...]]:
    """Return every voice by language, and the names of the variants; read once."""
    with _lock, _Engine() as engine:
        return engine.voices(), tuple(sorted(p.name for p in (engine.data / "voices" / "!v").iterdir() if p.is_file()))


def _file_of(voice: str) -> str:
    base, plus, variant = voice.partition("+")
    known, names = _catalogue()
    if base not in known:
        raise UsageError(f"unknown voice {voice!r}; a voice is a language such as 'en-us', or 'en-us+f3'")
    if plus and variant not in names:
        raise UsageError(f"unknown variant {variant!r} of voice {base!r}; one of {', '.join(names)}")
    return f"{known[base].file}{plus}{variant}"


def speak(
    text: str,
    *,
    voice: str = "en-us",
    rate_wpm: int = 175,
    pitch: int = 50,
    range: int = 50,
    gap: int = 0,
) -> tuple[Samples, int]:
    """Speak a text. Return its samples in [-1, 1] and their rate.

    Rate is 80 to 450 words per minute, pitch and range 0 to 99. `gap` is a pause between words in steps of about 10 ms,
    0 to 50.
    """
    samples, sample_rate, _ = speak_phonemes(text, voice=voice, rate_wpm=rate_wpm, pitch=pitch, range=range, gap=gap)
    return samples, sample_rate


def speak_phonemes(
    text: str,
    *,
    voice: str = "en-us",
    rate_wpm: int = 175,
    pitch: int = 50,
    range: int = 50,
    gap: int = 0,
) -> tuple[Samples, int, tuple[Phoneme, ...]]:
    """Speak a text as `speak` does. Return its samples, their rate, and its phonemes in order."""
    limits = (("rate_wpm", rate_wpm, 80, 450), ("pitch", pitch, 0, 99), ("range", range, 0, 99), ("gap", gap, 0, 50))
    for name, value, low, high in limits:
        if not low <= value <= high:
            raise UsageError(f"{name} must be {low} to {high}, not {value}")
    data = text.replace("\0", " ").encode("utf-8", "replace")
    file = _file_of(voice)
    with _lock, _Engine() as engine:
        samples = engine.speak(data, file, rate_wpm, pitch, range, gap)
        return samples, engine.rate, tuple(engine.phonemes)


def check(voice: str) -> None:
    """Raise UsageError if a voice or variant does not exist."""
    _file_of(voice)


def identity() -> str:
    """Return the identity of a voice's audio, for manifests and cache keys."""
    return f"espeak-ng@{version('espeakng-loader')}"
