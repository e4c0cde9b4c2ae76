"""Predictions for the study's outcomes, per item: ratings of sentences, likelihoods of options, perplexity.

Under torchrun, the processes divide the work, and each gets the whole result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from overtone.echat.learn.distributed import World
from overtone.rated_sentences import Array
from overtone.studies.perspectives.design import PROMPTS
from overtone.studies.perspectives.language_model import logits_at, padded, precision
from overtone.studies.perspectives.token_batches import chunks, rounded_up
from overtone.studies.perspectives.tokens import Questions, Tokens

TOKENS = 16_384  # of one forward pass, padding included
PLACES = 2_048  # whose logits over the whole vocabulary are held at once


def _in_chunks(
    lm: Any, lengths: Sequence[int], shape: Sequence[int], most: int, world: World, one: Callable[[list[int]], Tensor]
) -> Array:
    """Fill an array of shape (items, …) with `one(items)` for chunks of items of similar length."""
    lm.eval()
    every = list(chunks(lengths, most))
    out = torch.zeros(*shape, device=world.device)
    with torch.no_grad(), precision(world.device):
        for first in range(0, len(every), world.size):  # every process makes as many passes: a sharded model needs it
            chunk = every[min(first + world.rank, len(every) - 1)]
            found = one(chunk)
            if first + world.rank < len(every):
                out[chunk] = found.float()
    return np.asarray(world.sum(out).cpu().numpy())


# ── EmoBank ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def rate(lm: Any, tokens: Tokens, rows: Sequence[int] | Array, arm: str, world: World) -> Array:
    """Return the expected ratings from 1 to 5 under the arm's first and second prompt: (rows, 2, 3).

    A digit is predicted after the most likely digits before it. An arm with one prompt has the same values twice.
    """
    first, second = (tokens.prompts[who] for who in PROMPTS[arm])

    def under(prompts: Sequence[list[int]]) -> Array:
        asked = [prompts[i] for i in rows]
        lengths = [len(prompt) + len(tokens.answer.tokens) for prompt in asked]
        return _in_chunks(
            lm,
            lengths,
            (len(asked), 3),
            TOKENS,
            world,
            lambda chunk: _rated(lm, tokens, [asked[i] for i in chunk], world),
        )

    found = under(first)
    return np.stack((found, found if second is first else under(second)), 1).astype(np.float32)


def _rated(lm: Any, tokens: Tokens, prompts: Sequence[list[int]], world: World) -> Tensor:
    """Rate some sentences: (rows, 3). The digits before the one that is predicted are the likeliest."""
    answer = tokens.answer
    length = rounded_up(max(map(len, prompts)) + len(answer.tokens))
    ids = padded([[*prompt, *answer.tokens] for prompt in prompts], length).to(world.device)
    row = torch.arange(len(prompts), device=world.device)
    ends = torch.tensor(list(map(len, prompts)), device=world.device)
    values = torch.arange(1, 10, device=world.device).float()
    out = []
    for index, digits in zip(answer.at, answer.digits, strict=True):
        columns = torch.tensor(digits[1:], device=world.device)
        logits = logits_at(lm, ids, row * length + ends + index - 1)[:, columns]  # (rows, 9)
        out.append((logits.softmax(-1) @ values + 1) / 2)
        ids[row, ends + index] = columns[logits.argmax(-1)]
    return torch.stack(out, -1)


# ── multiple choice ───────────────────────────────────────────────────────────────────────────────────────────────────
def choose(lm: Any, questions: Questions, condition: str, world: World) -> Array:
    """Return the summed log-likelihoods of all options, (questions, most options). Missing options have −inf."""
    counts = np.array([len(options) for options in questions.options])
    prompts = questions.prompts[condition]
    lengths = [
        len(options) * rounded_up(len(prompt) + max(map(len, options)))
        for prompt, options in zip(prompts, questions.options, strict=True)
    ]

    def scored(chunk: list[int]) -> Tensor:
        found = option_scores(lm, questions, condition, chunk, world.device)
        filled = found.new_zeros(len(chunk), questions.most)  # a sum over processes would spread infinities
        filled[:, : found.shape[1]] = found.masked_fill(found.isinf(), 0.0)
        return filled

    scores = _in_chunks(lm, lengths, (len(counts), questions.most), TOKENS, world, scored)
    return np.where(np.arange(questions.most) < counts[:, None], scores, -np.inf).astype(np.float32)


def option_scores(lm: Any, questions: Questions, condition: str, rows: Sequence[int], device: torch.device) -> Tensor:
    """Return the summed log-likelihood of each option after its prompt, (rows, options). Missing options have −inf."""
    prompts = [questions.prompts[condition][row] for row in rows]
    options = [questions.options[row] for row in rows]
    sequences = [[*prompt, *option] for prompt, offered in zip(prompts, options, strict=True) for option in offered]
    length = rounded_up(max(map(len, sequences)))
    at: list[int] = []
    token: list[int] = []
    owner: list[int] = []
    most = max(map(len, options))
    sequence = 0
    for row, (prompt, offered) in enumerate(zip(prompts, options, strict=True)):
        for k, option in enumerate(offered):
            first = sequence * length + len(prompt) - 1
            at += range(first, first + len(option))
            token += option
            owner += [row * most + k] * len(option)
            sequence += 1
    logp = logits_at(lm, padded(sequences, length).to(device), torch.tensor(at, device=device)).log_softmax(-1)
    taken = logp.gather(1, torch.tensor(token, device=device)[:, None])[:, 0]
    owners = torch.tensor(owner, device=device)
    there = torch.zeros(len(rows) * most, dtype=torch.bool, device=device).index_fill(0, owners, True)
    flat = taken.new_zeros(len(rows) * most).index_add(0, owners, taken)
    return flat.masked_fill(~there, -torch.inf).unflatten(0, (len(rows), most))


# ── plain text ────────────────────────────────────────────────────────────────────────────────────────────────────────
def perplexity(lm: Any, windows: Sequence[list[int]], world: World) -> Array:
    """Return the mean negative log-likelihood per token of each window, (windows,). All windows have one length."""
    size = len(windows[0])

    def surprise(chunk: list[int]) -> Tensor:
        ids = torch.tensor([windows[i] for i in chunk], device=world.device)
        place = torch.arange(ids.numel(), device=world.device).view(ids.shape)[:, :-1].flatten()
        logp = logits_at(lm, ids, place).log_softmax(-1)
        taken = logp.gather(1, ids[:, 1:].flatten()[:, None]).view(len(chunk), size - 1)
        return -taken.mean(1)

    return _in_chunks(lm, [size] * len(windows), (len(windows),), PLACES, world, surprise).astype(np.float32)
