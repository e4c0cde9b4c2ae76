"""How many requests may be in flight. Only errors lower it: halved on overload, one more per round of successes.

It starts at its ceiling. There is no barrier: a slot that frees is taken at once by whoever waits longest.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

COOLDOWN = 1.0  # requests in flight fail together: one overload counts once within this many seconds


class Limiter:
    """Hand out slots. `changed` is called with the new limit whenever it moves."""

    def __init__(self, ceiling: int, changed: Callable[[int, str], None] | None = None) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.in_flight = 0
        self._resume_at = 0.0
        self._last_cut = 0.0
        self._ending = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._changed = changed or (lambda limit, why: None)

    async def acquire(self) -> None:
        """Wait for a slot."""
        while not self._free():
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            except asyncio.CancelledError:
                self._wake()
                raise
        self.in_flight += 1

    def _free(self) -> bool:
        if self._ending:
            return True
        if self._resume_at and time.monotonic() < self._resume_at:
            return False
        return self.in_flight < int(self.limit)

    def release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    def succeeded(self) -> None:
        """One request went well: after as many as the limit, the limit grows by one, up to the ceiling."""
        if self.limit < self.ceiling:
            before = int(self.limit)
            self.limit = min(self.limit + 1 / self.limit, float(self.ceiling))
            if int(self.limit) > before:
                self._changed(int(self.limit), "recovered")
                self._wake()

    def overloaded(self, retry_after: float | None) -> None:
        """The endpoint said it has too much to do: halve the limit, and let nobody start before `retry_after`."""
        now = time.monotonic()
        if retry_after:
            self._resume_at = max(self._resume_at, now + retry_after)
            asyncio.get_running_loop().call_later(retry_after + 0.001, self._wake_all)
        if now - self._last_cut >= COOLDOWN:
            self._last_cut = now
            self.limit = max(1.0, self.limit / 2)
            self._changed(int(self.limit), "overloaded")

    def let_go(self) -> None:
        """Let everybody who waits through at once: the run is ending, and each will find that out by itself."""
        self._ending = True
        self._wake_all()

    def _wake_all(self) -> None:
        for _ in range(len(self._waiting)):
            self._wake()
