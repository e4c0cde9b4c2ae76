"""Which records make up each batch, decided from lengths alone: the same on every process and after every restart.

Lists are mixed by batch: each batch is of one task, drawn in proportion to the tasks' lists. Every process plans all
batches and takes its own, so processes agree on the task, share no record, and take as many batches.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from typing import Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from overtone.echat.data import layout
from overtone.echat.data.layout import Sequence, Task, Think, Tokens, Unfit
from overtone.echat.data.records import Record, understanding
from overtone.errors import DataError

WINDOW = 1024  # records among which those of like length are put together, or more: those of so many batches
BATCHES = 16
Measured = tuple[int, int, str]  # of a record laid out: positions, targets, why it is left out
_DRAW, _ORDER = 1_000_003, 7_919  # keep the random numbers of different things apart


class Source(Struct):
    """One list of the mix: records laid out for one task. `lengths` (positions; 0: left out) come from `surveyed`."""

    records: Many[Record]
    task: Task
    weight: float = 1.0  # 2 takes every record twice, 0.1 a random tenth, drawn anew each time round
    style: Literal["understand", "chat"] = "chat"
    thoughts: tuple[Think, ...] = ("",)  # drawn among these
    streaming: float = 0.0  # share of streaming sequences
    reply_tag: bool = False
    all_heard: bool = False
    name: str = ""
    lengths: Many[int] = ()
    targets: Many[int] = ()  # of the positions, those that are predicted; () = not counted
    left_out: dict[str, int] = field(default_factory=dict)  # reason → how many records

    @property
    def laid_out(self) -> tuple[object, ...]:
        """What its sequences depend on, besides the records: lists that have it in common differ in weight alone."""
        answers = self.style == "chat" and self.task in ("s2t", "s2s")
        flags = (self.reply_tag, self.all_heard) if answers else ()
        return self.task, self.style, self.thoughts, self.streaming, flags

    def lay(self, at: int, tok: Tokens, rng: random.Random) -> Sequence:
        """The sequence of its record number `at`. Raises Unfit for one that is not for this list."""
        record = self.records[at]
        # A record whose task is to write down and name has its own words where others have a reply.
        if self.style == "chat" and self.task != "t2s" and understanding(record) is not None:
            raise Unfit(record.key, "to be understood, not answered")
        return layout.build(
            record,
            self.task,
            tok,
            think=rng.choice(self.thoughts),
            streaming=rng.random() < self.streaming,
            rng=rng,
            style=self.style,
            reply_tag=self.reply_tag,
            all_heard=self.all_heard,
        )

    def room(self, at: int) -> float:
        """The share of a batch's budget that its kind may fill: as published."""
        long = any(self.thoughts) or self.streaming > 0 or self.task == "t2t" or bool(self.records[at].history)
        return 0.6 if long else 0.8 if self.task == "s2s" else 1.0


class Planned(Struct, frozen=True):
    """One batch of this process: its number, its task, how often the task's lists were gone through, its records."""

    index: int
    task: str
    epoch: int
    picks: tuple[tuple[int, int], ...]  # source, record


def measuring(
    source: Source,
    tok: Tokens,
    seconds: Callable[[layout.ClipRef], float],
    positions: Callable[[float], int],
    longest: int = layout.MAX_SEQUENCE,
) -> Callable[[int], Measured]:
    """What measures one record of a list, here or in another process."""

    def measure(at: int) -> Measured:
        try:
            # The longest of its thoughts and prompts is not known before it is drawn: one draw stands for all.
            sequence = source.lay(at, tok, random.Random(at))
        except Unfit as error:
            return 0, 0, error.why
        clips = [seconds(clip) for clip in sequence.clips]
        if why := layout.why_not(sequence, clips, positions, longest):
            return 0, 0, why
        predicted = len(sequence.targets) - sequence.targets.count(layout.IGNORED)
        return layout.length(sequence, clips, positions), predicted, ""

    return measure


def surveyed(source: Source, found: Many[Measured]) -> Source:
    """The source with its lengths, and what is left out of it and why. Raises DataError where nothing remains."""
    lengths, targets = [length for length, _, _ in found], [predicted for _, predicted, _ in found]
    left = Counter(why for _, _, why in found if why)
    if not any(lengths):
        told = ", ".join(f"{why} ({count})" for why, count in left.most_common(3)) or "the list is empty"
        raise DataError(
            f"{source.name or source.task}: nothing to train on of {len(lengths)} records: {told}; "
            "give data for this task, or leave its list out of the stage"
        )
    source.lengths, source.targets, source.left_out = lengths, targets, dict(left)
    return source


class Mixture:
    """Batches without end. `budget` is how many positions a batch may have, padding counted; `targets` how many of them
    may be predicted.

    A task is drawn in proportion to the records of its lists. Where batches of a task may grow larger than those of the
    densest list, it is drawn less often by as much: its share of all positions stays what it was.
    """

    def __init__(
        self, sources: Many[Source], *, budget: int, targets: float = math.inf, seed: int = 777, rank: int = 0,
        world: int = 1,
    ) -> None:  # fmt: skip
        if not sources:
            raise DataError("nothing to train on: none of the stage's lists has data; give some")
        self.sources, self.seed, self.rank, self.world = sources, seed, rank, world
        self.tasks: list[str] = sorted({source.task for source in sources})
        dense = max(sum(source.targets) / max(sum(source.lengths), 1) for source in sources)
        least = min(budget, targets / dense) if dense else budget  # positions of a batch of the densest list
        self._charges: list[NDArray[np.float64]] = []  # the part of a batch that a record is; 0: left out
        sizes, batches, before = (dict.fromkeys(self.tasks, 0.0) for _ in range(3))
        for number, source in enumerate(sources):
            length = np.array(source.lengths, np.float64)
            room = np.array([source.room(at) for at in range(len(length))])
            self._charges.append(
                np.maximum(length / (room * budget), np.array(source.targets or [0] * len(length)) / targets)
            )
            usable, taken = length > 0, math.prod(self._taken(number))
            if taken:
                sizes[source.task] += taken
                batches[source.task] += taken * float(self._charges[number][usable].mean())
                before[source.task] += taken * float((length / (room * least))[usable].mean())
        self.weights = {task: sizes[task] * batches[task] / max(before[task], 1e-9) for task in self.tasks}
        for task, size in sizes.items():
            if size < world:
                raise DataError(
                    f"{task}: {size:.0f} records for {world} processes; give more data, or start fewer processes"
                )
        self._kept: dict[str, tuple[int, list[tuple[tuple[int, int], ...]]]] = {}

    def task_at(self, index: int) -> str:
        """The task of a batch: the same on every process."""
        return random.Random(self.seed * _DRAW + index).choices(self.tasks, list(self.weights.values()))[0]

    def batches(self, start: int = 0) -> Iterator[Planned]:
        """This process's batches from number `start` on; skipping those before costs no more than their draws."""
        done = Counter(self.task_at(index) for index in range(start))
        epochs = dict.fromkeys(self.tasks, 0)
        for task in self.tasks:
            while done[task] >= (steps := self._steps(task, epochs[task])):
                done[task] -= steps
                epochs[task] += 1
        index = start
        while True:
            task = self.task_at(index)
            if done[task] >= self._steps(task, epochs[task]):
                done[task], epochs[task] = 0, epochs[task] + 1
            plan = self.plan(task, epochs[task])
            yield Planned(index, task, epochs[task], plan[done[task] * self.world + self.rank])
            done[task] += 1
            index += 1

    def plan(self, task: str, epoch: int) -> list[tuple[tuple[int, int], ...]]:
        """All batches of a task's lists, gone through once, for all processes; the last one planned is kept."""
        if task in self._kept and self._kept[task][0] == epoch:
            return self._kept[task][1]
        rng = np.random.default_rng([self.seed % 2**32, epoch, _ORDER, self.tasks.index(task)])
        picks, charges, order = self._picks(task, rng)
        most = max(len(picks) // self.world, 1)  # records in a batch, so that there is one for every process
        groups: list[list[tuple[tuple[int, int], ...]]] = []
        batches: list[tuple[tuple[int, int], ...]] = []
        window = max(WINDOW, round(BATCHES / max(float(charges.mean()), 1e-9))) if len(charges) else WINDOW
        for at in range(0, len(order), window):
            near = order[at : at + window]
            near = near[np.argsort(charges[near], kind="stable")]
            batches += self._batches(picks, charges, near, most)
        if spare := len(batches) % self.world:  # any of them: the last are the longest, and would never be learnt
            gone = set(rng.choice(len(batches), spare, replace=False).tolist())
            batches = [batch for at, batch in enumerate(batches) if at not in gone]
        # Processes that wait for each other take batches of like length: neighbours stay together in the shuffle.
        for at in range(0, len(batches), self.world):
            groups.append(batches[at : at + self.world])
        plan = [batch for g in rng.permutation(len(groups)) for batch in groups[g]]
        self._kept[task] = (epoch, plan)
        return plan

    def _steps(self, task: str, epoch: int) -> int:
        return len(self.plan(task, epoch)) // self.world

    def _taken(self, number: int) -> tuple[int, int]:
        """How many records of a list are taken each time round, and how often: by the whole part of its weight."""
        weight, usable = self.sources[number].weight, int(np.count_nonzero(self._charges[number]))
        return (usable, int(weight)) if weight >= 1 else (min(usable, max(round(usable * weight), 1)), 1)

    def _picks(
        self, task: str, rng: np.random.Generator
    ) -> tuple[list[tuple[int, int]], NDArray[np.float64], NDArray[np.int64]]:
        """The records of one time round, what they are charged, and their order."""
        picks: list[tuple[int, int]] = []
        keys: list[NDArray[np.float64]] = [np.zeros(0)]
        for number, source in enumerate(self.sources):
            if source.task != task:
                continue
            usable, (some, times) = np.flatnonzero(self._charges[number]), self._taken(number)
            if some < len(usable):
                usable = np.sort(rng.choice(usable, some, replace=False))
            for time in range(times):
                picks += [(number, at) for at in usable.tolist()]
                # A list that comes several times is gone through once before it comes again.
                keys.append((time + rng.random(len(usable))) / times)
        charges = np.array([self._charges[number][at] for number, at in picks], np.float64)
        return picks, charges, np.argsort(np.concatenate(keys), kind="stable")

    def _batches(
        self, picks: list[tuple[int, int]], charges: NDArray[np.float64], order: NDArray[np.int64], most: int
    ) -> Iterator[tuple[tuple[int, int], ...]]:
        """Batches of records in order, as full as they may be; one that is too long alone is a batch alone."""
        held: list[tuple[int, int]] = []
        longest = 0.0
        for at in order.tolist():
            wider = max(longest, float(charges[at]))
            if held and (wider * (len(held) + 1) > 1 + 1e-9 or len(held) >= most):
                yield tuple(held)
                held, wider = [], float(charges[at])
            held.append(picks[at])
            longest = wider
        if held:
            yield tuple(held)
