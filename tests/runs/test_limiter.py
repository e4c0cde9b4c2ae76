"""The limiter: never more in flight than allowed, lower only on errors, back up one by one, pauses honoured."""

from __future__ import annotations

import asyncio
import time

from overtone.runs.limiter import Limiter


async def test_never_more_in_flight_than_the_limit_and_every_slot_is_used() -> None:
    limiter = Limiter(5)
    most = 0

    async def one() -> None:
        nonlocal most
        await limiter.acquire()
        most = max(most, limiter.in_flight)
        await asyncio.sleep(0.001)
        limiter.release()

    await asyncio.gather(*(one() for _ in range(100)))
    assert (most, limiter.in_flight) == (5, 0)


async def test_overload_halves_once_for_what_fails_together_and_success_brings_it_back() -> None:
    seen: list[tuple[int, str]] = []
    limiter = Limiter(16, lambda limit, why: seen.append((limit, why)))
    for _ in range(10):
        limiter.overloaded(None)
    assert int(limiter.limit) == 8
    for _ in range(200):
        limiter.succeeded()
    assert limiter.limit == 16
    assert seen[0] == (8, "overloaded")
    assert seen[-1] == (16, "recovered")


async def test_nothing_starts_before_retry_after() -> None:
    limiter = Limiter(4)
    limiter.overloaded(0.15)
    began = time.monotonic()
    await asyncio.gather(*(limiter.acquire() for _ in range(2)))
    assert 0.14 < time.monotonic() - began < 1.0


async def test_someone_who_gives_up_waiting_passes_the_slot_on() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    first = asyncio.create_task(limiter.acquire())
    second = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    limiter.release()
    first.cancel()
    await asyncio.wait_for(second, 1)
    assert limiter.in_flight == 1


async def test_the_limit_never_falls_below_one() -> None:
    limiter = Limiter(2)
    for _ in range(5):
        limiter.line.last_cut = 0.0
        limiter.overloaded(None)
    assert limiter.limit == 1
    await asyncio.wait_for(limiter.acquire(), 1)
