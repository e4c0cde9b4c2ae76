"""Record in `set.json` which set a pack or folder belongs to.

Without this file, a build could overwrite another set's pack, or combine its own records with another set's clips.
"""

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

Inputs = dict[str, str | int | bool]  # the inputs that identify a set, by name


class Mark(Struct, frozen=True):
    """The contents of `set.json`."""

    of: Inputs = {}
    sounds: str = ""  # identifies the clips and their takes; "" while they are being written


def mark(folder: Path, of: Inputs, sounds: str = "") -> None:
    """Write `set.json`."""
    write_whole(folder / MARK, msgspec.json.encode(Mark(of, sounds)) + b"\n")


def marked(folder: Path) -> Mark:
    """Read `set.json`. Returns an empty Mark if it is missing or unreadable."""
    try:
        return msgspec.json.decode((folder / MARK).read_bytes(), type=Mark)
    except (OSError, msgspec.DecodeError):
        return Mark()


def differences(there: Inputs, asked: Inputs) -> list[str]:
    """Return a message for each input in which an existing set differs from the requested one."""
    return [f"its {key} is {old}, not {asked.get(key, 'none')}" for key, old in there.items() if asked.get(key) != old]


def check(pack: str, parts: Iterable[str], of: Inputs, before: Mapping[str, str]) -> None:
    """Raise an error if a pack belongs to another or an unknown set. `before` has the SHA-256 of the files in our
    manifest."""
    for folder in (Path(pack) / part for part in parts):
        if not pack or not any((folder / name).exists() for name in PACK):
            continue
        there = marked(folder).of
        why = "; ".join(differences(there, of))
        if not there and before.get(f"pack/{folder.name}/{PACK[0]}") != _digest(folder / PACK[0]):
            why = "it does not record which set it belongs to"
        if why:
            raise UsageError(
                f"{shown(str(folder))} holds another pack: {why}; give another --pack, or move the old one"
            )


def _digest(path: Path) -> str:
    return sha256(path) if path.is_file() else "none"


@contextmanager
def clips(folder: Path, of: Inputs, sounds: str) -> Iterator[ClipWriter]:
    """Write the clips of a pack. They replace the existing clips once all are written."""
    writer = ClipWriter(folder)
    try:
        yield writer
    except BaseException:
        writer.drop()
        raise
    mark(folder, of)
    writer.close()
    mark(folder, of, sounds)


def complete(folder: Path, of: Inputs, sounds: str, count: int) -> bool:
    """Return whether a pack has exactly these clips. Records are not checked, because every build rewrites them."""
    if marked(folder) != Mark(of, sounds):
        return False
    try:
        offsets = np.load(folder / PACK[2], allow_pickle=False)
        size = (folder / PACK[1]).stat().st_size
    except (OSError, ValueError, EOFError):
        return False
    return bool(len(offsets) == count + 1 and offsets[-1] * 2 == size)
