"""The engine: asks every open item of a run, as many at once as the limiter allows, and stores each reply as it comes.

The first item goes alone: if the endpoint refuses the key, does not know the model or is not there, the run stops
before it has cost anything; its reply is kept like any other.
"""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from types import ModuleType
from typing import Any

import msgspec

from overtone import registry
from overtone.audio import load_sound
from overtone.errors import AudioError, DataError, ModelFailure, OvertoneError, StoreError
from overtone.models import Model
from overtone.runs.limiter import Limiter
from overtone.runs.prices import Price
from overtone.runs.sounds import Sounds
from overtone.runs.store import Ask, Store
from overtone.runs.strangers import MAX_CHARACTERS, MAX_TOKENS
from overtone.schema import Condition, Message, Reply, Request, Sound, Usage
from overtone.tasks import Prompts

PAGE = 256  # asks read from the store at a time
COMMIT_EVERY = 64  # replies at most that share one commit
REPLY_SECONDS = 600.0
REPLY_BYTES = 64_000_000
SHORT = 400  # characters kept of what a model says about itself
_encode = msgspec.json.Encoder().encode
_condition = functools.lru_cache(maxsize=64)(Condition.parse)


class Policy(msgspec.Struct, frozen=True):
    """When to ask again: up to `attempts` in all, after base·2ⁿ seconds (with jitter), or when the endpoint says."""

    attempts: int = 5
    base: float = 0.5
    longest: float = 60.0

    def delay(self, attempt: int, retry_after: float | None, rng: random.Random) -> float:
        backoff: float = min(self.longest, self.base * 2 ** (attempt - 1)) * rng.uniform(0.5, 1.0)
        return max(backoff, min(retry_after, 300.0)) if retry_after else backoff


class Outcome(msgspec.Struct):
    """How a run went. `stopped` is empty when every wanted item was tried, else budget, interrupted or fatal."""

    answered: int = 0
    failed: int = 0
    requests: int = 0
    cost: float = 0.0
    stopped: str = ""
    detail: str = ""


class Progress(msgspec.Struct):
    """What a display shows while a run goes on."""

    total: int
    answered: int = 0
    failed: int = 0
    in_flight: int = 0
    limit: int = 0
    cost: float = 0.0
    priced: bool = False


class Engine:
    """One run of one model. Make it, `await run()`, and read the outcome; `stop()` ends it cleanly."""

    def __init__(
        self,
        store: Store,
        model: Model,
        sounds: Sounds,
        prompts: Prompts,
        *,
        connections: int = 16,
        speech: str = "auto",
        seed: int | None = None,
        budget_requests: int | None = None,
        budget_usd: float | None = None,
        price: Price | None = None,
        policy: Policy | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.store = store
        self.model = model
        self.sounds = sounds
        self.prompts = prompts
        self.speech = speech
        self.seed = seed
        self.budget_requests = budget_requests
        self.budget_usd = budget_usd
        self.price = price
        self.policy = policy or Policy()
        self.outcome = Outcome()
        counts = store.counts(wanted_only=True)
        open_ = counts["pending"] + counts["failed"]
        self.progress = Progress(open_, priced=price is not None)
        self._on_progress = on_progress or (lambda progress: None)
        self._log = log or (lambda line: None)
        ceiling = connections if model.slots is None else min(connections, model.slots)
        self.limiter = Limiter(max(1, ceiling), self._limit_changed)
        self._asks = self._open_asks()
        self._tasks: dict[str, ModuleType] = {}
        self._rng = random.Random(seed)
        self._uncommitted = 0
        self._commit_scheduled = False
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._grace = 0.0

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> Outcome:
        """Ask everything that is open. Raises StoreError when the store cannot go on; replies kept so far stay."""
        first = next(self._asks, None)
        if first is None:
            return self.outcome
        await self._together([self._serve(first, preflight=True)])
        if not self._stopping.is_set():
            await self._together([self._work() for _ in range(min(self.limiter.ceiling, self.progress.total))])
        return self.outcome

    async def _together(self, work: list[Coroutine[Any, Any, None]]) -> None:
        """Do all of it at once, until it is done or the run is stopped and its grace is over."""
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
            self._commit()

    def stop(self, why: str, detail: str = "", grace: float = 0.0) -> None:
        """Start no more requests; those in flight may take `grace` seconds to come back."""
        if not self._stopping.is_set():
            self.outcome.stopped, self.outcome.detail = why, detail
            self._grace = grace
            self._stopping.set()
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

    async def _work(self) -> None:
        for ask in self._asks:
            if self._stopping.is_set():
                return
            await self._serve(ask)

    def _open_asks(self) -> Iterator[Ask]:
        page: deque[Ask] = deque()
        last = 0
        while True:
            if not page:
                page.extend(self.store.open_asks(last, PAGE))
                if not page:
                    return
            ask = page.popleft()
            last = ask.id
            yield ask

    async def _serve(self, ask: Ask, *, preflight: bool = False) -> None:
        """All turns of one ask that have no reply yet."""
        history: list[Message] = []
        told = list(ask.replies)
        for turn in range(len(ask.item.turns)):
            try:
                request, history = self._request(ask, turn, history)
                if turn < len(told):
                    history.append(Message("assistant", (told[turn],)))
                    continue
                reply, attempts, latency = await self._attempt(request, preflight)
            except ModelFailure as failure:
                self._failed(ask, turn, failure, preflight)
                return
            except _Stopped:
                return
            sent = _encode([{"role": m.role, "parts": [_record(p) for p in m.parts]} for m in request.messages])
            self.store.add_reply(ask, turn, reply, sent=sent, latency=latency, attempts=attempts)
            history.append(Message("assistant", (reply.text,)))
            told.append(reply.text)
            self._soon_commit()
            preflight = False
        self.outcome.answered += 1
        self.progress.answered += 1
        self._on_progress(self._now())

    def _request(self, ask: Ask, turn: int, history: list[Message]) -> tuple[Request, list[Message]]:
        item = ask.item
        condition = _condition(ask.condition)
        clip = item.turns[turn].clip
        sound: Sound | None = None
        if clip is not None and condition.input != "transcript":
            sound = self.sounds.silent(clip) if condition.input == "silence" else self.sounds.get(clip)
        if item.task not in self._tasks:
            self._tasks[item.task] = registry.find("tasks", item.task)
        try:
            messages = self._tasks[item.task].messages(item, condition, turn, history, sound, self.prompts)
        except DataError as error:
            raise ModelFailure("bad_clip", str(error)) from None
        request = Request(
            ask.key(turn),
            messages,
            speech=item.task == "converse" and self.speech != "no",
            task=item.task,
            options=tuple(option.text for option in item.options),
            seed=None if self.seed is None else self.seed + ask.repeat,
        )
        return request, [m for m in messages if m.role != "system"]

    # ── one request ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _attempt(self, request: Request, preflight: bool) -> tuple[Reply, int, float]:
        """Ask until there is a reply or the policy gives up; returns it with the attempts made and its latency."""
        attempt = 0
        while True:
            await self.limiter.acquire()
            try:
                self._spend()
                attempt += 1
                started = time.perf_counter()
                reply = await self.model.ask(request)
                latency = time.perf_counter() - started
                reply = _bounded(reply)
                self._charge(reply)
                reply = self._checked(reply)
                self.limiter.succeeded()
                return reply, attempt, latency
            except ModelFailure as failure:
                if failure.overload:
                    self.limiter.overloaded(failure.retry_after)
                final = not failure.retry or attempt >= self.policy.attempts or (preflight and failure.fatal)
                if final or self._stopping.is_set():
                    failure.attempts = attempt
                    raise
                wait = self.policy.delay(attempt, failure.retry_after, self._rng)
                self._log(f"{request.key.item} [{request.key.condition}] {failure}; again in {wait:.1f} s")
            finally:
                self.limiter.release()
            try:
                async with asyncio.timeout(wait):
                    await self._stopping.wait()
            except TimeoutError:
                continue
            raise _Stopped

    def _spend(self) -> None:
        """Count a request against the budget, or stop."""
        if self._stopping.is_set():
            raise _Stopped
        if self.budget_requests is not None and self.outcome.requests >= self.budget_requests:
            self.stop("budget", f"the budget of {self.budget_requests} requests is used up", grace=600)
            raise _Stopped
        if self.budget_usd is not None and self.outcome.cost >= self.budget_usd:
            self.stop("budget", f"the budget of {self.budget_usd:g} USD is used up", grace=600)
            raise _Stopped
        self.outcome.requests += 1

    def _charge(self, reply: Reply) -> None:
        if self.price is not None:
            self.outcome.cost += self.price.of(reply.usage)
            self.progress.cost = self.outcome.cost

    def _checked(self, reply: Reply) -> Reply:
        """A reply's sound as it is stored: decodable, of bounded length, as a plain WAV."""
        if reply.audio is None:
            return reply
        try:
            sound = load_sound(
                reply.audio, max_rate=48_000, max_seconds=REPLY_SECONDS, max_bytes=REPLY_BYTES, name="the reply's audio"
            )
        except AudioError as error:
            raise ModelFailure("truncated_audio", str(error), retry=True) from None
        return msgspec.structs.replace(reply, audio=sound.wav)

    def _failed(self, ask: Ask, turn: int, failure: ModelFailure, preflight: bool) -> None:
        self.store.add_failure(ask, turn, failure.reason, failure.detail, failure.attempts)
        self._soon_commit()
        self.outcome.failed += 1
        self.progress.failed += 1
        self._log(f"failed: {ask.item.id} [{ask.condition}] {failure}")
        self._on_progress(self._now())
        if failure.fatal:
            self.stop("fatal", str(failure), grace=0.0 if preflight else 5.0)

    # ── keeping ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _soon_commit(self) -> None:
        """Commit once for everything that arrives in one turn of the event loop, or at once when much has."""
        self._uncommitted += 1
        if self._uncommitted >= COMMIT_EVERY:
            self._commit()
        elif not self._commit_scheduled:
            self._commit_scheduled = True
            asyncio.get_running_loop().call_soon(self._scheduled_commit)

    def _scheduled_commit(self) -> None:
        self._commit_scheduled = False
        try:
            self._commit()
        except StoreError as error:
            self.stop("store", str(error))

    def _commit(self) -> None:
        self.store.commit()
        self._uncommitted = 0

    def _now(self) -> Progress:
        self.progress.in_flight = self.limiter.in_flight
        self.progress.limit = int(self.limiter.limit)
        return self.progress

    def _limit_changed(self, limit: int, why: str) -> None:
        self.store.add_event("limit", f"{why}: {limit} requests at once")
        self._log(f"{why}: {limit} requests at once")


class _Stopped(Exception):
    """The run is ending; this ask stays open for next time."""


def _bounded(reply: Reply) -> Reply:
    """A reply as a store can keep it: text of bounded length that is UTF-8, token counts that are counts."""
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


def _utf8(text: str) -> str:
    """The text with half surrogate pairs, which some JSON readers let pass, written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _record(part: str | Sound) -> dict[str, str]:
    return {"text": part} if isinstance(part, str) else {"audio": part.sha256}


def check_outcome(outcome: Outcome) -> None:
    """Raise what a caller must not overlook: a store that failed while the run went on."""
    if outcome.stopped == "store":
        raise StoreError(outcome.detail)
    if outcome.stopped == "fatal" and outcome.answered == 0:
        raise OvertoneError(f"the first request failed, nothing else was asked. {outcome.detail}")
