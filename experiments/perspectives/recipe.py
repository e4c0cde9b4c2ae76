"""The recipe: examples from labels, batches that all arms of a seed share, and training in lockstep."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from overtone.rated_sentences import Array
from overtone.studies.perspectives.design import PROMPTS, labels, soft_digits
from overtone.studies.perspectives.token_batches import Settings, batches, rounded_up

from .data import Data
from .model import Block, Optimizer, Stack


def padded(rows: Sequence[Sequence[int]], length: int) -> Tensor:
    out = np.zeros((len(rows), length), np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)


def sent(x: Tensor, device: str) -> Tensor:
    """Return a tensor on the device, without waiting there for the steps before it: that needs pinned memory."""
    return x.pin_memory().to(device, non_blocking=True) if device == "cuda" else x


# ── ratings ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Ratings:
    """What several arms learn of EmoBank: rows 2i and 2i + 1 are sentence i under an arm's two prompts."""

    data: Data
    rows: Array  # of the bank
    arms: Sequence[str]
    labels: Array  # (arms, rows, 2, 3)

    @classmethod
    def of(cls, data: Data, rows: Array, arms: Sequence[str], seed: int) -> Ratings:
        return cls(data, rows, arms, np.stack([labels(data.bank, arm, rows, seed) for arm in arms]))

    @property
    def lengths(self) -> list[int]:
        """Tokens of each row, in every arm: a prompt, three digits and the two spaces between them."""
        head = len(self.data.heads["reader"])
        return [head + len(self.data.tails[i]) + 5 for i in self.rows for _ in range(2)]

    def example(self, arm: int, row: int) -> tuple[list[int], list[list[tuple[int, float]]]]:
        """Return a row's tokens and, for each of its digits, the two tokens around the label with their weights."""
        sentence, second = divmod(row, 2)
        prompt = self.data.heads[PROMPTS[self.arms[arm]][second]] + self.data.tails[self.rows[sentence]]
        soft = [soft_digits(label) for label in self.labels[arm, sentence, second]]
        v, a, d = (self.data.digits[max(pair, key=lambda p: p[1])[0]] for pair in soft)
        digits = self.data.digits
        targets = [[(digits[digit], weight) for digit, weight in pair] for pair in soft]
        return [*prompt, v, self.data.space, a, self.data.space, d], targets


@dataclass(frozen=True)
class Step:
    """One step's input: sequences, the places whose next token is learnt, and two weighted tokens for each."""

    blocks: list[Block]
    at: Tensor  # (places,)
    token: Tensor  # (arms, places, 2)
    weight: Tensor  # (arms, places, 2)

    def to(self, device: str) -> Step:
        blocks = [Block(sent(block.ids, device)) for block in self.blocks]
        return Step(blocks, *(sent(x, device) for x in (self.at, self.token, self.weight)))

    @property
    def tokens(self) -> int:
        """Tokens per arm, padding included."""
        return sum(block.ids.shape[1] * block.ids.shape[2] for block in self.blocks)


def rating_steps(ratings: Ratings, settings: Settings, seed: int) -> Iterator[Step]:
    """Yield steps without end: `replay` of the sequences are the base model's replies, the rest ratings."""
    n_replies = round(settings.rows * settings.replay) if ratings.data.replies else 0
    rng = random.Random(seed)
    longest_reply = rounded_up(max((len(p) + len(r) for p, r in ratings.data.replies), default=0))
    places = max((len(r) for _, r in ratings.data.replies), default=0)
    for batch in batches(ratings.lengths, settings.rows - n_replies, settings, seed):
        replies = rng.choices(ratings.data.replies, k=n_replies) if n_replies else []
        yield _step(ratings, batch, replies, longest_reply, places)


def _step(
    ratings: Ratings, batch: Sequence[int], replies: Sequence[tuple[list[int], list[int]]], longest: int, places: int
) -> Step:
    arms = range(len(ratings.arms))
    examples = [[ratings.example(arm, row) for row in batch] for arm in arms]
    lengths = [len(ids) for ids, _ in examples[0]]
    length = rounded_up(max(lengths))
    blocks = [Block(torch.stack([padded([ids for ids, _ in of], length) for of in examples]))]
    # The digits of a rating are its last, third last and fifth last tokens; each is learnt at the token before it.
    at = [i * length + n - 1 + back for i, n in enumerate(lengths) for back in (-5, -3, -1)]
    pairs = np.array([[pair for _, targets in of for pair in targets] for of in examples])  # (arms, places, 2, 2)
    token, weight = pairs[..., 0], pairs[..., 1]
    if replies:
        blocks.append(Block(padded([p + r for p, r in replies], longest)[None]))
        first = len(batch) * length
        more = np.zeros((len(replies) * places, 2, 2))
        extra = [first] * len(more)
        for i, (prompt, reply) in enumerate(replies):
            for j, learnt in enumerate(reply):
                extra[i * places + j] = first + i * longest + len(prompt) + j - 1
                more[i * places + j, 0] = learnt, 3 / len(reply)  # a reply weighs as much as a rating
        at += extra
        token = np.concatenate((token, np.broadcast_to(more[..., 0], (len(arms), *more.shape[:2]))), 1)
        weight = np.concatenate((weight, np.broadcast_to(more[..., 1], (len(arms), *more.shape[:2]))), 1)
    return Step(blocks, torch.tensor(at), torch.from_numpy(token).long(), torch.from_numpy(weight).float())


def rating_losses(stack: Stack, step: Step) -> Tensor:
    """Return the cross-entropy with the soft labels, per arm."""
    logits = stack.logits(stack.hidden(step.blocks)[:, step.at])
    taken = logits.gather(2, step.token) - logits.logsumexp(2, keepdim=True)
    return -(taken * step.weight).sum((1, 2)) / step.weight.sum((1, 2))


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class TimeUp(Exception):
    """The time is up; what was trained so far is saved."""


@dataclass(frozen=True)
class Clock:
    """When to stop training, and the file in which to keep what is needed to continue on this machine."""

    stop: float  # by time.monotonic()
    saved: Path


def train(
    stack: Stack,
    steps: Iterator[Any],
    losses: Callable[[Stack, Any], Tensor],
    settings: Settings,
    clock: Clock | None = None,
) -> list[list[float]]:
    """Train all runs of a stack; return their losses every tenth of the way, (10, runs).

    Continues from `clock.saved` where it exists. Saves there and raises TimeUp when the time is up.
    """
    optimizer = Optimizer(stack, settings.rate, settings.steps)
    seen: list[Tensor] = []
    if clock and clock.saved.exists():
        seen = _resume(stack, optimizer, clock.saved)
    for done, step in enumerate(itertools.islice(steps, settings.steps), 1):
        if done <= optimizer.done:
            continue
        if clock and time.monotonic() > clock.stop:
            _save(stack, optimizer, seen, clock.saved)
            raise TimeUp(f"stopped after {optimizer.done} of {settings.steps} steps")
        now = losses(stack, step.to(stack.device))
        optimizer.step(now)
        if done % max(1, settings.steps // 10) == 0:
            seen.append(now.detach())
    return [[round(float(x), 4) for x in one] for one in seen]


def _save(stack: Stack, optimizer: Optimizer, seen: list[Tensor], path: Path) -> None:
    """Write weights and optimiser, 1.6 GB a run, at once."""
    part = path.with_suffix(".part")
    weights = {name: value.detach() for name, value in stack.weights.items()}
    state = {"weights": weights, "inner": optimizer.inner.state_dict(), "done": optimizer.done, "seen": seen}
    torch.save(state, part)
    part.replace(path)


def _resume(stack: Stack, optimizer: Optimizer, path: Path) -> list[Tensor]:
    saved = torch.load(path, map_location=stack.device)
    with torch.no_grad():
        for name, value in stack.weights.items():
            value.copy_(saved["weights"][name])
    optimizer.inner.load_state_dict(saved["inner"])
    optimizer.done = saved["done"]
    seen: list[Tensor] = saved["seen"]
    return seen


def train_ratings(
    stack: Stack, ratings: Ratings, settings: Settings, seed: int, clock: Clock | None = None
) -> list[list[float]]:
    return train(stack, rating_steps(ratings, settings, seed), rating_losses, settings, clock)
