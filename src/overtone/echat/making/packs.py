"""Which set a folder is of, in a file of its own: what lies in another set's pack would be lost under ours, and our
records over its clips would name wrong sounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from overtone.echat.data.containers import PACK, ClipWriter
from overtone.errors import UsageError
from overtone.paths import sha256, shown, write_whole

MARK = "set.json"

Inputs = dict[str, str | int | bool]  # what a set is made from, by name


class Mark(Struct, frozen=True):
    """What `set.json` holds."""

    of: Inputs = {}
    sounds: str = ""  # which of them, in which takes; "" while they are written


def mark(folder: Path, of: Inputs, sounds: str = "") -> None:
    write_whole(folder / MARK, msgspec.json.encode(Mark(of, sounds)) + b"\n")


def marked(folder: Path) -> Mark:
    """What a folder is known to be of."""
    try:
        return msgspec.json.decode((folder / MARK).read_bytes(), type=Mark)
    except (OSError, msgspec.DecodeError):
        return Mark()


def differences(there: Inputs, asked: Inputs) -> list[str]:
    """Why a set is another than the one that is asked for."""
    return [f"its {key} is {old}, not {asked.get(key, 'none')}" for key, old in there.items() if asked.get(key) != old]


def check(pack: str, parts: Iterable[str], of: Inputs, before: Mapping[str, str]) -> None:
    """Refuse packs of another set, and those that nobody knows; `before` is the SHA-256 of what our manifest names."""
    for folder in (Path(pack) / part for part in parts):
        if not pack or not any((folder / name).exists() for name in PACK):
            continue
        there = marked(folder).of
        told = "; ".join(differences(there, of))
        if not there and before.get(f"pack/{folder.name}/{PACK[0]}") != _digest(folder / PACK[0]):
            told = "it does not say which set it is of"
        if told:
            raise UsageError(
                f"{shown(str(folder))} holds a pack that would be lost: {told}; give another --pack, or move it away"
            )


def _digest(path: Path) -> str:
    return sha256(path) if path.is_file() else "none"


@contextmanager
def clips(folder: Path, of: Inputs, sounds: str) -> Iterator[ClipWriter]:
    """A pack's clips, which take the place of those that are there when all are written."""
    writer = ClipWriter(folder)
    try:
        yield writer
    except BaseException:
        writer.drop()
        raise
    mark(folder, of)
    writer.close()
    mark(folder, of, sounds)


def whole(folder: Path, of: Inputs, sounds: str, count: int) -> bool:
    """Whether these clips are there; records are written again each time."""
    if marked(folder) != Mark(of, sounds):
        return False
    try:
        offsets = np.load(folder / PACK[2], allow_pickle=False)
        size = (folder / PACK[1]).stat().st_size
    except (OSError, ValueError, EOFError):
        return False
    return bool(len(offsets) == count + 1 and offsets[-1] * 2 == size)
