"""A judge at work: each verdict is asked for once and stored, and unreadable answers are asked for again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from overtone import registry
from overtone.errors import DataError, ModelFailure, UsageError
from overtone.judges.contract import Contract, Unread, Verdict
from overtone.judges.judge_input import Subject
from overtone.judges.judge_messages import build_messages
from overtone.judges.judgement import Draw, Judgement, Outcome
from overtone.judges.policy import Judge
from overtone.judges.rubric import Dimension, Rubric, twin
from overtone.judges.verdict_cache import Verdicts
from overtone.models import Model
from overtone.runs.asker import Asker, Stopped
from overtone.runs.asker import Policy as Retries
from overtone.runs.limiter import Limiters
from overtone.runs.prices import price_of
from overtone.runs.settings import identity
from overtone.schema import Key, Message, Request

_SWAPPED: dict[int | str, int | str] = {"A": "B", "B": "A"}
_RETRY_STEP = 1_000_003  # difference between the seeds of one question's attempts
UNREADABLE = 20  # unreadable verdicts of one rubric in a row after which the judge is not asked any more
T = TypeVar("T")
_encode = msgspec.json.Encoder(order="sorted").encode


class Skipped(str):
    """The reason why a judge was not asked: the subject lacks something, such as the audio that a rubric is about."""


class Unanswered(str):
    """The reason why no verdict arrived: the judge failed, or was stopped before it was asked."""


def stored_name(judge: Judge) -> str:
    """Return the name that a judge's verdicts are stored under: its model and its label."""
    return f"{judge.identity} as {judge.label}"


class Sitting:
    """One judge with its stored verdicts. The first missing verdict opens the model; call `close()` at the end."""

    def __init__(
        self,
        judge: Judge,
        verdicts: Verdicts,
        *,
        retries: Retries | None = None,
        log: Callable[[str], None] | None = None,
        log_folder: Path | None = None,
        limiters: Limiters | None = None,
    ) -> None:
        self.judge = judge
        self.verdicts = verdicts
        self.outcome = Outcome()
        self.asker: Asker | None = None
        self._model: Model | None = None
        self._opening = asyncio.Lock()
        self._log = log or (lambda line: None)
        self._log_folder = log_folder
        self._retries = retries
        self._limiters = limiters
        self._price = price_of(judge.spec)
        self._rate = judge.spec.typed_audio_rate()
        self._unreadable: dict[str, int] = {}  # rubric → number of unreadable verdicts in a row
        if judge.policy.budget_usd is not None and self._price is None:
            raise UsageError(
                f"the price of {judge.identity} is unknown; use budget_requests, or set OVERTONE_PRICES to a price file"
            )

    async def judgement(self, rubric: Rubric, subject: Subject) -> Judgement:
        """Collect all verdicts on a subject. Only missing ones are asked for; a failure becomes a draw's `problem`."""
        policy = self.judge.policy
        asked = [d for d in rubric.dimensions if d.asked(subject.style, subject.item)]
        orders = (False, True) if rubric.subject == "pair" and policy.swap else (False,)
        calls = [[d] for d in asked] if policy.calls == "apart" else [asked]
        draws = []
        for repeat in range(policy.repeats if asked else 0):
            for swapped in orders:
                values: dict[str, int | str] = {}
                reasons: dict[str, str] = {}
                problems: list[str] = []
                unread: list[str] = []
                for dimensions in calls:
                    verdict = await self._verdict(rubric, dimensions, subject, repeat, swapped)
                    own_keys = {d.key: twin(d.key) if swapped and d.scale else d.key for d in dimensions}
                    if isinstance(verdict, str):
                        problems.append(verdict)
                        unread += [] if isinstance(verdict, Skipped | Unanswered) else own_keys.values()
                    else:
                        values |= {own_keys[k]: _SWAPPED.get(v, v) if swapped else v for k, v in verdict.values.items()}
                        reasons |= {own_keys[k]: why for k, why in verdict.reasons.items()}
                skipped = not values and all(isinstance(problem, Skipped) for problem in problems)
                problem = "; ".join(dict.fromkeys(problems))
                draws.append(Draw(repeat, swapped, values, reasons, problem, skipped, tuple(unread)))
        return Judgement(subject, rubric.name, self.judge.label, tuple(draws))

    async def _verdict(
        self, rubric: Rubric, dimensions: Sequence[Dimension], subject: Subject, repeat: int, swapped: bool
    ) -> Verdict | str:
        """Return the verdict of one call, or the reason why it is missing."""
        contract = Contract(dimensions)
        self.outcome.asked += 1
        try:
            messages = build_messages(
                rubric, dimensions, contract, subject, swapped, self.judge.policy.hears, self._rate
            )
        except DataError as error:
            self.outcome.skipped += 1
            return Skipped(error)
        problem = ""
        for attempt in range(self.judge.policy.again + 1):
            key = self._key(messages, repeat, attempt)
            text = self.verdicts.get(subject.id, key)
            if text is None:
                try:
                    text = await self._ask(rubric, contract, subject, messages, key, repeat, attempt)
                except ModelFailure as failure:
                    self.outcome.failed += 1
                    return Unanswered(f"the judge did not answer: {failure}")
                except Stopped:
                    self.outcome.failed += 1
                    return Unanswered(f"not judged: {self._why_stopped(rubric)}")
            elif not attempt:
                self.outcome.cached += 1
            try:
                verdict = contract.read(text)
            except Unread as unread:
                problem = str(unread)
                continue
            self.outcome.answered += 1
            if not self._gave_up(rubric):
                self._unreadable[rubric.name] = 0
            return verdict
        self.outcome.unread += 1
        self._count_unreadable(rubric)
        return problem

    def _count_unreadable(self, rubric: Rubric) -> None:
        """Count an unreadable verdict, and stop using the rubric after UNREADABLE of them. Stored verdicts count too,
        so that repeating the command does not pay for the same number of unreadable verdicts again."""
        if self._gave_up(rubric):
            return
        self._unreadable[rubric.name] = self._unreadable.get(rubric.name, 0) + 1
        if self._gave_up(rubric):
            self._log(f"judge {self.judge.label}: {self._why_stopped(rubric)}")
            if not self.outcome.stopped:
                self.outcome.stopped, self.outcome.detail = "unreadable", self._why_stopped(rubric)

    def _gave_up(self, rubric: Rubric) -> bool:
        return self._unreadable.get(rubric.name, 0) >= UNREADABLE

    def _why_stopped(self, rubric: Rubric) -> str:
        if not self._gave_up(rubric):
            return self.outcome.detail or self.outcome.stopped
        return f"{UNREADABLE} verdicts in a row by the rubric {rubric.name} could not be read"

    def _key(self, messages: Sequence[Message], repeat: int, attempt: int) -> str:
        contents = [(m.role, [p if isinstance(p, str) else {"sha256": p.sha256} for p in m.parts]) for m in messages]
        seed = self._seed(repeat, attempt)
        asked = (identity(self.judge.spec), self.judge.policy.format, seed, repeat, attempt, contents)
        return hashlib.sha256(_encode(asked)).hexdigest()

    def _seed(self, repeat: int, attempt: int) -> int | None:
        seed = self.judge.policy.seed
        return None if seed is None else seed + repeat + attempt * _RETRY_STEP

    async def _ask(
        self,
        rubric: Rubric,
        contract: Contract,
        subject: Subject,
        messages: tuple[Message, ...],
        key: str,
        repeat: int,
        attempt: int,
    ) -> str:
        if self.outcome.stopped not in ("", "unreadable") or self._gave_up(rubric):
            raise Stopped
        asker = await self.open()
        request = Request(
            Key(subject.id, f"{self.judge.label}/{rubric.name}", repeat),
            messages,
            task="judge",
            seed=self._seed(repeat, attempt),
            schema=contract.schema if self.judge.policy.format == "schema" else None,
        )
        try:
            reply, attempts, _ = await asker.attempt(request, preflight=not asker.outcome.answered)
        except ModelFailure as failure:
            if failure.fatal:
                asker.stop("fatal", str(failure))
            raise
        finally:
            spent = asker.outcome
            self.outcome.requests, self.outcome.cost = spent.requests, spent.cost
            if spent.stopped:
                self.outcome.stopped, self.outcome.detail = spent.stopped, spent.detail
        asker.outcome.answered += 1
        self.verdicts.put(subject.id, key, stored_name(self.judge), rubric.identity, reply, attempts)
        return reply.text

    async def open(self) -> Asker:
        """Open the model if necessary and return its asker. Raises UsageError, e.g. for a missing key or program."""
        async with self._opening:
            if self.asker is None:
                model: Model = registry.find("models", self.judge.spec.kind).load(self.judge.spec)
                if self._log_folder is not None and hasattr(model, "log_folder"):
                    model.log_folder = self._log_folder
                self._model = model
                await model.open()
                policy = self.judge.policy
                self.asker = Asker(
                    model,
                    connections=policy.connections,
                    seed=policy.seed,
                    budget_requests=policy.budget_requests,
                    budget_usd=policy.budget_usd,
                    price=self._price,
                    policy=self._retries,
                    on_limit=lambda limit, why: self._log(f"judge {self.judge.label}, {why}: {limit} requests at once"),
                    limiters=self._limiters,
                    leads=False,
                    log=self._log,
                )
            return self.asker

    def stop(self, why: str) -> None:
        """Stop asking, and abandon the requests in flight."""
        if self.asker is not None:
            self.asker.stop("interrupted", why)
        self.outcome.stopped, self.outcome.detail = "interrupted", why

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


async def each(work: Callable[[T], Awaitable[None]], things: Iterable[T], connections: int) -> None:
    """Call `work` on the first thing alone, so that a wrong key costs one request, then on several things at a time."""
    todo = iter(things)

    async def worker() -> None:
        for thing in todo:
            await work(thing)

    for thing in todo:
        await work(thing)
        break
    await asyncio.gather(*(worker() for _ in range(connections)))


def judge_all(
    judge: Judge,
    rubric: Rubric,
    subjects: Sequence[Subject],
    cache: Path,
    *,
    progress: Callable[[int], None] = lambda number: None,
) -> tuple[list[Judgement], Outcome]:
    """Judge all subjects, as many at once as the policy has connections. Judgements are in the order of the subjects.

    Verdicts are stored in `cache`, so that each is asked for once. `progress` is called with the number judged so far.
    """
    by_id: dict[str, Judgement] = {}

    async def work() -> Outcome:
        with Verdicts(cache) as verdicts:
            sitting = Sitting(judge, verdicts)

            async def one(subject: Subject) -> None:
                by_id[subject.id] = await sitting.judgement(rubric, subject)
                progress(len(by_id))

            try:
                await each(one, subjects, judge.policy.connections)
            finally:
                await sitting.close()
            return sitting.outcome

    outcome = asyncio.run(work())
    return [by_id[subject.id] for subject in subjects], outcome
