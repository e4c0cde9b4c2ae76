"""A shard is a part of a run that one of several machines asks: `--shard 2/8`. `merge_shards` joins the parts.

Every shard reads the whole plan and keeps its own items, numbered as in the whole plan, so that the merged run has the
order of a run that was never split. A digest of the whole plan shows whether shards were asked for the same and whether
one is missing.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from overtone.errors import StoreError, UsageError
from overtone.runs.spread_order import Place, place, spread
from overtone.schema import Item

META = "shard"  # key in the meta table: "2/8"
PLAN = "shard_plan"  # key in the meta table: a Plans
MOST = 10_000
_encode = msgspec.json.Encoder().encode


class Shard(NamedTuple):
    """The shard with this number, from 1, of `of` shards."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        """The end of the shard's folder name."""
        return f"-shard-{self.number}-of-{self.of}"


def parse_shard(text: str) -> Shard:
    """Return the shard that a text such as "2/8" names. Raises UsageError."""
    match = re.fullmatch(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})", text)
    if match is None or not int(match[1]) <= int(match[2]) <= MOST:
        raise UsageError(
            f"shard: {text[:40]!r} does not name a shard; write I/N with 1 ≤ I ≤ N ≤ {MOST}, such as 2/8 for the "
            "second of eight"
        )
    return Shard(int(match[1]), int(match[2]))


def whole_name(name: str) -> str | None:
    """Return the folder name of the run that a shard's folder name belongs to, or None for another name."""
    match = re.fullmatch(r"(.+)-shard-[0-9]+-of-[0-9]+", name)
    return match[1] if match else None


def groups_of(shard: Shard, items: Iterable[Item]) -> frozenset[str]:
    """Return the groups of a shard, given all items of the benchmark, whichever of them a run asks.

    In the order that a limit uses, each group goes to the shard with the fewest turns so far. So two shards differ by
    at most the turns of one group, those of a limited run are similar too, and a group stays in its shard when a run is
    extended.
    """
    places: list[Place] = []
    turns: Counter[str] = Counter()
    for item in items:
        places.append(place(item))
        turns[item.group] += len(item.turns)
    own = set()
    loads = [(0, number) for number in range(1, shard.of + 1)]  # a heap
    for group in dict.fromkeys(places[index].group for index in spread(places)):
        load, number = loads[0]
        heapq.heapreplace(loads, (load + turns[group], number))
        if number == shard.number:
            own.add(group)
    return frozenset(own)


class Pass(Struct, frozen=True, array_like=True):
    """One plan of the whole run: the digest of its asks, and the numbers of its items and asks."""

    digest: str
    items: int
    asks: int


class Plans(Struct, frozen=True):
    """The plans that a shard was asked with, the first first, and the digest of the plan that was asked last."""

    current: str = ""
    passes: tuple[Pass, ...] = ()

    @property
    def last(self) -> Pass | None:
        """The plan that was asked last; None if the shard was stopped before it was planned."""
        return next((one for one in self.passes if one.digest == self.current), None)


def read_plans(meta: Mapping[str, str]) -> Plans:
    """Read the plans from a shard's meta table. Raises StoreError if they are unreadable."""
    try:
        plans = msgspec.json.decode(meta.get(PLAN, "{}"), type=Plans)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreError(f"the plan of this shard is unreadable ({error}); restore its run.db from a copy") from None
    return plans


class PlanDigest:
    """A digest of asks that does not depend on their order."""

    def __init__(self) -> None:
        self.asks = 0
        self._sum = 0

    def add(self, body: bytes, condition: str, repeat: int) -> None:
        """Add an ask of the item with this stored body."""
        data = b"\0".join((body, condition.encode(), str(repeat).encode()))
        self._sum += int.from_bytes(hashlib.blake2b(data, digest_size=16).digest())
        self.asks += 1

    def __str__(self) -> str:
        return f"{self._sum % 2**128:032x}"


class ShardPlan:
    """Takes a shard's items out of the pages of a plan, and numbers them as in the whole plan.

    `plans` are those of earlier commands. Their numbers stay, so those of this plan begin after them.
    """

    def __init__(self, groups: frozenset[str], repeats: int, plans: Plans) -> None:
        self._groups, self._repeats, self._plans = groups, repeats, plans
        self._first_item = 1 + sum(one.items for one in plans.passes)
        self._first_ask = 1 + sum(one.asks for one in plans.passes)
        self._items = 0
        self._digest = PlanDigest()

    def take(
        self, page: Sequence[tuple[Item, tuple[str, ...]]]
    ) -> tuple[list[tuple[Item, tuple[str, ...]]], list[tuple[int, int]]]:
        """Return the items of a page that belong to the shard, and for each its number and that of its first ask."""
        own, numbers = [], []
        for item, conditions in page:
            if item.group in self._groups:
                own.append((item, conditions))
                numbers.append((self._first_item + self._items, self._first_ask + self._digest.asks))
            body = _encode(item)
            for condition, repeat in itertools.product(conditions, range(self._repeats)):
                self._digest.add(body, condition, repeat)
            self._items += 1
        return own, numbers

    def stated(self) -> dict[str, str]:
        """Return the entry of the meta table that describes this plan and those before it."""
        digest, passes = str(self._digest), self._plans.passes
        if digest not in {one.digest for one in passes}:
            passes = (*passes, Pass(digest, self._items, self._digest.asks))
        return {PLAN: _encode(Plans(digest, passes)).decode()}


def shard_note(meta: Mapping[str, str]) -> str:
    """Return a sentence that says that a run is a shard; "" for a whole run."""
    if META not in meta:
        return ""
    return (
        f"This is shard {meta[META]} of a run, not the whole run: its numbers are those of its own items. "
        "'overtone merge' joins the shards."
    )
