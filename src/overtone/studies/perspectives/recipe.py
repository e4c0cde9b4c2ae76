"""The recipe: train one arm of the study on a causal language model, readable from top to bottom.

    labels of the arm → examples (a prompt, three digits) → batches, with the base model's own replies → steps

All arms of a seed learn from the same sentences in the same order, with as many steps and tokens: they differ in the
prompt's tag and in the digits. Random numbers depend on the seed alone, so a run that was killed continues from its
checkpoint to the same weights. It runs on a CPU, a GPU, or several under torchrun.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import torch
from torch import Tensor, nn

from overtone.echat.learn import distributed
from overtone.echat.learn.distributed import Progress, World
from overtone.echat.learn.training_loop import Diverged
from overtone.paths import write_whole
from overtone.rated_sentences import Array
from overtone.studies.perspectives.design import PROMPTS, labels, soft_digits
from overtone.studies.perspectives.language_model import logits_at, padded, precision
from overtone.studies.perspectives.stored_predictions import option_scores
from overtone.studies.perspectives.token_batches import Settings, batches, rate_share, rounded_up
from overtone.studies.perspectives.tokens import Questions, Tokens

LOG = "log.jsonl"
BETAS, DECAY, CLIP = (0.9, 0.95), 0.01, 1.0
QUESTIONS_AT_ONCE = 4  # of a step of the tuning, to bound the memory
Reply = tuple[list[int], list[int]]  # tokens of a general prompt, and of the base model's reply to it


class TimeUp(Exception):
    """The time is up. The training so far is saved, and the same call resumes it."""


# ── 1. what an arm learns ─────────────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Example:
    """One sequence for training. It has the positions whose next token is learnt, and for each the possible next tokens
    with weights."""

    ids: list[int]
    at: list[int]
    targets: list[list[tuple[int, float]]]


def rating(tokens: Tokens, prompt: Sequence[int], label: Sequence[float]) -> Example:
    """Return a sentence's rating as an example: a prompt and three digits.

    A label of 3.3 corresponds to 5.6 on the digits' scale from 1 to 9. So its target is the digit 5 with weight .4 and
    the digit 6 with weight .6. The digits after it are predicted from the more likely of the two.
    """
    soft = [soft_digits(value) for value in label]
    answer = tokens.answer.write([max(pair, key=lambda p: p[1])[0] for pair in soft])
    at = [len(prompt) + index - 1 for index in tokens.answer.at]
    digits = tokens.answer.digits
    targets = [[(digits[i][digit], weight) for digit, weight in pair] for i, pair in enumerate(soft)]
    return Example([*prompt, *answer], at, targets)


def replayed(prompt: Sequence[int], reply: Sequence[int]) -> Example:
    """Return one of the base model's own replies as an example. It has the weight of one rating, whatever its
    length."""
    first = len(prompt) - 1
    targets = [[(token, 3 / len(reply))] for token in reply]
    return Example([*prompt, *reply], list(range(first, first + len(reply))), targets)


@dataclass(frozen=True)
class Ratings:
    """The rows that an arm learns. Row 2i is sentence i under the arm's first prompt, row 2i + 1 under its second."""

    tokens: Tokens
    arm: str
    rows: Array  # of the bank
    labels: Array  # (rows, 2, 3)

    @classmethod
    def of(cls, tokens: Tokens, bank: Any, arm: str, rows: Array, seed: int) -> Ratings:
        return cls(tokens, arm, rows, labels(bank, arm, rows, seed))

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each row, which is the same for every arm."""
        return [length for length in self.tokens.lengths(self.rows) for _ in range(2)]

    def example(self, row: int) -> Example:
        sentence, second = divmod(row, 2)
        prompt = self.tokens.prompts[PROMPTS[self.arm][second]][self.rows[sentence]]
        return rating(self.tokens, prompt, self.labels[sentence, second])


# ── 2. steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class Step(Protocol):
    """One step of one process."""

    @property
    def tokens(self) -> int:
        """The number of tokens of all processes, padding included."""

    def losses(self, lm: nn.Module, device: torch.device) -> Iterator[Tensor]:
        """Yield the parts of this process's share of the loss. All processes yield the same number of parts."""


@dataclass(frozen=True)
class RatingStep:
    """The ratings and replies of one step. Ratings and replies are padded to different lengths, so each needs its own
    pass through the model."""

    parts: Sequence[tuple[Sequence[Example], Sequence[float]]]  # examples and their weights: 0 fills up a share
    total: float  # the weight of all targets of all processes
    tokens: int

    def losses(self, lm: nn.Module, device: torch.device) -> Iterator[Tensor]:
        for examples, weights in self.parts:
            length = rounded_up(max(len(example.ids) for example in examples))
            at, rows, token, weight = [], [], [], []
            for i, (example, share) in enumerate(zip(examples, weights, strict=True)):
                for place, targets in zip(example.at, example.targets, strict=True):
                    at.append(i * length + place)
                    for target, part in targets:
                        rows.append(len(at) - 1)
                        token.append(target)
                        weight.append(part * share)
            ids = padded([example.ids for example in examples], length).to(device)
            logp = logits_at(lm, ids, torch.tensor(at, device=device)).log_softmax(-1)
            taken = logp[torch.tensor(rows, device=device), torch.tensor(token, device=device)]
            yield -(taken * torch.tensor(weight, device=device)).sum() / self.total


def rating_steps(
    ratings: Ratings, replies: Sequence[Reply], settings: Settings, seed: int, world: World
) -> Iterator[Step]:
    """Yield steps without end. The share `settings.replay` of the rows are the base model's replies, the rest are
    ratings."""
    count = round(settings.rows * settings.replay) if replies else 0
    rng = random.Random(seed)
    lengths = ratings.lengths
    for batch in batches(lengths, settings.rows - count, settings, seed):
        kept = rng.choices(replies, k=count) if count else []
        parts = [_share([ratings.example(row) for row in batch], world)]
        size = len(batch) * rounded_up(max(lengths[row] for row in batch))
        if kept:
            parts.append(_share([replayed(*reply) for reply in kept], world))
            size += count * rounded_up(max(len(p) + len(r) for p, r in kept))
        yield RatingStep(parts, 3.0 * (len(batch) + count), size)


def _share(rows: Sequence[Any], world: World) -> tuple[list[Any], list[float]]:
    """Return this process's rows and their weights. Rows of weight 0 make all shares equally long."""
    own = list(rows[world.rank :: world.size])
    empty = -(-len(rows) // world.size) - len(own)
    return own + [rows[0]] * empty, [1.0] * len(own) + [0.0] * empty


@dataclass(frozen=True)
class ChoiceStep:
    """Questions whose right option is learnt, as a classification by the summed log-likelihoods of the options."""

    questions: Questions
    condition: str
    rows: Sequence[int]
    weights: Sequence[float]
    total: int
    tokens: int

    def losses(self, lm: nn.Module, device: torch.device) -> Iterator[Tensor]:
        for first in range(0, len(self.rows), QUESTIONS_AT_ONCE):
            rows = self.rows[first : first + QUESTIONS_AT_ONCE]
            weight = torch.tensor(self.weights[first : first + QUESTIONS_AT_ONCE], device=device)
            scores = option_scores(lm, self.questions, self.condition, rows, device)
            gold = torch.tensor([self.questions.gold[row] for row in rows], device=device)
            right = scores.gather(1, gold[:, None])[:, 0]
            yield ((scores.logsumexp(1) - right) * weight).sum() / self.total


def choice_steps(
    questions: Questions, condition: str, among: Sequence[int], settings: Settings, seed: int, world: World
) -> Iterator[Step]:
    """Yield steps without end over some of the questions."""
    lengths = questions.lengths(condition)
    for batch in batches([lengths[i] for i in among], settings.rows, settings, seed):
        rows = [among[i] for i in batch]
        own, weights = _share(rows, world)
        yield ChoiceStep(questions, condition, own, weights, len(rows), sum(lengths[row] for row in rows))


# ── 3. the loop ───────────────────────────────────────────────────────────────────────────────────────────────────────
@dataclass
class Clock:
    """When to stop, how often to save and to report, and a function that evaluates the model during training."""

    stop: float = math.inf  # by time.monotonic()
    save_every: float = 300.0  # seconds
    say: Callable[[str], None] = lambda line: None
    log_every: int = 50
    should_stop: Callable[[], bool] = lambda: False
    look_every: int = 0  # steps; 0 = never
    look: Callable[[int], bool] = field(default=lambda step: False)  # returns whether to end the training here


def fit(
    lm: nn.Module, steps: Iterator[Step], settings: Settings, folder: Path, world: World, clock: Clock
) -> list[float]:
    """Train a model that is on its device, and return the loss of every step.

    Resumes from the newest checkpoint in `folder`. If the time is up, saves a checkpoint and raises TimeUp. Raises
    Diverged.
    """
    device = world.device
    learning = [p for p in lm.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(
        learning, lr=settings.rate, betas=BETAS, weight_decay=DECAY, fused=device.type == "cuda"
    )
    progress = Progress()
    if checkpoint := distributed.newest(folder):
        progress = distributed.load(checkpoint, lm, optimiser, world)
    seen = _read_log(folder, progress.step)
    fresh: list[Tensor] = []  # losses that are still on the device
    tokens, began, saved = progress.positions, time.monotonic() - progress.seconds, time.monotonic()
    lm.train()
    for done, step in enumerate(itertools.islice(steps, settings.steps)):  # the same steps again, also after a kill
        if done < progress.step:
            continue

        # forward and backward: the summands add up to the mean over all targets of the step, on all processes
        loss = torch.zeros((), device=device)
        for part in _in_bf16(step, lm, device):
            (part * world.size).backward()  # sharded gradients are averaged over processes
            loss += part.detach()
        fresh.append(world.sum(loss))

        # clip and step
        nn.utils.clip_grad_norm_(learning, CLIP)
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * rate_share(done, settings.steps)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        tokens += step.tokens

        # report, look at dev rows, save, stop
        last = done + 1 == settings.steps
        ended = clock.look_every > 0 and (done + 1) % clock.look_every == 0 and clock.look(done + 1)
        lm.train()
        late = not (last or ended) and world.agree(time.monotonic() > clock.stop or clock.should_stop())
        due = late or last or ended or world.agree(time.monotonic() - saved > clock.save_every)
        if due or (done + 1) % clock.log_every == 0:
            seen += _fetched(fresh, done + 1)
            clock.say(f"  step {done + 1}/{settings.steps}  loss {seen[-1]:.4f}  {_speed(done + 1, began)}")
        if due:
            if world.first:
                _write_log(folder, seen)
            distributed.save(
                folder, lm, optimiser, Progress(done + 1, 0, done + 1, time.monotonic() - began, tokens), world
            )
            saved = time.monotonic()
        if late:
            raise TimeUp(f"stopped after {done + 1} of {settings.steps} steps")
        if ended:
            break
    return seen


def _in_bf16(step: Step, lm: nn.Module, device: torch.device) -> Iterator[Tensor]:
    """Yield a step's losses, computed in bf16 on a GPU. Autocast ends before each backward pass."""
    losses = step.losses(lm, device)
    while True:
        with precision(device):
            loss = next(losses, None)
        if loss is None:
            return
        yield loss


def _fetched(fresh: list[Tensor], step: int) -> list[float]:
    """Return the losses that were waiting on the device. Raises Diverged."""
    found: list[float] = torch.stack(fresh).tolist() if fresh else []
    fresh.clear()
    if not all(map(math.isfinite, found)):
        raise Diverged(f"the loss is not a finite number by step {step}; use a smaller --lr")
    return found


def _speed(step: int, began: float) -> str:
    return f"{(time.monotonic() - began) / step:.2f} s per step"


def _read_log(folder: Path, step: int) -> list[float]:
    path = folder / LOG
    return [float(line) for line in path.read_text().split()][:step] if step and path.is_file() else []


def _write_log(folder: Path, seen: Sequence[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / LOG, b"".join(msgspec.json.encode(round(loss, 6)) + b"\n" for loss in seen))
