"""The lock that a server holds on its study: a second server would end the owner's link of the first."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from overtone import locks
from overtone.errors import StoreError
from overtone.paths import shown
from overtone.studio.study import Study

_LONGEST = 300  # bytes of the description that are read


def lock_file(study: Study) -> Path:
    """Return the file beside the study file that a server locks. It stays after the server has ended."""
    return study.path.with_name(f"{study.path.stem}-serving.lock")


@contextlib.contextmanager
def serving_alone(study: Study) -> Iterator[Callable[[str], None]]:
    """Hold the study's lock inside this context. The yielded function stores the address for the error of others.

    Raises StoreError, with the process and its address, if another process serves the study.
    """
    path = lock_file(study)
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{shown(str(path))}: cannot be written ({error.strerror}); a server needs this file"
        ) from None
    with file:
        if not locks.lock(file):
            file.seek(0)
            process, _, address = file.read(_LONGEST).strip().partition(" ")
            at = f" at {shown(address)}" if address else ""
            raise StoreError(
                f"{shown(str(study.path))} is being served by another process (pid {shown(process) or 'unknown'}){at}; "
                "stop that server first, with Ctrl-C in its terminal"
            )

        def write(address: str) -> None:
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()} {address}")
            file.flush()

        try:
            write("")
            yield write
        finally:
            file.truncate(0)
