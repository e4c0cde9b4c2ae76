"""Checks of takes in a separate process: the server answers meanwhile, and survives a crash of the decoder."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from overtone.errors import OvertoneError
from overtone.pool import start_worker
from overtone.studio import take_checks
from overtone.studio.take_checks import Checked, TakeError, Wanted

SECONDS = 60.0  # for one take; the first one also loads the recogniser


class TakeChecker:
    """Checks takes one after another. The process starts with the first take and ends with `close`."""

    def __init__(self, *, listen: bool = True) -> None:
        self._listen = listen
        self._pool: ProcessPoolExecutor | None = None

    async def check(self, data: bytes, wanted: Wanted) -> Checked:
        """Return the checks of an upload. Raises TakeError, with the code `busy` if it could not be checked in time."""
        for _ in range(2):  # a process that died is replaced once
            try:
                future = self._processes().submit(_check, data, wanted, self._listen)
                result = await asyncio.wait_for(asyncio.wrap_future(future), SECONDS)
                if isinstance(result, Checked):
                    return result
                raise TakeError(*result)
            except BrokenProcessPool:
                self.close()
            except TimeoutError:
                self._kill()
                break
        raise TakeError("busy", "the recording could not be checked; the page sends it again in a moment")

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _kill(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):  # a pool has no way to end a call that hangs
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_start)
        return self._pool


def _start() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    start_worker()


def _check(data: bytes, wanted: Wanted, listen: bool) -> Checked | tuple[str, str]:
    """Check a take in the process. A TakeError is returned as its parts, because it does not survive pickling."""
    try:
        return take_checks.check(data, wanted, listen=listen)
    except TakeError as error:
        return error.code, str(error)
    except OvertoneError:  # a recogniser that is damaged or of another version must not stop a recording session
        return take_checks.check(data, wanted, listen=False)
