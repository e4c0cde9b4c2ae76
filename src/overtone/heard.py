"""A model's statement of what it heard in training, and the mark of a benchmark's clip that was among it.

A clip is recognised by its name in its corpus, which survives trimming, resampling and compression, or by its samples
at 16 kHz, which need no name. Names and samples are stored as short hashes, so the statement contains no path and stays
small.
"""

from __future__ import annotations

import base64
import binascii
import functools
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.paths import read_plain, shown, write_whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT: Literal[1] = 1
FILE = "heard.json.gz"
CLIP, SPEAKER, CORPUS = "clip", "speaker", "corpus"
MARKS = (CLIP, SPEAKER, CORPUS)  # the closest first
ROWS = {mark: f"{mark} heard" for mark in MARKS}  # how tables call what is kept out of the headline
COUNTED = {"": (), CORPUS: (CORPUS,), SPEAKER: (SPEAKER, CORPUS), CLIP: MARKS}  # --heard → marks that count in it
RATE = 16_000  # Hz; the samples that are hashed are mono 16-bit at this rate
_BYTES = 6  # of a hash: among a million clips, one of 300 million others matches by accident
_LIMIT = 1 << 28  # bytes of an unpacked statement
_ENDINGS = frozenset({".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a", ".mp4", ".aac"})
_OTHER_NAMES = {"ravdessspeech": "ravdess", "speechocean762": "speechocean"}


class Origin(Struct, frozen=True):
    """The origin of a clip: its corpus, and if known the speaker's name and the file's name there."""

    corpus: str
    speaker: str = ""
    clip: str = ""  # folders and the ending do not matter


class Mark(Struct, frozen=True):
    """How close an item is to what a model heard: one of MARKS, or "" if it heard nothing of the item."""

    level: str = ""
    what: str = ""  # what it heard, e.g. "ravdess:7"


class HeardCorpus(Struct, frozen=True):
    """The clips that a model heard of one corpus. Clips of a set that Overtone made (`made`) mark only themselves,
    because the parts of such a set already state which voices and texts are new."""

    sounds: frozenset[bytes] = frozenset()
    names: frozenset[bytes] = frozenset()
    speakers: frozenset[str] = frozenset()
    licences: frozenset[str] = frozenset()
    made: bool = False


class HeardInTraining(Struct, frozen=True, dict=True):
    """A model's statement of its training clips. If it is not `complete`, the model began with weights without one."""

    corpora: Mapping[str, HeardCorpus] = {}
    complete: bool = True

    @functools.cached_property
    def sounds(self) -> frozenset[bytes]:
        """The hashes of all clips' samples."""
        return frozenset().union(*(corpus.sounds for corpus in self.corpora.values()))

    def mark(self, origins: Iterable[Origin], sounds: Iterable[bytes] = ()) -> Mark:
        """Return the closest mark of an item, from the origins of its clips and the `sound_hash` of each."""
        marks = [self._mark(origin) for origin in origins]
        if any(sound in self.sounds for sound in sounds):
            marks.append(Mark(CLIP, "the same samples"))
        return min(filter(None, marks), key=lambda mark: MARKS.index(mark.level), default=Mark())

    def _mark(self, origin: Origin) -> Mark | None:
        name, speaker = corpus_key(origin.corpus), speaker_key(origin.speaker)
        corpus = self.corpora.get(name)
        if corpus is None or corpus.made:
            return None
        # Names may repeat in the folders of other speakers, so the speaker belongs to the name if both sides know it.
        known = speaker if corpus.speakers else ""
        if origin.clip and name_hash(name, known, origin.clip) in corpus.names:
            return Mark(CLIP, f"{name}:{_stem(origin.clip)}")
        if speaker and speaker in corpus.speakers:
            return Mark(SPEAKER, f"{name}:{speaker}")
        return Mark(CORPUS, name)

    def statement(self) -> dict[str, Any]:
        """Return the numbers of clips and speakers and the licences of each corpus, as plain data."""
        return {
            "corpora": {
                name: {
                    "clips": len(corpus.sounds),
                    "speakers": len(corpus.speakers),
                    "licences": sorted(corpus.licences),
                    "made": corpus.made,
                }
                for name, corpus in sorted(self.corpora.items())
            },
            "complete": self.complete,
        }


class HeardFile(Struct, frozen=True):
    """The entry of a checkpoint's index for its statement: the file, its SHA-256, and the statement in short."""

    file: str
    sha256: str
    statement: dict[str, Any] = {}


class _Corpus(Struct, frozen=True):
    sounds: str
    names: str
    speakers: tuple[str, ...]
    licences: tuple[str, ...]
    made: bool


class _File(Struct, frozen=True):
    format: Literal[1]
    complete: bool
    corpora: dict[str, _Corpus]


def check_level(level: str) -> None:
    """Raise UsageError unless `level` is one of COUNTED."""
    if level not in COUNTED:
        raise UsageError(f"--heard {shown(level)}: no such level; known: {', '.join(MARKS)}")


# ── making a statement ──────────────────────────────────────────────────────────────────────────────────────────────


def heard_clip(origins: Iterable[Origin], licence: str, sound: bytes, *, made: str = "") -> HeardInTraining:
    """Return the statement of one clip. `made` names the set that made the clip, if it is not a recording."""
    licences = frozenset(filter(None, [licence]))
    sounds = frozenset(filter(None, [sound]))
    if made:
        return HeardInTraining({corpus_key(made): HeardCorpus(sounds, licences=licences, made=True)})
    corpora = {}
    for origin in origins:
        name, speaker = corpus_key(origin.corpus), speaker_key(origin.speaker)
        hashes = [name_hash(name, one, origin.clip) for one in (speaker, "")] if origin.clip else []
        corpora[name] = HeardCorpus(sounds, frozenset(hashes), frozenset(filter(None, [speaker])), licences)
    return HeardInTraining(corpora)


def union(statements: Iterable[HeardInTraining]) -> HeardInTraining:
    """Return what was heard in total. It is complete if all statements are."""
    totals: dict[str, _Total] = {}
    complete = True
    for one in statements:
        complete = complete and one.complete
        for name, corpus in one.corpora.items():
            total = totals.setdefault(name, _Total())
            total.sounds |= corpus.sounds
            total.names |= corpus.names
            total.speakers |= corpus.speakers
            total.licences |= corpus.licences
            total.made = total.made and corpus.made
    return HeardInTraining({name: total.frozen() for name, total in totals.items()}, complete)


class _Total:
    """A corpus to which clips are still added."""

    def __init__(self) -> None:
        self.sounds: set[bytes] = set()
        self.names: set[bytes] = set()
        self.speakers: set[str] = set()
        self.licences: set[str] = set()
        self.made = True

    def frozen(self) -> HeardCorpus:
        speakers, licences = frozenset(self.speakers), frozenset(self.licences)
        return HeardCorpus(frozenset(self.sounds), frozenset(self.names), speakers, licences, self.made)


def corpus_key(name: str) -> str:
    """Return a corpus's name as it is compared: lower case, letters and digits only."""
    key = re.sub(r"[\W_]+", "", name.casefold())
    return _OTHER_NAMES.get(key, key)


def speaker_key(name: str) -> str:
    """Return a speaker's name as it is compared: lower case, without leading zeros, so that 7 is 07."""
    key = name.strip().casefold()
    return (key.lstrip("0") or "0") if key.isdecimal() else key


def name_hash(corpus: str, speaker: str, clip: str) -> bytes:
    """Return the short hash of a clip's name. `corpus` and `speaker` are keys."""
    return _short("\0".join(("name", corpus, speaker, _stem(clip))).encode())


def sound_hash(samples: NDArray[np.float32]) -> bytes:
    """Return the short hash of a clip's samples, mono at 16 kHz, as 16-bit; b"" for silence, which clips share."""
    whole = (samples * 32768).round().clip(-32768, 32767).astype("<i2")
    return _short(b"sound\0" + whole.tobytes()) if whole.any() else b""


def _stem(clip: str) -> str:
    path = PurePosixPath(clip.replace("\\", "/"))
    return (path.stem if path.suffix.casefold() in _ENDINGS else path.name).casefold()


def _short(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:_BYTES]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(heard: HeardInTraining) -> bytes:
    """Return a statement as bytes. Equal statements give equal bytes."""
    corpora = {
        name: _Corpus(
            _joined(corpus.sounds),
            _joined(corpus.names),
            tuple(sorted(corpus.speakers)),
            tuple(sorted(corpus.licences)),
            corpus.made,
        )
        for name, corpus in sorted(heard.corpora.items())
    }
    return gzip.compress(msgspec.json.encode(_File(FORMAT, heard.complete, corpora)), mtime=0)


def decode(data: bytes, where: str) -> HeardInTraining:
    """Return the statement in `data`. Raises DataError; `where` (a file) begins its message."""
    try:
        unpacker = zlib.decompressobj(wbits=31)
        plain = unpacker.decompress(data, _LIMIT)
        if not unpacker.eof:
            raise ValueError("incomplete, or larger than any real one")
        file = msgspec.json.decode(plain, type=_File)
        corpora = {
            name: HeardCorpus(
                _split(one.sounds), _split(one.names), frozenset(one.speakers), frozenset(one.licences), one.made
            )
            for name, one in file.corpora.items()
        }
    except (zlib.error, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DataError(f"{where}: not a statement of what a model heard ({error}); copy it again") from None
    return HeardInTraining(corpora, file.complete)


def write(folder: Path, heard: HeardInTraining) -> HeardFile:
    """Write a statement into a checkpoint's folder, and return its entry for the index."""
    data = encode(heard)
    write_whole(folder / FILE, data)
    return HeardFile(FILE, hashlib.sha256(data).hexdigest(), heard.statement())


def read(folder: Path, entry: HeardFile) -> HeardInTraining:
    """Read the statement of a checkpoint. Raises DataError if the file is missing or changed."""
    path = folder / Path(entry.file).name
    where = shown(str(path))
    data = read_plain(path, _LIMIT)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise DataError(f"{where}: changed since it was written (different SHA-256); copy the checkpoint again")
    return decode(data, where)


def _joined(hashes: frozenset[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(hashes))).decode()


def _split(text: str) -> frozenset[bytes]:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if len(data) % _BYTES:
        raise ValueError(f"a list of hashes has {len(data)} bytes")
    return frozenset(data[at : at + _BYTES] for at in range(0, len(data), _BYTES))
