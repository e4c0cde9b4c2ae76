"""The order in which rows are learnt, and the learning rate of each step. Both depend only on lengths and the seed.

The recipe and the stacked training of `experiments/perspectives` share this file. It needs neither torch nor NumPy.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

STEP = 8  # padded lengths are multiples of this
BLOCK = 50  # batches among which rows are sorted by length


@dataclass(frozen=True)
class Settings:
    """The settings of a training: its length and its learning rate. They are a table of `study.toml`."""

    steps: int
    rate: float
    rows: int  # sequences per step
    longest: int  # tokens; longer rows are not learnt
    replay: float = 0.0  # share of the rows that are the base model's own replies


def batches(lengths: Sequence[int], size: int, settings: Settings, seed: int) -> Iterator[list[int]]:
    """Yield batches of row numbers without end.

    Rows of about the same length share a batch, to keep the padding small. The order depends only on the lengths and
    the seed, so all arms with the same seed learn in the same order. Raises ValueError if too few rows are short
    enough.
    """
    rng = random.Random(seed)
    rows = [i for i, length in enumerate(lengths) if length <= settings.longest]
    if len(rows) < size:
        raise ValueError(f"{len(rows)} rows are too few for batches of {size}")
    while True:
        rng.shuffle(rows)
        queue = []
        for first in range(0, len(rows), size * BLOCK):
            block = sorted(rows[first : first + size * BLOCK], key=lambda i: lengths[i])
            queue += [block[i : i + size] for i in range(0, len(block) - size + 1, size)]
        rng.shuffle(queue)
        yield from queue


def chunks(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield chunks of row numbers, short rows first. A chunk has at most `most` tokens, padding included."""
    chunk: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if chunk and (len(chunk) + 1) * rounded_up(lengths[i]) > most:
            yield chunk
            chunk = []
        chunk.append(i)
    if chunk:
        yield chunk


def rounded_up(length: int) -> int:
    """Return the padded length of a row."""
    return -(-length // STEP) * STEP


def rate_share(done: int, steps: int) -> float:
    """Return the learning rate after `done` steps as a share of its peak: 5 % linear warm-up, then a cosine to 0."""
    warmup = max(1, steps // 20)
    return min((done + 1) / warmup, 0.5 * (1 + math.cos(math.pi * done / steps)))
