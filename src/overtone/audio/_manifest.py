"""The SHA-256 of each clip of a built set, from its manifest.

A clip that was changed or swapped can still be decoded, so only its hash reveals the change.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import read_plain

FILE = "manifest.json"
LEFT_OUT = "left_out/"  # folder of clips that failed a gate
MAX_BYTES = 500_000_000


class _Clip(Struct, frozen=True):
    path: str
    sha256: str


class _Manifest(Struct, frozen=True):
    clips: tuple[_Clip, ...] = ()


def manifest_hashes(root: Path) -> dict[str, str]:
    """Return path → SHA-256 of the files that `manifest.json` in `root` lists.

    Returns {} if there is no manifest, or if it has another form, because other data sets may have a file of that name.
    """
    path = root / FILE
    if not path.is_file():
        return {}
    try:
        manifest = msgspec.json.decode(read_plain(path, MAX_BYTES), type=_Manifest)
    except (DataError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return {}
    return {clip.path: clip.sha256 for clip in manifest.clips}
