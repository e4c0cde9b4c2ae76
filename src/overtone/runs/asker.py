"""Send requests to one model, with concurrency set by the limiter, retries and a budget.

The engine uses it for the model under test, and judges use it too.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from overtone.audio import load_sound
from overtone.errors import AudioError, ModelFailure, OvertoneError, raised
from overtone.models import Model
from overtone.models.reply_clock import ask_streaming, streams
from overtone.runs.folder_safety import MAX_CHARACTERS, MAX_TOKENS
from overtone.runs.limiter import Limiters
from overtone.runs.prices import Price
from overtone.schema import Reply, Request, SessionEvent, Timings, Usage

REPLY_SECONDS = 600.0
REPLY_BYTES = 64_000_000
SHORT = 400  # characters kept of a reply's metadata and of exceptions
STREAK = 20  # consecutive failures for one reason that stop the run
STREAKS = {"exception": 5}  # exceptions in a plug-in's code rarely go away
ITEM_STREAK = 100  # for failures caused by their items, because such items are often close together
UNASKED = frozenset(("bad_clip", "not_recorded"))  # reasons of failures that occur before a request is sent
SCOUT_LONGEST = 10.0  # maximum seconds between two requests to an unavailable endpoint


class Policy(msgspec.Struct, frozen=True):
    """The retry policy: at most `attempts` attempts. The waits begin with `base` seconds and double each time, with
    jitter; an endpoint can request a longer wait.

    An endpoint that is absent, loading or failing before its first reply is retried for `wait` seconds. If it becomes
    unavailable after a reply, the run pauses for at most `patience` seconds.
    """

    attempts: int = 5
    base: float = 0.5
    longest: float = 60.0
    wait: float = 0.0
    patience: float = 600.0

    def delay(self, attempt: int, retry_after: float | None, rng: random.Random) -> float:
        backoff: float = min(self.longest, self.base * 2 ** min(attempt - 1, 30)) * rng.uniform(0.5, 1.0)
        return max(backoff, min(retry_after, 300.0)) if retry_after else backoff


class Outcome(msgspec.Struct):
    """The outcome of a run. `stopped` is "" if every wanted item was tried, otherwise the reason, e.g. budget or
    fatal."""

    answered: int = 0
    failed: int = 0
    requests: int = 0
    cost: float = 0.0
    stopped: str = ""
    detail: str = ""
    warning: str = ""  # a warning for readers of the replies, e.g. that the server drops the audio


class Stopped(Exception):
    """Raised when the run is stopping. Items without a reply stay open for the next run."""


class Asker:
    """One model with its limiter, retries and budget. `outcome` has the requests, the cost, and why the run stopped.

    `limiters` are shared with the command's other askers; `leads` is explained in `Limiters.limiter`.
    """

    def __init__(
        self,
        model: Model,
        *,
        connections: int = 16,
        seed: int | None = None,
        budget_requests: int | None = None,
        budget_usd: float | None = None,
        price: Price | None = None,
        policy: Policy | None = None,
        on_limit: Callable[[int, str], None] | None = None,
        limiters: Limiters | None = None,
        leads: bool = True,
        log: Callable[[str], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.model = model
        self.budget_requests = budget_requests
        self.budget_usd = budget_usd
        self.price = price
        self.policy = policy or Policy()
        self.outcome = Outcome()
        ceiling = connections if model.slots is None else min(connections, model.slots)
        endpoint = getattr(model, "endpoint", "")  # a model that shares no server has none
        self._streams = streams(model)
        self.limiter = (limiters or Limiters()).limiter(endpoint, max(1, ceiling), on_limit, leads=leads)
        self._log = log or (lambda line: None)
        self._warn = warn or self._log
        self._rng = random.Random(seed)
        self._began = time.monotonic()
        self._replied = False
        self._failures: Counter[str] = Counter()  # reason → failures since the last reply
        self._present = asyncio.Event()  # cleared while the endpoint is unavailable and one request retries
        self._present.set()
        self._away_since = 0.0
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._grace = 0.0

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def together(self, work: list[Coroutine[Any, Any, None]]) -> None:
        """Run these coroutines concurrently until they are done, or the run is stopped and its grace period is over."""
        pool = [asyncio.create_task(one) for one in work]
        stop = asyncio.create_task(self._cancel_when_stopped(pool))
        try:
            await asyncio.gather(*pool)
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
        finally:
            stop.cancel()
            for task in pool:
                task.cancel()
            await asyncio.gather(*pool, stop, return_exceptions=True)

    def stop(self, why: str, detail: str = "", grace: float = 0.0) -> None:
        """Start no more requests; wait up to `grace` seconds for those in flight."""
        if not self._stopping.is_set():
            self.outcome.stopped, self.outcome.detail = why, detail
            self._grace = grace
            self._stopping.set()
            self._present.set()
            self.limiter.let_go()
        elif grace == 0.0:
            self._hurry.set()

    async def _cancel_when_stopped(self, pool: list[asyncio.Task[None]]) -> None:
        await self._stopping.wait()
        try:
            async with asyncio.timeout(self._grace):
                await self._hurry.wait()
        except TimeoutError:
            self._log(f"giving up {self.limiter.in_flight} requests in flight")
        for task in pool:
            task.cancel()

    # ── one request ─────────────────────────────────────────────────────────────────────────────────────────────────
    async def attempt(self, request: Request, preflight: bool = False) -> tuple[Reply, int, float]:
        """Ask until there is a reply or the policy gives up; return the reply, the attempts made and the latency."""
        attempt = 0
        looks = 0  # if this request checks whether an unavailable endpoint is back: the number of its checks
        try:
            while True:
                if not looks:
                    await self._present.wait()
                await self.limiter.acquire()
                try:
                    self._spend()
                    attempt += 1
                    reply, latency = await self._ask(request)
                    self.limiter.succeeded()
                    self._replied = True
                    self._failures.clear()
                    return reply, attempt, latency
                except ModelFailure as failure:
                    if failure.overload:
                        self.limiter.overloaded(failure.retry_after)
                    if failure.unavailable and failure.reason == "connection":
                        self.outcome.requests -= 1  # nothing was sent
                    wait = None if self._stopping.is_set() else self._wait(failure, attempt, preflight)
                    if wait is None:
                        failure.attempts = attempt
                        self._count(failure)
                        raise
                    if failure.unavailable and self._replied:
                        attempt -= 1
                        if looks or self._present.is_set():  # the first request to fail retries, the others wait
                            looks += 1
                            wait = self._look(failure, looks)
                    elif looks:
                        looks = self._back()
                    self._log(f"{request.key.item} [{request.key.condition}] {failure}; again in {wait:.1f} s")
                finally:
                    self.limiter.release()
                if not await self._sleep(wait):
                    raise Stopped
        finally:
            if looks:
                self._back()

    async def _sleep(self, seconds: float) -> bool:
        """Wait; return False as soon as the run is stopped."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return True
        return False

    def _wait(self, failure: ModelFailure, attempt: int, preflight: bool) -> float | None:
        """Return the seconds until the next attempt, or None to give up."""
        if failure.unavailable and self._replied:
            return 0.0
        waiting = preflight and failure.retry and time.monotonic() - self._began < self.policy.wait
        if not waiting and (not failure.retry or attempt >= self.policy.attempts or (preflight and failure.fatal)):
            return None
        return min(self.policy.delay(attempt, failure.retry_after, self._rng), SCOUT_LONGEST if waiting else 300.0)

    def _look(self, failure: ModelFailure, looks: int) -> float:
        """Return the seconds until the next check of an unavailable endpoint. Stop the run if patience is over."""
        now = time.monotonic()
        if looks == 1:
            self._present.clear()
            self._away_since = now
            self._warn(f"{failure}; the run is paused for up to {self.policy.patience:g} s until it is back")
        away = now - self._away_since
        if away >= self.policy.patience:
            self.stop("fatal", f"{failure}; it did not come back within {self.policy.patience:g} s")
            raise Stopped
        return min(self.policy.delay(looks, None, self._rng), SCOUT_LONGEST, self.policy.patience - away)

    def _back(self) -> int:
        """End the pause, so that the other requests continue."""
        if not self._stopping.is_set():
            self._warn(f"asking again after a pause of {time.monotonic() - self._away_since:.0f} s")
        self._present.set()
        return 0

    async def _ask(self, request: Request) -> tuple[Reply, float]:
        """Attempt once; return the reply and its latency. An exception in a model's code becomes a ModelFailure."""
        started = time.perf_counter()
        try:
            reply = await (ask_streaming(self.model, request) if self._streams else self.model.ask(request))
            latency = time.perf_counter() - started
            if not isinstance(reply, Reply):
                raise TypeError(f"ask() returned {type(reply).__name__}, not a Reply")
            reply = _bounded(reply)
            _check_likelihoods(request, reply)
            _check_timings(reply)
        except ModelFailure:
            raise
        except Exception as error:
            raise ModelFailure("exception", raised(error)[:SHORT]) from error
        if self.price is not None:
            self.outcome.cost += self.price.of(reply.usage)
        return _with_plain_wav(reply), latency

    def _count(self, failure: ModelFailure) -> None:
        """Stop the run after too many consecutive failures for one reason."""
        if failure.reason in UNASKED:
            return
        self._failures[failure.reason] += 1
        most = ITEM_STREAK if failure.item else STREAKS.get(failure.reason, STREAK)
        if self._failures[failure.reason] >= most:
            self.stop("fatal", f"{most} requests failed without a reply in between, the last with {failure}", grace=5.0)

    def _spend(self) -> None:
        """Count a request against the budget, or stop the run if the budget is used up."""
        if self._stopping.is_set():
            raise Stopped
        if self.budget_requests is not None and self.outcome.requests >= self.budget_requests:
            self.stop("budget", f"the budget of {self.budget_requests} requests is used up", grace=600)
            raise Stopped
        if self.budget_usd is not None and self.outcome.cost >= self.budget_usd:
            self.stop("budget", f"the budget of {self.budget_usd:g} USD is used up", grace=600)
            raise Stopped
        self.outcome.requests += 1


def _with_plain_wav(reply: Reply) -> Reply:
    """Convert a reply's sound to a plain WAV. Raises ModelFailure if it cannot be decoded or is too long."""
    if reply.audio is None:
        return reply
    try:
        sound = load_sound(reply.audio, max_seconds=REPLY_SECONDS, max_bytes=REPLY_BYTES, name="the reply's audio")
    except AudioError as error:
        raise ModelFailure("truncated_audio", str(error), retry=True) from None
    return msgspec.structs.replace(reply, audio=sound.wav)


def _bounded(reply: Reply) -> Reply:
    """Make a reply fit for the store: limit its lengths and counts, and make its texts valid UTF-8."""
    if len(reply.text) > MAX_CHARACTERS:
        raise ModelFailure(
            "too_large", f"the reply has {len(reply.text)} characters; at most {MAX_CHARACTERS} are kept"
        )
    return msgspec.structs.replace(
        reply,
        text=_utf8(reply.text),
        finish=_utf8(reply.finish[:SHORT]),
        model=_utf8(reply.model[:SHORT]),
        notes=tuple(_utf8(note[:SHORT]) for note in reply.notes[:SHORT]),
        usage=Usage(*(min(max(0, count), MAX_TOKENS) for count in msgspec.structs.astuple(reply.usage))),
    )


def _check_likelihoods(request: Request, reply: Reply) -> None:
    """Raise ModelFailure unless the reply has a likelihood for each alternative that the request lists."""
    asked = [len(step) for step in request.continuations]
    given = [len(step) for step in reply.likelihoods]
    if asked != given:
        raise ModelFailure("malformed", f"likelihoods of {given} alternatives per step; asked for {asked}")
    for one in itertools.chain.from_iterable(reply.likelihoods):
        values = [one.total] if one.prior is None else [one.total, one.prior]
        if one.tokens < 1 or not all(math.isfinite(value) and value <= 1e-3 for value in values):
            raise ModelFailure("malformed", f"not the log-likelihood of a text: {one}")


def _check_timings(reply: Reply) -> None:
    """Raise ModelFailure unless each of the reply's timings is a number that can be stored."""
    events = reply.session.events if reply.session else ()
    try:
        msgspec.convert(msgspec.to_builtins((reply.timings, events)), tuple[Timings | None, tuple[SessionEvent, ...]])
    except msgspec.ValidationError as error:
        raise ModelFailure("malformed", f"the reply's timings are not seconds: {error}") from None


def _utf8(text: str) -> str:
    """Escape unpaired surrogates, which some JSON decoders accept."""
    return text.encode("utf-8", "backslashreplace").decode()


def check_outcome(outcome: Outcome) -> None:
    """Raise OvertoneError for a run that stopped without any reply."""
    if outcome.stopped == "fatal" and outcome.answered == 0:
        first = "the first request failed" if outcome.failed < STREAK else "no request got a reply"
        raise OvertoneError(f"{first}, so the run stopped. {outcome.detail}")
