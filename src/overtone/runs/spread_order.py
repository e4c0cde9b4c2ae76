"""Order a benchmark's items so that the first n, for every n, are spread over levels, tasks and cues.

A limit or a budget takes the first items of this order, so a larger sample always contains a smaller one.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from overtone.schema import Item


class Place(NamedTuple):
    """The properties of an item that the order is spread over."""

    level: int
    task: str
    category: str
    style: str
    cue: str
    group: str


def place(item: Item) -> Place:
    return Place(item.level, item.task, item.category, item.style, item.cue, item.group)


Bucket = list[tuple[int, int]]  # a number for the group, and the item's index


def spread(places: Iterable[Place]) -> Iterator[int]:
    """Yield the index of every place. Each step chooses among the values that were chosen least so far.

    It chooses the level first, then the sub-task within the level, the style within the level, and the cue over all
    levels. Within these, scripts come in a pseudo-random order that is the same on every machine and at all levels, so
    that a sample tends to contain the same scripts at each level.
    """
    tree: dict[int, dict[tuple[str, str], dict[str, dict[str, Bucket]]]] = {}
    for index, one in enumerate(places):
        styles = tree.setdefault(one.level, {}).setdefault((one.task, one.category), {})
        styles.setdefault(one.style, {}).setdefault(one.cue, []).append((_number(one.group), index))
    for tasks in tree.values():
        for styles in tasks.values():
            for cues in styles.values():
                cues.update({cue: _by_rounds(bucket) for cue, bucket in cues.items()})
    taken: Counter[Hashable] = Counter()
    while tree:
        level = min(tree, key=lambda one: (taken[one], one))
        tasks = tree[level]
        task = min(tasks, key=lambda one: (taken[level, one], _number("/".join(one))))
        styles = tasks[task]
        style = min(styles, key=lambda one: (taken[level, one], _number(one)))
        cues = styles[style]
        cue = min(cues, key=lambda one: (taken["cue", one], _number(one)))
        yield cues[cue].pop()[1]
        taken.update((level, (level, task), (level, style), ("cue", cue)))
        if not cues[cue]:
            del cues[cue]
        if not cues:
            del styles[style]
        if not styles:
            del tasks[task]
        if not tasks:
            del tree[level]


def _by_rounds(bucket: Bucket) -> Bucket:
    """Sort items so that `pop()` returns one item of each script, then a second of each, and so on."""
    seen: Counter[int] = Counter()
    rounds = []
    for group, index in sorted(bucket):
        seen[group] += 1
        rounds.append((seen[group], group, index))
    return [(group, index) for _, group, index in sorted(rounds, reverse=True)]


@functools.lru_cache(4096)
def _number(text: str) -> int:
    """Hash a text to a number that is the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
