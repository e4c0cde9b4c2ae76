"""A model that actors of a Ray cluster hold. To the engine it is a model like any other.

The driver does all that it does without Ray: it keeps the store, retries, the limit of each endpoint and the budgets,
and reads the clips. It sends each request, with the clip's bytes, to the actor with the most free slots. Ray itself
retries nothing, so a request is sent again only by the run's own policy, and one that was in flight in an actor that
died is one attempt. An actor that dies is replaced, on any node that has room.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any

import msgspec

from overtone import registry
from overtone.cluster import ray_nodes
from overtone.cluster.holder import Failed, Holder, Opened, Placed, Refused
from overtone.cluster.node_setup import setup_of
from overtone.cluster.placement import Placement
from overtone.errors import ModelFailure, OvertoneError, UsageError
from overtone.models import Model
from overtone.schema import Reply, Request
from overtone.spec import NOT_IDENTITY, Spec

RESTARTS = 3  # deaths in a row, without a reply in between, after which an actor is not replaced
GRACE = 2.0  # seconds that a request waits for an actor while there is none, before it fails as unavailable
SILENCE = 10.0  # seconds in which an actor that cannot be reached gets no request
LOOK = 2.0  # seconds between two looks at an actor that is not placed yet
SAY = 30.0  # seconds between two messages about that
CLOSING = 20.0  # seconds that a model has to close
log = logging.getLogger("overtone")
_holding: set[int] = set()  # the models of this process that hold actors now


class _Seat:
    """One place for an actor: the actor that has it now, and how that actor fares."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.actor: Any = None
        self.where = ""
        self.open = False
        self.silent_until = 0.0
        self.in_flight = 0
        self.deaths = 0
        self.died = asyncio.Event()
        self.over: OvertoneError | None = None  # why it is not filled again

    def free(self, slots: int | None, now: float) -> bool:
        """Return whether it can take a request now."""
        return self.open and now >= self.silent_until and (slots is None or self.in_flight < slots)


class HeldModel:
    """A model held by actors. `inner` is the same model, loaded here but never opened.

    A cluster that could never hold an actor is waited for `wait` seconds. One whose resources others use is waited for
    `patience` seconds, or as long as another model of this process uses them.
    """

    def __init__(self, inner: Model, placement: Placement, *, wait: float = 0.0, patience: float = 600.0) -> None:
        module = registry.find("models", inner.spec.kind)
        if inner.spec.kind == "python" or not getattr(module, "__file__", None):
            raise UsageError(
                f"{inner.spec}: an object of this program cannot be sent to a Ray cluster; write the model as a "
                "plug-in file and name that, or leave Ray out"
            )
        if "gpus" in inner.spec.options:
            raise UsageError(f"{inner.spec}: Ray gives out the GPUs; write gpus in [ray] and not in the SPEC")
        self.spec: Spec = inner.spec
        self.endpoint: str = getattr(inner, "endpoint", "")
        self.likelihoods: bool = getattr(inner, "likelihoods", False)
        self.slots: int | None = inner.slots
        self.audio_rate: int | None = None
        self._inner_slots = inner.slots
        self._variables: tuple[str, ...] = getattr(inner, "variables", ())
        self._placement = placement
        self._wait = wait
        self._patience = patience
        self._seats: list[_Seat] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._opened: Opened | None = None
        self._ray: Any = None
        self._waiting: list[asyncio.Future[None]] = []

    async def open(self) -> None:
        """Place the actors and wait until one has opened the model. The others join as soon as they are ready."""
        ray = self._ray = await asyncio.to_thread(ray_nodes.connect, self._placement.address)
        await self._possible()
        many = self._placement.actors or ray_nodes.default_actors(ray_nodes.alive_nodes(ray), self._placement)
        self.slots = None if self._inner_slots is None else self._inner_slots * many
        # Requests wait here and not in the actor, so the actor never has more of them than it has slots.
        self._remote = ray.remote(Holder).options(
            num_cpus=self._placement.cpus,
            num_gpus=self._placement.gpus,
            resources=self._placement.resources,
            scheduling_strategy="SPREAD",
            max_concurrency=1000,
            max_restarts=0,
            max_task_retries=0,
        )
        self._setup = ray.put(setup_of(self._variables))
        self._seats = [_Seat(number) for number in range(1, many + 1)]
        log.info("%s runs on %s", self.spec, msgspec.structs.replace(self._placement, actors=many).line)
        self._tasks = [asyncio.create_task(self._keep(seat)) for seat in self._seats]
        await self._first_open()

    async def ask(self, request: Request) -> Reply:
        """Send a request to an actor once and return the reply."""
        seat = await self._free_seat()
        seat.in_flight += 1
        try:
            answer: Reply | Failed = await self._sent(seat, request)
        finally:
            seat.in_flight -= 1
            self._notify()
        seat.deaths = 0
        if isinstance(answer, Failed):
            raise answer.failure(f" (on node {seat.where})" if answer.reason == "worker_died" else "")
        return answer

    async def close(self) -> None:
        """Close the models and end the actors, so that others can have their resources."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await asyncio.gather(*(self._end(seat, graceful=True) for seat in self._seats))
        self._seats.clear()
        _holding.discard(id(self))

    def describe(self) -> dict[str, Any]:
        """Return the description of the model that the actors hold: a run is the same with and without Ray."""
        if self._opened is None:
            raise UsageError(f"{self.spec}: describe() before open()")
        return self._opened.described

    # ── seats ───────────────────────────────────────────────────────────────────────────────────────────────────────
    async def _possible(self) -> None:
        """Wait until the cluster has a node that could hold an actor. Raises UsageError after `wait` seconds."""
        began, said = time.monotonic(), False
        while problem := ray_nodes.impossible(ray_nodes.alive_nodes(self._ray), self._placement.demand):
            if time.monotonic() - began >= self._wait:
                raise UsageError(
                    f"{self.spec}: {problem}; lower cpus, gpus or resources, start a node that has them, or wait for "
                    "one with --wait SECONDS"
                )
            if not said:
                log.warning("%s: %s; waiting for up to %g s", self.spec, problem, self._wait)
                said = True
            await asyncio.sleep(min(LOOK, self._wait))

    async def _first_open(self) -> None:
        """Wait until an actor is open. Raises the error of the first seat if none can be filled."""
        since = said = time.monotonic()
        while not any(seat.open for seat in self._seats):
            if all(seat.over for seat in self._seats):
                raise self._seats[0].over or UsageError(f"{self.spec}: no actor")
            await self._change(LOOK)
            now = time.monotonic()
            if any(seat.where for seat in self._seats):
                since = now  # the model is being opened, which has its own time-out
            elif _holding - {id(self)}:
                since = now  # another model of this process has the resources, and gives them back
            if now - since > self._patience:
                free = ray_nodes.busy(self._ray, self._placement.demand)
                raise UsageError(f"{self.spec}: no actor got a place in {self._patience:g} s; {free}")
            if now - max(since, said) > SAY:
                said = now
                log.warning("%s waits for a place; %s", self.spec, ray_nodes.busy(self._ray, self._placement.demand))

    async def _keep(self, seat: _Seat) -> None:
        """Fill a seat with an actor, and fill it again whenever its actor has died."""
        while seat.over is None:
            why = "it ended"
            seat.died.clear()
            try:
                await self._fill(seat)
                await seat.died.wait()
            except _Left as left:
                seat.over = left.error
                log.warning("actor %d is left out: %s", seat.number, left.error)
            except self._ray.exceptions.RayError as error:
                why = ray_nodes.brief(error)
                log.warning(
                    "actor %d%s could not start: %s", seat.number, f" on node {seat.where}" * bool(seat.where), why
                )
            await self._end(seat, graceful=False)
            seat.deaths += 1
            if seat.over is None and seat.deaths > RESTARTS:
                seat.over = UsageError(
                    f"{self.spec}: actor {seat.number} died {seat.deaths} times in a row without a reply: {why}; Ray's "
                    "logs are in /tmp/ray/session_latest/logs on its node"
                )
                log.warning("%s", seat.over)
            self._notify()
            if seat.over is None:
                await asyncio.sleep(0.1 * 2**seat.deaths)

    async def _fill(self, seat: _Seat) -> None:
        """Place an actor in a seat and let it open the model. Raises _Left if this node cannot have it."""
        seat.actor = self._remote.remote(self._setup, self.spec)
        placed: Placed = await seat.actor.place.remote()
        _holding.add(id(self))
        seat.where = ray_nodes.name_of(self._ray, placed.node)
        self._notify()
        opened: Opened | Refused = await seat.actor.open.remote()
        if isinstance(opened, Refused):
            raise _Left(opened.error(seat.where))
        self._check_same(seat, opened)
        gpus = f", GPU {placed.gpus}" if placed.gpus and self._placement.gpus else ""
        log.info("actor %d of %d: node %s, pid %d%s", seat.number, len(self._seats), seat.where, placed.pid, gpus)
        seat.open = True
        self._notify()

    def _check_same(self, seat: _Seat, opened: Opened) -> None:
        """Raise _Left if the model on this node would answer otherwise than the one that was opened first."""
        first = self._opened
        if first is None:
            self._opened, self.audio_rate = opened, opened.audio_rate
            return
        keys = {**first.described, **opened.described}.keys() - set(NOT_IDENTITY)
        other = [key for key in sorted(keys) if first.described.get(key) != opened.described.get(key)]
        if other or first.audio_rate != opened.audio_rate:
            raise _Left(
                UsageError(
                    f"{self.spec} on node {seat.where} is not the same model as on the first node: it differs in "
                    f"{', '.join(other) or 'its audio rate'}"
                )
            )

    async def _free_seat(self) -> _Seat:
        """Return the seat with the fewest requests among those with a free slot. Raises ModelFailure without one."""
        alone_since: float | None = None
        while True:
            now = time.monotonic()
            ready = [seat for seat in self._seats if seat.free(self._inner_slots, now)]
            if ready:
                return min(ready, key=lambda seat: (seat.in_flight, seat.number))
            if all(seat.over for seat in self._seats):
                why = self._seats[0].over if self._seats else "the model is closed"
                raise ModelFailure("worker_died", str(why), fatal=True)
            if any(seat.open and now >= seat.silent_until for seat in self._seats):
                alone_since = None  # all are busy
            else:
                alone_since = alone_since or now
            if alone_since is not None and now - alone_since > GRACE:
                free = ray_nodes.busy(self._ray, self._placement.demand)
                raise ModelFailure("connection", f"no actor holds the model; {free}", retry=True, unavailable=True)
            await self._change(GRACE)

    async def _sent(self, seat: _Seat, request: Request) -> Reply | Failed:
        errors = self._ray.exceptions
        actor = seat.actor
        sent = actor.ask.remote(request)
        try:
            answer: Reply | Failed = await sent
            return answer
        except asyncio.CancelledError:
            self._ray.cancel(sent)
            raise
        except errors.ActorUnavailableError as error:
            seat.silent_until = time.monotonic() + SILENCE
            detail = f"the actor on node {seat.where} cannot be reached: {ray_nodes.brief(error)}"
            raise ModelFailure("connection", detail, retry=True) from None
        except (errors.RayActorError, errors.ObjectLostError) as error:
            detail = f"the actor on node {seat.where} ended while it had this request: {ray_nodes.brief(error)}"
            if isinstance(error, errors.RayActorError) and seat.actor is actor and not seat.died.is_set():
                log.warning("%s", detail)
                seat.open = False
                seat.died.set()
            raise ModelFailure("worker_died", detail, retry=True) from None
        except errors.RayError as error:
            raise ModelFailure("exception", f"on node {seat.where}: {ray_nodes.brief(error)}") from None

    async def _end(self, seat: _Seat, *, graceful: bool) -> None:
        """End a seat's actor. The model is closed first if `graceful`."""
        actor, seat.actor = seat.actor, None
        was_open, seat.open, seat.where = seat.open, False, ""
        if actor is None:
            return
        with contextlib.suppress(self._ray.exceptions.RayError, TimeoutError):
            if graceful and was_open:
                async with asyncio.timeout(CLOSING):
                    if problem := await actor.close.remote():
                        log.warning("%s cannot be closed: %s", self.spec, problem)
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(actor, no_restart=True)

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def _notify(self) -> None:
        """Wake everyone who waits for a change of the seats."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _change(self, most: float) -> None:
        """Wait for the next change, at most `most` seconds."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most):
                await future


class _Left(Exception):
    """A node cannot have an actor of this model, and another attempt would end the same way."""

    def __init__(self, error: OvertoneError) -> None:
        super().__init__(str(error))
        self.error = error
