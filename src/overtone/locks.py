"""An exclusive lock on an open file. The lock lasts until the file is closed. Uses `flock`, or `locking` on Windows."""

from __future__ import annotations

import os
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    _BYTE = 1 << 30  # a byte after the file's content, because other processes cannot read a byte that Windows locks

    def _take(file: int) -> None:
        place = os.lseek(file, 0, os.SEEK_CUR)
        try:
            os.lseek(file, _BYTE, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        finally:
            os.lseek(file, place, os.SEEK_SET)
else:

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock(file: IO[str]) -> bool:
    """Lock an open file for this process. Return False at once if another process holds the lock."""
    try:
        _take(file.fileno())
    except OSError:
        return False
    return True
