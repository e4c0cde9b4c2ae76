"""The engine asks every open item of a run, concurrently within the limiter, and stores each reply on arrival.

It asks one item at a time until the first reply. If the endpoint refuses the key, does not know the model, takes no
audio or is missing, the run stops before it costs anything. That first reply is stored like any other.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Coroutine, Iterator
from types import ModuleType
from typing import Any

import msgspec

from overtone import registry
from overtone.errors import DataError, ModelFailure, StoreError
from overtone.models import Model
from overtone.runs import audio_probe
from overtone.runs.asker import UNASKED, Asker, Outcome, Policy, Stopped
from overtone.runs.audio_probe import Hearing, Probe
from overtone.runs.limiter import Limiters
from overtone.runs.prices import Price
from overtone.runs.sent_clips import Sounds
from overtone.runs.store import CHECK_EVERY, Ask, Store
from overtone.schema import LIKELIHOOD, Condition, Message, Reply, Request, Sound
from overtone.tasks import Prompts

PAGE = 256  # asks read from the store at a time
COMMIT_EVERY = 64  # maximum number of replies per commit
# Failures of the first request that may be caused by its clip; an item with another clip is tried to decide.
DOUBTFUL = frozenset(("rejected", "server", "malformed", "truncated_audio", "exception"))
REFUSED = 5  # after this many refused first items, the cause is not the items but the configuration
_encode = msgspec.json.Encoder().encode
_condition = functools.lru_cache(maxsize=64)(Condition.parse)


class Progress(msgspec.Struct):
    """The progress of a run, for displays."""

    total: int
    answered: int = 0
    failed: int = 0
    in_flight: int = 0
    limit: int = 0
    cost: float = 0.0
    priced: bool = False


class Engine:
    """One run of one model: `await run()` returns the outcome; `stop()` ends it cleanly.

    With `spread`, items are asked in an order spread over levels, tasks and cues, because a budget may end the run.
    """

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
        limiters: Limiters | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        on_answered: Callable[[Ask], None] | None = None,
        log: Callable[[str], None] | None = None,
        warn: Callable[[str], None] | None = None,
        spread: bool = False,
    ) -> None:
        self.store = store
        self.sounds = sounds
        self.prompts = prompts
        self.speech = speech
        self.seed = seed
        self._log = log or (lambda line: None)
        self._warn = warn or self._log
        self.asker = Asker(
            model,
            connections=connections,
            seed=seed,
            budget_requests=budget_requests,
            budget_usd=budget_usd,
            price=price,
            policy=policy,
            on_limit=self._limit_changed,
            limiters=limiters,
            log=self._log,
            warn=self._outage,
        )
        self.outcome = self.asker.outcome
        counts = store.counts(wanted_only=True)
        open_ = counts["pending"] + counts["failed"]
        self._replied_before = counts["answered"] > 0
        self.progress = Progress(open_, priced=price is not None)
        self._on_progress = on_progress or (lambda progress: None)
        self._on_answered = on_answered or (lambda ask: None)
        self._asks = self._open_asks(spread)
        self._tasks: dict[str, ModuleType] = {}
        self._hearing = self._watch_hearing(getattr(model, "endpoint", ""))
        self._uncommitted = 0
        self._commit_scheduled = False

    # ── the loop ────────────────────────────────────────────────────────────────────────────────────────────────────
    async def run(self) -> Outcome:
        """Ask every open item. Raises StoreError if the store fails; replies stored before are kept."""
        await self._together([self._preflight()])
        if not self.asker.stopping:
            await self._together([self._work() for _ in range(min(self.asker.limiter.ceiling, self.progress.total))])
        if not self.asker.stopping and self._hearing is not None and self._hearing.due(last=True):
            await self._together([self._probe(self._hearing)])
        return self.outcome

    async def _preflight(self) -> None:
        """Ask one item at a time until one has a reply. A failure that is not caused by the item stops the run.

        If the run already has replies, only a fatal failure stops it, because the open items may be those that always
        fail.
        """
        doubted: Ask | None = None
        same_clip: list[Ask] = []
        refused = 0
        for ask in self._asks:
            if doubted is not None and ask.item.turns == doubted.item.turns:
                same_clip.append(ask)  # only another clip can decide
                continue
            failure = await self._serve(ask, preflight=True)
            if failure is None or self.asker.stopping:
                break
            if failure.reason in UNASKED:
                continue
            if self._replied_before:
                break
            refused += 1
            if failure.item and refused < REFUSED:
                continue
            if doubted is not None or failure.item or failure.reason not in DOUBTFUL:
                again = "; other clips fared no better" if refused > 1 else ""
                self.asker.stop("fatal", f"{failure}{again}")
                break
            doubted = ask
        self._asks = itertools.chain(same_clip, self._asks)

    async def _together(self, work: list[Coroutine[Any, Any, None]]) -> None:
        watch = asyncio.create_task(self._watch())
        try:
            await self.asker.together(work)
        finally:
            watch.cancel()
            if self.outcome.stopped != "store":
                self._commit()

    async def _watch(self) -> None:
        """Stop if the run's folder disappears, because further replies would be paid for and lost."""
        while True:
            await asyncio.sleep(CHECK_EVERY)
            try:
                self.store.check_present()
            except StoreError as error:
                self.asker.stop("store", str(error))
                return

    def stop(self, why: str, detail: str = "", grace: float = 0.0) -> None:
        """Start no more requests; wait up to `grace` seconds for those in flight."""
        self.asker.stop(why, detail, grace)

    async def _work(self) -> None:
        for ask in self._asks:
            if self.asker.stopping:
                return
            await self._serve(ask)

    def _open_asks(self, spread: bool) -> Iterator[Ask]:
        ids = self.store.open_ids(spread=spread)
        for start in range(0, len(ids), PAGE):
            yield from self.store.asks_with(ids[start : start + PAGE])

    async def _serve(self, ask: Ask, *, preflight: bool = False) -> ModelFailure | None:
        """Ask all turns of one ask that have no reply yet; return the failure that ended it, if any."""
        history: list[Message] = []
        stored = (reply.text for reply in ask.replies)
        for turn, utterance in enumerate(ask.item.turns):
            try:
                request, history = self._request(ask, turn, history)
                known = utterance.given or next(stored, None)
                if known is not None:
                    history.append(Message("assistant", (known,)))
                    continue
                reply, attempts, latency = await self.asker.attempt(request, preflight)
            except ModelFailure as failure:
                self._failed(ask, turn, failure, preflight)
                return failure
            except Stopped:
                return None
            self.store.add_reply(ask, turn, reply, sent=sent_messages(request), latency=latency, attempts=attempts)
            history.append(Message("assistant", (reply.text,)))
            self._soon_commit()
            preflight = False
            self._note_hearing(request, reply, ask.condition)
        self.outcome.answered += 1
        self.progress.answered += 1
        self._on_answered(ask)
        self._on_progress(self._now())
        if self._hearing is not None and self._hearing.due():
            await self._probe(self._hearing)
        return None

    def _request(self, ask: Ask, turn: int, history: list[Message]) -> tuple[Request, list[Message]]:
        item = ask.item
        condition = _condition(ask.condition)
        clip = item.turns[turn].clip
        sound: Sound | None = None
        if clip is not None and condition.sounds:
            sound = self.sounds.silent(clip) if condition.input == "silence" else self.sounds.get(clip)
        choices = {option.letter: self.sounds.get(option.clip) for option in item.options if option.clip is not None}
        more = {"choices": choices} if choices else {}  # only one task takes recordings as options
        if item.task not in self._tasks:
            self._tasks[item.task] = registry.find("tasks", item.task)
        task = self._tasks[item.task]
        likely = condition.prompt == LIKELIHOOD
        try:
            messages = task.messages(item, condition, turn, history, sound, self.prompts, **more)
        except DataError as error:
            raise ModelFailure("bad_clip", str(error)) from None
        request = Request(
            ask.key(turn),
            messages,
            speech=item.task == "converse" and self.speech != "no",
            task=item.task,
            options=tuple(option.text for option in item.options),
            seed=None if self.seed is None else self.seed + ask.repeat,
            continuations=task.continuations(item) if likely else (),
            without=task.without(item, self.prompts) if likely else (),
            last=turn == len(item.turns) - 1,
        )
        return request, [m for m in messages if m.role != "system"]

    def _failed(self, ask: Ask, turn: int, failure: ModelFailure, preflight: bool) -> None:
        self.store.add_failure(ask, turn, failure.reason, failure.detail, failure.attempts)
        self._soon_commit()
        self.outcome.failed += 1
        self.progress.failed += 1
        self._log(f"failed: {ask.item.id} [{ask.condition}] {failure}")
        self._on_progress(self._now())
        if failure.fatal:
            self.asker.stop("fatal", str(failure), grace=0.0 if preflight else 5.0)

    # ── whether the audio arrives ───────────────────────────────────────────────────────────────────────────────────
    def _watch_hearing(self, endpoint: str) -> Hearing | None:
        """Return a watcher of the endpoint's replies, unless this run already has a verdict for this endpoint."""
        known = audio_probe.read(self.store.meta().get(audio_probe.META))
        if known is not None and known.endpoint == endpoint and known.verdict != "undecided":
            self.outcome.warning = known.warning
            return None
        return Hearing(endpoint) if endpoint else None

    def _note_hearing(self, request: Request, reply: Reply, condition: str) -> None:
        if self._hearing is not None and _condition(condition).input != "silence":
            self._hearing.note(request, reply)
            self._keep_probe(self._hearing.result)

    async def _probe(self, watched: Hearing) -> None:
        try:
            self._keep_probe(await watched.probe(self.asker.attempt))
        except Stopped:
            return

    def _keep_probe(self, probe: Probe | None) -> None:
        if probe is None:
            return
        self._hearing = None
        self.store.set_meta({audio_probe.META: _encode(probe).decode()})
        self._log(f"audio {probe.verdict}: {probe.why}")
        if probe.warning:
            self.outcome.warning = probe.warning
            self.store.add_event("warning", probe.warning)
            self._warn(probe.warning)

    # ── commits and progress ────────────────────────────────────────────────────────────────────────────────────────
    def _soon_commit(self) -> None:
        """Schedule one commit per iteration of the event loop, or commit at once if many replies are uncommitted."""
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
            self.asker.stop("store", str(error))

    def _commit(self) -> None:
        self.store.commit()
        self._uncommitted = 0

    def _now(self) -> Progress:
        self.progress.cost = self.outcome.cost
        self.progress.in_flight = self.asker.limiter.in_flight
        self.progress.limit = int(self.asker.limiter.limit)
        return self.progress

    def _outage(self, line: str) -> None:
        self.store.add_event("outage", line)
        self._soon_commit()
        self._warn(line)

    def _limit_changed(self, limit: int, why: str) -> None:
        self.store.add_event("limit", f"{why}: {limit} requests at once")
        self._log(f"{why}: {limit} requests at once")


def sent_messages(request: Request) -> bytes:
    """Return the messages of a request as JSON for the store. A sound is stored by its SHA-256."""
    return _encode([{"role": m.role, "parts": [_record(p) for p in m.parts]} for m in request.messages])


def _record(part: str | Sound) -> dict[str, str]:
    return {"text": part} if isinstance(part, str) else {"audio": part.sha256}
