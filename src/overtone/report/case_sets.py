"""The sets of cases that the links of a page open. Each set is stored once, as steps if it is small and as bits if
it is large.

A page requests the set of a number while it is written. Numbers over the same cases share one set.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from overtone.results.load import Reading


class Sets:
    """The sets of cases in a report. `place` converts cases to their numbers in the index."""

    def __init__(self, ids: Sequence[str], readings: Sequence[Reading]) -> None:
        self._numbers = {name: number for number, name in enumerate(ids)}
        self._several = len({r.benchmark for r in readings}) > 1
        self._benchmarks = [r.benchmark for r in readings]
        self._known: dict[tuple[int, ...], int] = {}
        self._resolved: dict[str, int | None] = {}
        self.packed: list[str] = []
        self.sizes: list[int] = []
        self.behind: dict[str, int] = {}  # full key of a finding → set

    def place(self, cases: Iterable[str], runs: Iterable[int]) -> list[int]:
        """Return the sorted index numbers of cases of some runs. Cases that the report does not show are left out."""
        if self._several:
            names = dict.fromkeys(self._benchmarks[n] for n in runs)
            cases = [f"{benchmark}/{case}" for case in cases for benchmark in names]
        return sorted({self._numbers[case] for case in cases if case in self._numbers})

    def add(self, numbers: Sequence[int]) -> int:
        """Store a set of cases and return its number. A set that is already stored keeps its number."""
        known = tuple(numbers)
        if known not in self._known:
            self._known[known] = len(self.packed)
            self.packed.append(packed(known, len(self._numbers)))
            self.sizes.append(len(known))
        return self._known[known]

    def once(self, key: str, cases: Callable[[], Sequence[int]]) -> int | None:
        """Return the number of the set of cases behind the key, or None if there are no cases. The cases of a key
        are computed only once."""
        if key not in self._resolved:
            numbers = cases()
            self._resolved[key] = self.add(numbers) if numbers else None
        return self._resolved[key]

    def json(self) -> dict[str, Any]:
        return {"sets": self.packed, "behind": self.behind}


def packed(numbers: Sequence[int], total: int) -> str:
    """Pack ascending numbers below `total` into text by the shorter of two methods: the steps between the numbers in
    seven-bit groups, or one bit for each possible number."""
    steps = bytearray()
    last = -1
    for number in numbers:
        step = number - last - 1
        last = number
        while step > 127:
            steps.append(step & 127 | 128)
            step >>= 7
        steps.append(step)
    if len(steps) <= (total + 7) // 8:
        return "s" + base64.b64encode(steps).decode()
    bits = bytearray((total + 7) // 8)
    for number in numbers:
        bits[number // 8] |= 1 << number % 8
    return "b" + base64.b64encode(bits).decode()
