"""Decide which records form each batch, from lengths alone, so that all processes and restarts agree.

Lists are mixed by batch: each batch has one task, drawn in proportion to the tasks' lists. Every process plans all
batches and uses its own, so processes agree on the task, share no record, and have equally many batches.
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
from overtone.echat.data.exchange_records import Record, understanding
from overtone.echat.data.layout import Sequence, Task, Think, Tokens, Unfit
from overtone.errors import DataError

WINDOW = 1024  # records that are sorted by length together, at least
BATCHES = 16  # batches that are sorted by length together, at least
Measured = tuple[int, int, str]  # positions, targets, and the reason if the record is left out
_DRAW, _ORDER = 1_000_003, 7_919  # separate the random numbers of different purposes


class Source(Struct):
    """One list of the mix: records for one task. `surveyed` sets `lengths`, in positions; a length of 0 means left
    out."""

    records: Many[Record]
    task: Task
    weight: float = 1.0  # 2 uses every record twice, 0.1 a random tenth per epoch
    style: Literal["understand", "chat"] = "chat"
    thoughts: tuple[Think, ...] = ("",)  # one is drawn per sequence
    streaming: float = 0.0  # share of streaming sequences
    reply_tag: bool = False
    all_heard: bool = False
    name: str = ""
    lengths: Many[int] = ()
    targets: Many[int] = ()  # number of predicted positions; () = not counted
    left_out: dict[str, int] = field(default_factory=dict)  # reason → number of records
    share: float = 0.0  # of the records of all lists that are laid out alike and have a share; 0 = none

    @property
    def laid_out(self) -> tuple[object, ...]:
        """The settings that, together with the records, determine the sequences.

        Two lists with equal settings and records differ only in weight.
        """
        answers = self.style == "chat" and self.task in ("s2t", "s2s")
        flags = (self.reply_tag, self.all_heard) if answers else ()
        return self.task, self.style, self.thoughts, self.streaming, flags

    def lay_out(self, at: int, tok: Tokens, rng: random.Random) -> Sequence:
        """Return the sequence of record `at`. Raises Unfit if the record does not belong to this list."""
        record = self.records[at]
        # An understanding record has its own words in place of a reply.
        if self.style == "chat" and self.task != "t2s" and understanding(record) is not None:
            raise Unfit(record.key, "for understanding only")
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
        """Return the share of a batch's token budget that records like this one may fill. The shares are the published
        ones."""
        long = any(self.thoughts) or self.streaming > 0 or self.task == "t2t" or bool(self.records[at].history)
        return 0.6 if long else 0.8 if self.task == "s2s" else 1.0


class Planned(Struct, frozen=True):
    """A planned batch of this process: its index, task, epoch and records."""

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
    """Return a function that measures one record of a list, in this or another process."""

    def measure(at: int) -> Measured:
        try:
            # Thoughts and prompts are drawn at random; one draw serves as an estimate for all.
            sequence = source.lay_out(at, tok, random.Random(at))
        except Unfit as error:
            return 0, 0, error.why
        clips = [seconds(clip) for clip in sequence.clips]
        if why := layout.why_not(sequence, clips, positions, longest):
            return 0, 0, why
        predicted = len(sequence.targets) - sequence.targets.count(layout.IGNORED)
        return layout.length(sequence, clips, positions), predicted, ""

    return measure


def surveyed(source: Source, measured: Many[Measured]) -> Source:
    """Set a list's lengths, and the reasons for records left out. Raises DataError if nothing remains."""
    lengths, targets = [length for length, _, _ in measured], [predicted for _, predicted, _ in measured]
    left = Counter(why for _, _, why in measured if why)
    if not any(lengths):
        reasons = ", ".join(f"{why} ({count})" for why, count in left.most_common(3)) or "the list is empty"
        raise DataError(
            f"{source.name or source.task}: none of {len(lengths)} records can be trained on: {reasons}; "
            "give data for this task, or remove its list from the stage"
        )
    source.lengths, source.targets, source.left_out = lengths, targets, dict(left)
    return source


class Mixture:
    """An endless sequence of batches.

    `budget` limits the positions of a batch, padding included; `targets` limits its predicted positions. A task is
    drawn in proportion to the records of its lists. Tasks with few targets have larger batches, because `targets` fills
    them later. Such a task is drawn less often, so that its share of all positions stays the same.
    """

    def __init__(
        self, sources: Many[Source], *, budget: int, targets: float = math.inf, seed: int = 777, rank: int = 0,
        world: int = 1,
    ) -> None:  # fmt: skip
        if not sources:
            raise DataError("nothing to train on: none of the stage's lists has data")
        self.sources, self.seed, self.rank, self.world = sources, seed, rank, world
        self.tasks: list[str] = sorted({source.task for source in sources})
        dense = max(sum(source.targets) / max(sum(source.lengths), 1) for source in sources)
        least = min(budget, targets / dense) if dense else budget  # positions of a batch of the densest list
        self._charges: list[NDArray[np.float64]] = []  # the fraction of a batch that a record fills; 0: left out
        sizes, batches, before = (dict.fromkeys(self.tasks, 0.0) for _ in range(3))
        lengths = [np.array(source.lengths, np.float64) for source in sources]
        rooms = [np.array([source.room(at) for at in range(len(source.lengths))]) for source in sources]
        for source, length, room in zip(sources, lengths, rooms, strict=True):
            self._charges.append(
                np.maximum(length / (room * budget), np.array(source.targets or [0] * len(length)) / targets)
            )
        for number, (source, length, room) in enumerate(zip(sources, lengths, rooms, strict=True)):
            usable, taken = length > 0, self._taken(number)
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
        self._cached: dict[str, tuple[int, list[tuple[tuple[int, int], ...]]]] = {}

    def task_at(self, index: int) -> str:
        """Return the task of a batch, which is the same on every process."""
        return random.Random(self.seed * _DRAW + index).choices(self.tasks, list(self.weights.values()))[0]

    def batches(self, start: int = 0) -> Iterator[Planned]:
        """Yield this process's batches from index `start`. Skipping earlier batches only costs their random draws."""
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
        """Return all batches of one epoch of a task, for all processes. The latest plan is cached."""
        if task in self._cached and self._cached[task][0] == epoch:
            return self._cached[task][1]
        rng = np.random.default_rng([self.seed % 2**32, epoch, _ORDER, self.tasks.index(task)])
        picks, charges, order = self._picks(task, rng)
        most = max(len(picks) // self.world, 1)  # records per batch, so that every process gets a batch
        groups: list[list[tuple[tuple[int, int], ...]]] = []
        batches: list[tuple[tuple[int, int], ...]] = []
        window = max(WINDOW, round(BATCHES / max(float(charges.mean()), 1e-9))) if len(charges) else WINDOW
        for at in range(0, len(order), window):
            near = order[at : at + window]
            near = near[np.argsort(charges[near], kind="stable")]
            batches += self._batches(picks, charges, near, most)
        if spare := len(batches) % self.world:  # drop random ones: the last are the longest, and would never be used
            gone = set(rng.choice(len(batches), spare, replace=False).tolist())
            batches = [batch for at, batch in enumerate(batches) if at not in gone]
        # Processes wait for each other, so batches of similar length stay together in the shuffle.
        for at in range(0, len(batches), self.world):
            groups.append(batches[at : at + self.world])
        plan = [batch for g in rng.permutation(len(groups)) for batch in groups[g]]
        self._cached[task] = (epoch, plan)
        return plan

    def _steps(self, task: str, epoch: int) -> int:
        return len(self.plan(task, epoch)) // self.world

    def _taken(self, number: int) -> int:
        """Return how many records an epoch takes from a list, repetitions included.

        Lists with a share together take as many as they have, weights included.
        """
        source = self.sources[number]
        if not source.share:
            return self._own(number)
        alike = [n for n, other in enumerate(self.sources) if other.share and other.laid_out == source.laid_out]
        every = sum(self._own(n) for n in alike)
        return max(round(every * source.share / sum(self.sources[n].share for n in alike)), 1)

    def _own(self, number: int) -> int:
        """Return how many records of a list its weight asks for."""
        weight, usable = self.sources[number].weight, int(np.count_nonzero(self._charges[number]))
        return usable * int(weight) if weight >= 1 else min(usable, max(round(usable * weight), 1))

    def _picks(
        self, task: str, rng: np.random.Generator
    ) -> tuple[list[tuple[int, int]], NDArray[np.float64], NDArray[np.int64]]:
        """Return the records of one epoch, the fraction of a batch that each record fills, and their order."""
        picks: list[tuple[int, int]] = []
        keys: list[NDArray[np.float64]] = [np.zeros(0)]
        for number, source in enumerate(self.sources):
            if source.task != task:
                continue
            usable = np.flatnonzero(self._charges[number])
            whole, more = divmod(self._taken(number), max(len(usable), 1))
            rounds = [usable] * whole
            if more:
                rounds.append(np.sort(rng.choice(usable, more, replace=False)))
            for time, some in enumerate(rounds):
                picks += [(number, at) for at in some.tolist()]
                # A repeated list is used completely before its next repetition.
                keys.append((time + rng.random(len(some))) / len(rounds))
        charges = np.array([self._charges[number][at] for number, at in picks], np.float64)
        return picks, charges, np.argsort(np.concatenate(keys), kind="stable")

    def _batches(
        self, picks: list[tuple[int, int]], charges: NDArray[np.float64], order: NDArray[np.int64], most: int
    ) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield batches of records in order, as full as possible. A record that exceeds the budget is its own batch."""
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
