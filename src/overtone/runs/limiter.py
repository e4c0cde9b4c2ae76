"""Limit the number of requests in flight. It starts at a ceiling, is halved on overload, and grows with successes.

A free slot goes at once to the request that has waited longest. All requests to one endpoint share its limit, so a
limit that an overload has lowered also applies to the command's other runs and judges, and to later ones.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

COOLDOWN = 1.0  # seconds in which several failures count as one overload, because requests in flight fail together


class Line:
    """The queue of one endpoint: its limit, the requests in flight and those waiting. It is shared between runs."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.in_flight = 0
        self.resume_at = 0.0
        self.last_cut = 0.0
        self.led = False  # whether a run has set the ceiling
        self.waiting: deque[tuple[Limiter, asyncio.Future[None]]] = deque()

    def lift(self, ceiling: int) -> None:
        """Change the ceiling. A limit that an overload has lowered stays low."""
        self.limit = float(ceiling) if self.limit >= self.ceiling else min(self.limit, float(ceiling))
        self.ceiling = ceiling
        self.serve()

    def pause(self) -> None:
        """Schedule the waiting requests for the end of the pause."""
        rest = self.resume_at - time.monotonic()
        if rest > 0:
            asyncio.get_running_loop().call_later(rest + 0.001, self.serve)

    @property
    def free(self) -> bool:
        return self.in_flight < int(self.limit) and not time.monotonic() < self.resume_at

    def serve(self) -> None:
        """Give free slots to the requests that have waited longest."""
        for limiter, future in tuple(self.waiting):
            if not self.free:
                return
            if limiter.in_flight < limiter.ceiling and not future.done():
                self.give(limiter, future)

    def give(self, limiter: Limiter, future: asyncio.Future[None]) -> None:
        self.waiting.remove((limiter, future))
        limiter.take()
        future.set_result(None)


class Limiter:
    """Gives slots to one asker: at most `ceiling`, and no more than the endpoint's queue has free.

    `changed` is called with the new limit whenever one of its own requests changes the limit.
    """

    def __init__(
        self, ceiling: int, changed: Callable[[int, str], None] | None = None, line: Line | None = None
    ) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self.line = line or Line(ceiling)
        self._ending = False
        self._changed = changed or (lambda limit, why: None)
        self.line.pause()  # a Retry-After of an earlier run may still apply

    @property
    def limit(self) -> float:
        return self.line.limit

    async def acquire(self) -> None:
        """Wait for a slot."""
        if self._ending or (self.in_flight < self.ceiling and self.line.free):
            self.take()
            return
        future = asyncio.get_running_loop().create_future()
        self.line.waiting.append((self, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self.line.waiting.remove((self, future))
            else:  # it was given a slot at the same moment
                self.release()
            raise

    def take(self) -> None:
        self.in_flight += 1
        self.line.in_flight += 1

    def release(self) -> None:
        self.in_flight -= 1
        self.line.in_flight -= 1
        self.line.serve()

    def succeeded(self) -> None:
        """Count a successful request. After as many as the limit, the limit grows by one, up to the ceiling."""
        line = self.line
        if line.limit < line.ceiling:
            before = int(line.limit)
            line.limit = min(line.limit + 1 / line.limit, float(line.ceiling))
            if int(line.limit) > before:
                self._changed(int(line.limit), "recovered")
                line.serve()

    def overloaded(self, retry_after: float | None) -> None:
        """Lower the limit by half after an overload, and start no request for `retry_after` seconds."""
        now = time.monotonic()
        line = self.line
        if retry_after:
            line.resume_at = max(line.resume_at, now + retry_after)
            line.pause()
        if now - line.last_cut >= COOLDOWN:
            line.last_cut = now
            line.limit = max(1.0, line.limit / 2)
            self._changed(int(line.limit), "overloaded")

    def let_go(self) -> None:
        """Release all waiting requests at once, because the run is ending. Each then checks that and stops."""
        self._ending = True
        for limiter, future in tuple(self.line.waiting):
            if limiter is self and not future.done():
                self.line.give(limiter, future)


class Limiters:
    """The queues of one command, by endpoint. A model without an endpoint gets its own queue."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    def limiter(
        self, endpoint: str, ceiling: int, changed: Callable[[int, str], None] | None = None, *, leads: bool = True
    ) -> Limiter:
        """Return a limiter on the endpoint's queue.

        If `leads` is true, as for a run, its ceiling applies to the whole queue, also for judges. Without a run, the
        highest ceiling of the judges applies.
        """
        if not endpoint:
            return Limiter(ceiling, changed)
        line = self.lines.setdefault(endpoint, Line(ceiling))
        if leads:
            line.led = True
            line.lift(ceiling)
        elif not line.led:
            line.lift(max(ceiling, line.ceiling))
        limiter = Limiter(ceiling, changed, line)
        if leads and line.limit < ceiling and changed:
            changed(int(line.limit), "learned before")
        return limiter
