"""The outcomes of a stack of trained runs, kept per item: ratings of sentences, likelihoods of options, perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from overtone.rated_sentences import Array
from overtone.studies.perspectives.design import PROMPTS
from overtone.studies.perspectives.token_batches import Settings, batches, chunks, rounded_up

from .data import Data, Questions
from .model import Block, Stack
from .recipe import Clock, padded, sent, train

TOKENS = 100_000  # of all runs, in one forward pass
LOGITS = 6_000  # places of all runs whose logits are held at once


def log_likelihoods(stack: Stack, hidden: Tensor, at: Tensor, token: Tensor) -> Tensor:
    """Return the log-probability of the token after each place, (runs, places), some places at a time."""
    out = []
    size = max(1, LOGITS // stack.runs)
    for first in range(0, len(at), size):
        logits = stack.logits(hidden[:, at[first : first + size]])
        picked = token[first : first + size].expand(stack.runs, -1)[..., None]
        out.append(logits.gather(2, picked)[..., 0] - logits.logsumexp(2))
    return torch.cat(out, 1)


# ── EmoBank ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@torch.no_grad()
def rate(stack: Stack, data: Data, rows: Array, arms: Sequence[str]) -> Array:
    """Return expected values from 1 to 5, (arms, rows, 2, 3): under the arm's first and second prompt.

    A digit is predicted after the likeliest digits before it. An arm with one prompt has the same values twice.
    """
    out = np.zeros((len(arms), len(rows), 2, 3), np.float32)
    for second in range(2):
        heads = [data.heads[PROMPTS[arm][second]] for arm in arms]
        if second and all(PROMPTS[arm][0] == PROMPTS[arm][1] for arm in arms):
            out[:, :, 1] = out[:, :, 0]
            break
        lengths = [len(heads[0]) + len(data.tails[i]) + 5 for i in rows]
        for chunk in chunks(lengths, TOKENS // stack.runs):
            ids = torch.stack(
                [
                    padded([h + data.tails[rows[i]] for i in chunk], rounded_up(max(lengths[i] for i in chunk)))
                    for h in heads
                ]
            )
            ends = torch.tensor([lengths[i] - 5 for i in chunk])
            out[:, chunk, second] = _rated(stack, data, ids.to(stack.device), ends.to(stack.device))
    return out


def _rated(stack: Stack, data: Data, ids: Tensor, ends: Tensor) -> Array:
    """Rate one chunk: (runs, rows, length) with prompts that end before `ends`; return (runs, rows, 3)."""
    rows, length = ids.shape[1:]
    columns = torch.tensor(data.digits[1:], device=stack.device)
    values = torch.arange(1, 10, device=stack.device).float()
    row = torch.arange(rows, device=stack.device)
    out = []
    for d in range(3):
        last = ends - 1 + 2 * d
        hidden = stack.hidden([Block(ids)])[:, row * length + last]
        logits = torch.bmm(hidden, stack.weights["embed"][:, columns].transpose(1, 2))  # (runs, rows, 9)
        out.append((logits.softmax(-1) @ values + 1) / 2)
        ids[:, row, last + 1] = columns[logits.argmax(-1)]
        if d < 2:
            ids[:, row, last + 2] = data.space
    return torch.stack(out, -1).cpu().numpy()


# ── multiple choice ───────────────────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Asked:
    """Questions as one sequence each: a prompt and its options, which do not see each other."""

    block: Block
    at: Tensor  # place before each token of an option
    token: Tensor
    owner: Tensor  # of each such token: row × options of a row + option
    shape: tuple[int, int]  # rows, most options
    gold: Tensor

    def to(self, device: str) -> Asked:
        b = self.block
        assert b.position is not None and b.segment is not None
        block = Block(*(sent(x, device) for x in (b.ids, b.position, b.segment)))
        moved = (sent(x, device) for x in (self.at, self.token, self.owner))
        return Asked(block, *moved, self.shape, sent(self.gold, device))

    def scores(self, stack: Stack) -> Tensor:
        """Return the summed log-likelihood of each option, (runs, rows, options); −inf where a row has fewer."""
        found = log_likelihoods(stack, stack.hidden([self.block]), self.at, self.token)
        flat = found.new_zeros(stack.runs, self.shape[0] * self.shape[1]).index_add(1, self.owner, found)
        there = torch.zeros(flat.shape[1], dtype=torch.bool, device=flat.device).index_fill(0, self.owner, True)
        return flat.masked_fill(~there, -torch.inf).unflatten(1, self.shape)


def asked(questions: Questions, condition: str, rows: Sequence[int]) -> Asked:
    """Lay out some questions. The last token of the prompt predicts the first of every option."""
    prompts = [questions.prompts[condition][i] for i in rows]
    options = [questions.options[i] for i in rows]
    length = rounded_up(max(len(p) + sum(map(len, o)) for p, o in zip(prompts, options, strict=True)))
    most = max(map(len, options))
    ids, position, segment = (np.zeros((len(rows), length), np.int64) for _ in range(3))
    at, token, owner = [], [], []
    for r, (prompt, offered) in enumerate(zip(prompts, options, strict=True)):
        n = len(prompt)
        ids[r, :n], position[r, :n] = prompt, range(n)
        for k, option in enumerate(offered):
            first, end = n, n + len(option)
            ids[r, first:end], segment[r, first:end] = option, k + 1
            position[r, first:end] = range(len(prompt), len(prompt) + len(option))
            at += [r * length + i for i in (len(prompt) - 1, *range(first, end - 1))]
            token += option
            owner += [r * most + k] * len(option)
            n = end
    block = Block(*(torch.from_numpy(x) for x in (ids[None], position, segment)))
    gold = torch.tensor([questions.gold[i] for i in rows])
    return Asked(block, torch.tensor(at), torch.tensor(token), torch.tensor(owner), (len(rows), most), gold)


def _lengths(questions: Questions, condition: str) -> list[int]:
    return [
        len(p) + sum(map(len, o)) for p, o in zip(questions.prompts[condition], questions.options, strict=True)
    ]  # fmt: skip


@torch.no_grad()
def choose(stack: Stack, questions: Questions, condition: str) -> Array:
    """Return the summed log-likelihoods of all options, (runs, questions, most options)."""
    out = np.full((stack.runs, len(questions.gold), max(map(len, questions.options))), -np.inf, np.float32)
    for chunk in chunks(_lengths(questions, condition), TOKENS // stack.runs):
        found = asked(questions, condition, chunk).to(stack.device).scores(stack).cpu().numpy()
        out[:, chunk, : found.shape[2]] = found
    return out


def tune_choices(
    stack: Stack, questions: Questions, settings: Settings, seed: int, clock: Clock | None = None
) -> list[list[float]]:
    """Learn to choose: the likelihoods of a question's options, as scores, against the right one."""
    order = batches(_lengths(questions, "words"), settings.rows, settings, seed)
    steps = (asked(questions, "words", batch) for batch in order)

    def losses(stack: Stack, step: Asked) -> Tensor:
        scores = step.scores(stack)
        right = scores.gather(2, step.gold.expand(stack.runs, -1)[..., None])[..., 0]
        return (scores.logsumexp(2) - right).mean(1)

    return train(stack, steps, losses, settings, clock)


# ── plain text ────────────────────────────────────────────────────────────────────────────────────────────────────────
@torch.no_grad()
def perplexity(stack: Stack, windows: Sequence[Sequence[int]]) -> Array:
    """Return the mean negative log-likelihood per token of each window, (runs, windows)."""
    out = np.zeros((stack.runs, len(windows)), np.float32)
    for chunk in chunks([len(w) for w in windows], TOKENS // stack.runs):
        ids = torch.tensor([windows[i] for i in chunk], device=stack.device)  # all have one length
        rows, length = ids.shape
        hidden = stack.hidden([Block(ids[None])])
        place = torch.arange(rows * length, device=stack.device).view(rows, length)[:, :-1].flatten()
        found = log_likelihoods(stack, hidden, place, ids[:, 1:].flatten())
        out[:, chunk] = -found.view(stack.runs, rows, length - 1).mean(2).cpu().numpy()
    return out
