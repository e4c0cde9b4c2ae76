"""The features of clips in an SQLite file, saved while they are computed, so that a stopped fit can resume."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import corpora
from overtone.corpora import Recording
from overtone.embedded import ear_features
from overtone.embedded.speech_states import RATE
from overtone.errors import DataError, OvertoneError
from overtone.heard import sound_hash
from overtone.paths import read_plain, shown
from overtone.pool import spread

_LARGEST = 1 << 30  # bytes of a recording
_SAVE_SECONDS = 2.0
_SHOWN = 5  # unreadable clips that an error names


class Features(Struct, frozen=True):
    """The features of one clip: the hash of its file, that of its samples, and its numbers (None for silence)."""

    file: str
    sound: bytes
    row: NDArray[np.float32] | None


class _Failed(Struct, frozen=True):
    why: str


def features_of(
    recordings: Sequence[Recording], store: Path, jobs: int, progress: Callable[[int, int], None]
) -> list[Features | None]:
    """Return the features of each recording, from the store or computed in `jobs` processes and added to it.

    None stands for a clip that is silent. Raises DataError that names the unreadable clips, when all others are stored.
    """
    identity = ear_features.identity()
    try:
        with _Store(store, identity) as kept:
            found: dict[int, Features] = {}
            for n, recording in enumerate(recordings):
                if (stored := kept.get(_key(recording))) is not None:
                    found[n] = stored
            missing = [(n, recording) for n, recording in enumerate(recordings) if n not in found]
            progress(len(found), len(recordings))
            failed: list[str] = []
            for n, one in spread(_computed, missing, jobs):
                if isinstance(one, _Failed):
                    failed.append(one.why)
                else:
                    found[n] = one
                    kept.put(_key(recordings[n]), one)
                progress(len(found) + len(failed), len(recordings))
    except sqlite3.DatabaseError as error:
        raise DataError(f"{shown(str(store))}: cannot be used to keep features ({error}); delete it, or name another "
                        "file with --features") from None  # fmt: skip
    if failed:
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        raise DataError(f"unreadable clips: {'; '.join(sorted(failed)[:_SHOWN])}{more}; repair or remove them, then "
                        "run the same command again, which continues")  # fmt: skip
    return [found[n] if found[n].row is not None else None for n in range(len(recordings))]


def _key(recording: Recording) -> str:
    """Return a key that changes with the file's bytes, as far as its size and time tell, and with the part of it."""
    path = Path(recording.path)
    try:
        info = path.stat()
    except OSError as error:
        raise DataError(f"{shown(recording.path)}: cannot be read: {error.strerror}") from None
    part = (str(path.absolute()), info.st_size, info.st_mtime_ns, recording.start, recording.end, recording.channel)
    return hashlib.sha256(repr(part).encode()).hexdigest()


def _computed(task: tuple[int, Recording]) -> tuple[int, Features | _Failed]:
    n, recording = task
    try:
        samples = corpora.sound(recording, RATE)
        digest = hashlib.sha256(read_plain(Path(recording.path), _LARGEST)).hexdigest()
    except (OvertoneError, OSError) as error:
        return n, _Failed(shown(str(error)))
    return n, Features(digest, sound_hash(samples), ear_features.features(samples, RATE))


class _Store:
    """The file. Rows that other features left are ignored."""

    def __init__(self, path: Path, identity: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.identity = identity
        self._saved = time.monotonic()
        try:
            self._file = sqlite3.connect(path)
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS features "
                "(clip TEXT, identity TEXT, file TEXT, sound BLOB, row BLOB, PRIMARY KEY (clip, identity))"
            )
        except sqlite3.OperationalError as error:
            raise DataError(
                f"{shown(str(path))}: cannot be opened ({error}); name another file with --features"
            ) from None

    def __enter__(self) -> _Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.commit()  # also when interrupted: what is computed stays
        self._file.close()

    def get(self, clip: str) -> Features | None:
        found = self._file.execute(
            "SELECT file, sound, row FROM features WHERE clip = ? AND identity = ?", (clip, self.identity)
        ).fetchone()
        if found is None:
            return None
        row = None if found[2] is None else np.frombuffer(found[2], "<f4")
        if row is not None and row.size != len(ear_features.FEATURES):
            return None
        return Features(found[0], found[1], row)

    def put(self, clip: str, one: Features) -> None:
        row = None if one.row is None else one.row.astype("<f4").tobytes()
        self._file.execute(
            "INSERT OR REPLACE INTO features VALUES (?, ?, ?, ?, ?)", (clip, self.identity, one.file, one.sound, row)
        )
        if time.monotonic() - self._saved > _SAVE_SECONDS:
            self._file.commit()
            self._saved = time.monotonic()
