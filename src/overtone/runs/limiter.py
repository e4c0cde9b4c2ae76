"""How many requests may be in flight. Only errors lower it: halved on overload, one more per round of successes.

It starts at its ceiling. There is no barrier: a slot that frees is taken at once by whoever waits longest. Who asks at
one endpoint shares its limit: what an overload has taught one holds for the others, and for those who come later.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

COOLDOWN = 1.0  # requests in flight fail together: one overload counts once within this many seconds


class Line:
    """One endpoint: what it bears, who is served and who waits. Outlives the event loop of a single run."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.in_flight = 0
        self.resume_at = 0.0
        self.last_cut = 0.0
        self.led = False  # the ceiling is a run's
        self.waiting: deque[tuple[Limiter, asyncio.Future[None]]] = deque()

    def lift(self, ceiling: int) -> None:
        """Set another ceiling. A limit that an overload has lowered stays low."""
        self.limit = float(ceiling) if self.limit >= self.ceiling else min(self.limit, float(ceiling))
        self.ceiling = ceiling
        self.serve()

    def pause(self) -> None:
        """Have those who wait called when the pause is over."""
        rest = self.resume_at - time.monotonic()
        if rest > 0:
            asyncio.get_running_loop().call_later(rest + 0.001, self.serve)

    @property
    def free(self) -> bool:
        return self.in_flight < int(self.limit) and not time.monotonic() < self.resume_at

    def serve(self) -> None:
        """Give what is free to those who wait longest."""
        for who, future in tuple(self.waiting):
            if not self.free:
                return
            if who.in_flight < who.ceiling and not future.done():
                self.give(who, future)

    def give(self, who: Limiter, future: asyncio.Future[None]) -> None:
        self.waiting.remove((who, future))
        who.take()
        future.set_result(None)


class Limiter:
    """Hands out slots to one who asks: `ceiling` at most, and no more than the endpoint's line has free.

    `changed` is called with the new limit whenever a request of its own moves it.
    """

    def __init__(
        self, ceiling: int, changed: Callable[[int, str], None] | None = None, line: Line | None = None
    ) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self.line = line or Line(ceiling)
        self._ending = False
        self._changed = changed or (lambda limit, why: None)
        self.line.pause()  # one that a run before this has been told to make

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
            else:  # it was given a slot in the same moment
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
        """Release all waiting requests at once, because the run is ending. Each checks that by itself."""
        self._ending = True
        for who, future in tuple(self.line.waiting):
            if who is self and not future.done():
                self.line.give(who, future)


class Limiters:
    """The queues of one command, by endpoint. A model without an endpoint gets its own queue."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    def limiter(
        self, endpoint: str, ceiling: int, changed: Callable[[int, str], None] | None = None, *, leads: bool = True
    ) -> Limiter:
        """Return a limiter on the endpoint's queue.

        A run `leads`: its ceiling applies to the queue, also for judges. Without a run, the judges' highest applies."""
        if not endpoint:
            return Limiter(ceiling, changed)
        line = self.lines.setdefault(endpoint, Line(ceiling))
        if leads:
            line.led = True
            line.lift(ceiling)
        elif not line.led:
            line.lift(max(ceiling, line.ceiling))
        found = Limiter(ceiling, changed, line)
        if leads and line.limit < ceiling and changed:
            changed(int(line.limit), "learned before")
        return found
