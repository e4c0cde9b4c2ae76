"""A judge at work: what it is told, each verdict asked for once and kept, what the verdicts on a subject come to."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from overtone import registry
from overtone.audio import load_sound
from overtone.errors import EXIT_FAILURES, DataError, ModelFailure, UsageError
from overtone.judges import voice_description
from overtone.judges.contract import Contract, Unread
from overtone.judges.judge_input import Subject
from overtone.judges.policy import Judge
from overtone.judges.rubric import Dimension, Rubric, twin
from overtone.judges.verdict_cache import Verdicts
from overtone.models import Model
from overtone.runs.asker import Asker, Stopped
from overtone.runs.asker import Policy as Retries
from overtone.runs.limiter import Limiters
from overtone.runs.prices import price_of
from overtone.runs.settings import identity
from overtone.schema import UNKNOWN, Key, Message, Request, Sound

_TWINS = {"reply_a": "reply_b", "reply_b": "reply_a", "a": "b", "b": "a"}
_SWAPPED: dict[int | str, int | str] = {"A": "B", "B": "A"}
_AGAIN = 1_000_003  # between the seeds of one question's attempts
UNREADABLE = 20  # verdicts of one rubric in a row that cannot be read, after which no more are asked for
T = TypeVar("T")
Detail = dict[str, float | int | str | None]
_encode = msgspec.json.Encoder(order="sorted").encode


class NoVerdicts(DataError):
    """A judge gave no verdict at all where it was to be measured."""

    exit_code = EXIT_FAILURES


class Skipped(str):
    """Why nothing could be put before a judge, such as a reply without the audio that a rubric asks about."""


class Unanswered(str):
    """Why no verdict came: the judge failed, or was stopped before this one."""


class Draw(Struct, frozen=True):
    """One verdict. Of a pair, A is the subject's own A, in whichever order the two were put. `problem` says what could
    not be read or did not come; `values` then lacks it. `unread` are the dimensions whose verdict came and could not be
    read."""

    repeat: int
    swapped: bool
    values: dict[str, int | str]
    reasons: dict[str, str]
    problem: str = ""
    skipped: bool = False  # nothing was put before the judge
    unread: tuple[str, ...] = ()


def asked_as(judge: Judge) -> str:
    """Return the name under which a judge's verdicts are kept: its model and its label."""
    return f"{judge.identity} as {judge.label}"


class Judgement(Struct, frozen=True):
    """All verdicts of one judge by one rubric on one subject."""

    subject: Subject
    rubric: str
    judge: str
    draws: tuple[Draw, ...]

    def numbers(self, dimension: Dimension) -> list[float]:
        """What the verdicts that could be read count."""
        return [dimension.number(d.values[dimension.key]) for d in self.draws if dimension.key in d.values]

    def value(self, dimension: Dimension, least: int = 1) -> float | None:
        """Their mean, or None with fewer than `least`."""
        found = self.numbers(dimension)
        return sum(found) / len(found) if len(found) >= max(1, least) else None

    def told(self, dimension: Dimension, least: int = 1) -> tuple[float | None, str, Detail]:
        """What is stored of it: the value, else why there is none; and what stands behind it."""
        read = [draw for draw in self.draws if dimension.key in draw.values]
        problems = "; ".join(dict.fromkeys(x.problem for x in self.draws if x.problem))[:1000]
        value = self.value(dimension, least)
        unread = sum(dimension.key in draw.unread for draw in self.draws)
        skipped = sum(draw.skipped for draw in self.draws)
        detail: Detail = {
            "why": next((draw.reasons.get(dimension.key, "") for draw in read), ""),
            "values": ",".join(str(draw.values[dimension.key]) for draw in read),
            "draws": len(self.draws),
            "unread": unread,
            "skipped": skipped,
            "missing": len(self.draws) - len(read) - unread - skipped,
            "problems": problems,
        }
        return value, "" if value is not None else problems or f"{len(read)} valid verdicts of {least} wanted", detail


class Outcome(Struct):
    """How a judge's work went. `asked` counts verdicts wanted; `cached` those that were paid for before; `skipped`
    those for which there was nothing to put before the judge, such as the audio of a reply without any; `by_rule`
    counts replies that the rubric scores without asking. `stopped` is empty, or budget, interrupted, fatal or
    unreadable."""

    asked: int = 0
    answered: int = 0
    cached: int = 0
    unread: int = 0
    failed: int = 0
    skipped: int = 0
    requests: int = 0
    cost: float = 0.0
    stopped: str = ""
    detail: str = ""
    by_rule: int = 0

    @property
    def empty(self) -> bool:
        """Whether the judge was of no use at all: not one verdict, and no reply that was scored by rule."""
        return not self.answered and not self.by_rule


class Sitting:
    """One judge with its verdicts. The model is opened when a verdict is first missing; `close()` it at the end."""

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
        self._unreadable: dict[str, int] = {}  # rubric → how many of its verdicts in a row could not be read
        if judge.policy.budget_usd is not None and self._price is None:
            raise UsageError(
                f"the price of {judge.identity} is not known; "
                "use budget_requests, or name a price file in OVERTONE_PRICES"
            )

    async def judgement(self, rubric: Rubric, subject: Subject) -> Judgement:
        """Every draw of the policy; nothing that was answered before is asked again. Failures are problems of draws."""
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
                    found = await self._verdict(rubric, dimensions, subject, repeat, swapped)
                    turned = {d.key: twin(d.key) if swapped and d.scale else d.key for d in dimensions}
                    if isinstance(found, str):
                        problems.append(found)
                        unread += [] if isinstance(found, Skipped | Unanswered) else turned.values()
                    else:
                        values |= {turned[k]: _SWAPPED.get(v, v) if swapped else v for k, v in found[0].items()}
                        reasons |= {turned[k]: why for k, why in found[1].items()}
                skipped = not values and all(isinstance(problem, Skipped) for problem in problems)
                problem = "; ".join(dict.fromkeys(problems))
                draws.append(Draw(repeat, swapped, values, reasons, problem, skipped, tuple(unread)))
        return Judgement(subject, rubric.name, self.judge.label, tuple(draws))

    async def _verdict(
        self, rubric: Rubric, dimensions: Sequence[Dimension], subject: Subject, repeat: int, swapped: bool
    ) -> tuple[dict[str, int | str], dict[str, str]] | str:
        """Values and reasons of one call, or why there are none."""
        contract = Contract(dimensions)
        self.outcome.asked += 1
        try:
            messages = told(rubric, dimensions, contract, subject, swapped, self.judge.policy.hears, self._rate)
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
            return verdict.values, verdict.reasons
        self.outcome.unread += 1
        self._count_unreadable(rubric)
        return problem

    def _count_unreadable(self, rubric: Rubric) -> None:
        """Stop asking by a rubric whose verdicts cannot be read. Verdicts kept from before count too, so that the same
        command does not pay for another twenty."""
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
        parts = [(m.role, [p if isinstance(p, str) else {"sha256": p.sha256} for p in m.parts]) for m in messages]
        seed = self._seed(repeat, attempt)
        asked = (identity(self.judge.spec), self.judge.policy.format, seed, repeat, attempt, parts)
        return hashlib.sha256(_encode(asked)).hexdigest()

    def _seed(self, repeat: int, attempt: int) -> int | None:
        seed = self.judge.policy.seed
        return None if seed is None else seed + repeat + attempt * _AGAIN

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
            told = asker.outcome
            self.outcome.requests, self.outcome.cost = told.requests, told.cost
            if told.stopped:
                self.outcome.stopped, self.outcome.detail = told.stopped, told.detail
        asker.outcome.answered += 1
        self.verdicts.put(subject.id, key, asked_as(self.judge), rubric.identity, reply, attempts)
        return reply.text

    async def open(self) -> Asker:
        """The model, ready to be asked. UsageError where it cannot be: a key that is not set, a program not there."""
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
        """Ask no more; what is in flight is given up."""
        if self.asker is not None:
            self.asker.stop("interrupted", why)
        self.outcome.stopped, self.outcome.detail = "interrupted", why

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


# ── what the judge is told ──────────────────────────────────────────────────────────────────────────────────────────


def told(
    rubric: Rubric,
    dimensions: Sequence[Dimension],
    contract: Contract,
    subject: Subject,
    swapped: bool,
    hears: str,
    rate: int | None = None,
) -> tuple[Message, ...]:
    """Return the messages of one call. Sounds are resampled to `rate` where one is given.

    Raises DataError, worded as a reason, where the subject lacks what the rubric puts before a judge. Everything shown
    stands between tags and is data: the rubric says so, and nothing shown can end its tag.
    """
    system = "\n\n".join([rubric.system.strip(), *map(_scale, dimensions)])
    parts: list[str | Sound] = []
    for key, heading in _shown(rubric, subject):
        text = subject.texts.get(_TWINS.get(key, key) if swapped else key, "").strip()
        if key == "cue" and subject.item is not None and subject.item.status == UNKNOWN:
            raise DataError("the benchmark's files do not say what was heard")
        if not text and not key.startswith("reply"):
            continue
        safe = re.sub(rf"</(?=\s*{key})", "< /", text or "(no words)", flags=re.I)
        parts.append(f"{heading}:\n<{key}>\n{safe}\n</{key}>")
    for key in rubric.hears:
        path = subject.sounds.get(_TWINS.get(key, key) if swapped else key)
        if hears == "nothing":
            raise DataError(f"the rubric {rubric.name} needs a judge that hears; use hears=audio or hears=description")
        if path is None:
            raise DataError("the reply has no audio" if key == "reply" else f"there is no sound for {key!r}")
        if hears == "description":
            parts.append(f"{rubric.heading(key)}, as measured:\n<{key}>\n{voice_description.describe(path)}\n</{key}>")
        else:
            parts += [f"{rubric.heading(key)}:", load_sound(path, rate=rate, name=path.name)]
    parts.append(contract.instruction)
    return Message("system", (system,)), Message("user", tuple(_joined(parts)))


def _shown(rubric: Rubric, subject: Subject) -> Iterator[tuple[str, str]]:
    """The texts that are shown and their headings; of a group those of one variant after the other, numbered from 1."""
    if rubric.subject != "group":
        yield from ((key, rubric.heading(key)) for key in rubric.shows)
        return
    number = 1
    while f"reply_{number}" in subject.texts:
        yield from ((f"{key}_{number}", f"Variant {number}. {rubric.heading(key)}") for key in rubric.shows)
        number += 1


def _joined(parts: Sequence[str | Sound]) -> Iterator[str | Sound]:
    """Neighbouring texts as one part."""
    held: list[str] = []
    for part in parts:
        if isinstance(part, str):
            held.append(part)
            continue
        yield "\n\n".join(held)
        held = []
        yield part
    yield "\n\n".join(held)


def _scale(d: Dimension) -> str:
    lines = [f"{d.label} ({d.key}): {d.question}"]
    lines += [f"  {answer}: {d.anchors[str(answer)]}" for answer in d.menu if str(answer) in d.anchors]
    return "\n".join(lines)


def signature(
    judge: Judge, rubric: Rubric, dimension: Dimension, *, transcript: bool, heard_by: str = "", felt_by: str = ""
) -> str:
    """What a judge's score depends on, for its score on one dimension."""
    policy = judge.policy
    hears = {"audio": "audio", "description": voice_description.NAME, "nothing": "nothing"}[policy.hears]
    fields = [
        f"{dimension.key}@{judge.label}",
        f"v{rubric.version}",
        f"rubric:{rubric.identity}",
        f"judge:{judge.identity}",
        f"temperature:{'model' if policy.temperature is None else f'{policy.temperature:g}'}",
        f"seed:{'none' if policy.seed is None else policy.seed}",
        f"repeats:{policy.repeats}",
        f"least:{policy.least}",
        f"calls:{policy.calls}",
        f"format:{policy.format}",
        f"hears:{hears if rubric.hears else 'nothing'}",
        f"text:{_text(rubric, transcript)}{f':{heard_by}' if heard_by and transcript else ''}",
    ]
    if felt_by:
        fields.append(f"emotion:{felt_by}")
    if rubric.subject == "pair":
        fields.append(f"swap:{'yes' if policy.swap else 'no'}")
    return "|".join(fields)


def _text(rubric: Rubric, transcript: bool) -> str:
    """Where the words of the reply come from that the judge reads, if it reads any."""
    if not any(key.startswith("reply") for key in rubric.shows):
        return "none"
    return "transcript" if transcript else "stream"


# ── many subjects ───────────────────────────────────────────────────────────────────────────────────────────────────


async def each(work: Callable[[T], Awaitable[None]], things: Iterable[T], connections: int) -> None:
    """Do the work on everything: on the first thing alone, so that a wrong key costs one request, then several at a
    time."""
    todo = iter(things)

    async def worker() -> None:
        for thing in todo:
            await work(thing)

    for thing in todo:
        await work(thing)
        break
    await asyncio.gather(*(worker() for _ in range(connections)))


async def ask(
    judge: Judge,
    rubric: Rubric,
    subjects: Iterable[Subject],
    cache: Path,
    *,
    on_judgement: Callable[[Judgement], None] | None = None,
    log: Callable[[str], None] | None = None,
) -> Outcome:
    """Judge all subjects, as many at once as the policy has connections; a judgement is handed over as it is made."""
    with Verdicts(cache) as verdicts:
        sitting = Sitting(judge, verdicts, log=log)

        async def one(subject: Subject) -> None:
            judgement = await sitting.judgement(rubric, subject)
            if on_judgement:
                on_judgement(judgement)

        try:
            await each(one, subjects, judge.policy.connections)
        finally:
            await sitting.close()
        return sitting.outcome


def judged(judge: Judge, rubric: Rubric, subjects: Sequence[Subject], cache: Path) -> tuple[list[Judgement], Outcome]:
    """The same, waited for; judgements come in the order of the subjects."""
    found: dict[str, Judgement] = {}
    outcome = asyncio.run(ask(judge, rubric, subjects, cache, on_judgement=lambda j: found.update({j.subject.id: j})))
    return [found[s.id] for s in subjects], outcome
