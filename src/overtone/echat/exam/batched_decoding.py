"""Decode many prompts in large batches.

Every clip is encoded once for all prompts. Nothing is copied from the device between two tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import Struct
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from overtone.echat.data import layout
from overtone.echat.data.containers import Pack, clip_index
from overtone.echat.data.layout import ClipRef
from overtone.echat.net.decode import read_in
from overtone.echat.net.model import EChat, places
from overtone.echat.net.tokenizer import Tokenizer

_CHECKED = 8  # tokens between two checks whether all rows are done
_LOGITS = 4096  # positions whose logits are in memory at once


@dataclass
class Machine:
    """A model on its device, and the batch sizes that fit."""

    model: EChat
    tok: Tokenizer
    device: torch.device
    positions: int = field(init=False)  # positions per batch, answers included
    samples: int = field(init=False)  # audio samples per batch

    def __post_init__(self) -> None:
        self.positions, self.samples = 8_000, 1_000_000
        if self.device.type == "cuda":  # a generous estimate of a position's keys, values and states
            lm, (free, _) = self.model.config.lm, torch.cuda.mem_get_info(self.device)
            self.positions = min(150_000, free // (12 * lm.hidden * lm.layers))
            self.samples = 80 * self.positions

    def autocast(self) -> Any:
        """Return the autocast context: bfloat16 on a GPU."""
        return torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda")


# ── clips ───────────────────────────────────────────────────────────────────────────────────────────────────────────
class Heard(Struct, frozen=True):
    """The adapter's outputs of all clips, concatenated. `place` maps a clip to its first row and its number of rows."""

    states: Any  # (N, d)
    place: dict[tuple[str, str], tuple[int, int]]

    def states_of(self, clip: ClipRef) -> Tensor:
        """Return the adapter's outputs of a clip."""
        first, n = self.place[clip.home, clip.wav]
        states: Tensor = self.states[first : first + n]
        return states


@torch.inference_mode()
def hear(machine: Machine, clips: Sequence[ClipRef]) -> Heard:
    """Encode every distinct clip once."""
    packs: dict[str, Pack] = {}
    waves: dict[tuple[str, str], NDArray[np.int16]] = {}
    for clip in clips:
        pack = packs.get(clip.home) or packs.setdefault(clip.home, Pack(Path(clip.home)))
        waves[clip.home, clip.wav] = pack.clip(clip_index(clip.wav))
    names = sorted(waves, key=lambda name: (len(waves[name]), name))
    states: list[Tensor] = []
    place: dict[tuple[str, str], tuple[int, int]] = {}
    first = 0
    for some in batched([len(waves[name]) for name in names], machine.samples):
        rows = [waves[names[i]] for i in some]
        wave = np.zeros((len(rows), max(map(len, rows))), np.int16)
        for row, samples in zip(wave, rows, strict=True):
            row[: len(samples)] = samples
        with machine.autocast():
            out, lengths = machine.model.encode_audio(
                torch.from_numpy(wave).to(machine.device).float() / 32768,
                torch.tensor([len(row) for row in rows], device=machine.device),
            )  # (C, T, d), (C,)
        for i, vectors, n in zip(some, out, lengths.tolist(), strict=True):
            states.append(vectors[:n])
            place[names[i]] = (first, n)
            first += n
    width = machine.model.config.lm.hidden
    return Heard(torch.cat(states) if states else torch.zeros(1, width, device=machine.device), place)


def inputs(machine: Machine, heard: Heard, asked: Sequence[layout.Sequence]) -> tuple[Tensor, Tensor]:
    """Return prompts as the language model's inputs, and their attention mask."""
    return read_in(machine.model, asked, [[heard.states_of(clip) for clip in sequence.clips] for sequence in asked])


def batched(lengths: Sequence[int], budget: int, more: int = 0) -> Iterator[list[int]]:
    """Yield batches of row indices, sorted by length, with at most `budget` positions (`more` extra per row)."""
    some: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if some and (len(some) + 1) * (lengths[i] + more) > budget:
            yield some
            some = []
        some.append(i)
    if some:
        yield some


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────
@torch.inference_mode()
def answer(
    machine: Machine, heard: Heard, asked: Sequence[layout.Sequence], limit: int
) -> list[tuple[str, bool]]:  # fmt: skip
    """Return the greedily decoded text after each prompt, and whether it reached `limit` tokens."""
    out: list[tuple[str, bool]] = [("", False)] * len(asked)
    lengths = [_length(sequence, heard) for sequence in asked]
    for some in batched(lengths, machine.positions, limit):
        x, mask = inputs(machine, heard, [asked[i] for i in some])
        for i, ids in zip(some, greedy(machine, x, mask, limit), strict=True):
            out[i] = machine.tok.decode(ids), len(ids) == limit
    return out


def greedy(machine: Machine, x: Tensor, mask: Tensor, limit: int) -> list[list[int]]:
    """Decode greedily without synchronising after each token.

    Finished rows leave the batch once they are half of it. Unlike `decode.respond`, age and gender are not restricted
    to their labels, because the test measures the model's own answers.
    """
    model, end = machine.model, machine.tok.im_end
    b, p, _ = x.shape
    tokens = torch.full((b, limit), end, device=machine.device)
    rows = torch.arange(b, device=machine.device)  # rows of `tokens` that are still in the batch
    done = torch.zeros(b, dtype=torch.bool, device=machine.device)
    mask = torch.cat((mask, mask.new_ones(b, limit)), 1)
    at = places(mask, p + limit)
    cache = None
    for n in range(limit):
        with machine.autocast():
            out = model.lm.base_model(
                inputs_embeds=x, attention_mask=mask[:, : p + n], position_ids=at[:, p + n - x.shape[1] : p + n],
                past_key_values=cache, use_cache=True,
            )  # fmt: skip
            cache = out.past_key_values
            token = model.lm.get_output_embeddings()(out.last_hidden_state[:, -1]).argmax(-1)  # (B,)
        token = token.masked_fill(done, end)
        tokens[rows, n] = token
        done |= token == end
        if n % _CHECKED == _CHECKED - 1:
            left = (~done).nonzero()[:, 0]
            if not len(left):
                break
            if 2 * len(left) <= len(rows):
                rows, done, token, mask, at = rows[left], done[left], token[left], mask[left], at[left]
                cache.batch_select_indices(left)
        x = model.embed_ids(token[:, None])
    return [ids[: ids.index(end)] if end in ids else ids for ids in tokens.tolist()]


@torch.inference_mode()
def likelihoods(
    machine: Machine, heard: Heard, asked: Sequence[layout.Sequence], endings: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Return the log-likelihood of each ending after each prompt, with one pass per batch.

    The endings are concatenated. Each ending attends only to the prompt and itself, and its positions continue after
    the prompt.
    """
    device = machine.device
    ids = torch.tensor([token for ending in endings for token in ending], device=device)  # (Q,)
    of = torch.tensor([i for i, ending in enumerate(endings) for _ in ending], device=device)
    nth = torch.tensor([n for ending in endings for n in range(len(ending))], device=device)
    own = (of[:, None] == of[None, :]) & (nth[:, None] >= nth[None, :])  # (Q, Q)
    q = len(ids)
    out: list[list[float]] = [[] for _ in asked]
    lengths = [_length(sequence, heard) for sequence in asked]
    for some in batched(lengths, machine.positions, q):
        x, known = inputs(machine, heard, [asked[i] for i in some])
        b, p, _ = x.shape
        mask = torch.zeros(b, p + q, p + q, dtype=torch.bool, device=device)
        mask[:, :p, :p] = torch.ones(p, p, dtype=torch.bool, device=device).tril() & known[:, None, :]
        mask[:, p:, :p] = known[:, None, :]
        mask[:, p:, p:] = own
        mask |= torch.eye(p + q, dtype=torch.bool, device=device)  # an empty row, as in padding, would give NaN
        at = places(known, p)  # (B, P)
        at = torch.cat((at, at[:, -1:] + 1 + nth), 1)
        with machine.autocast():
            x = torch.cat((x, machine.model.embed_ids(ids).expand(b, -1, -1)), 1)
            states = machine.model.lm.base_model(
                inputs_embeds=x, attention_mask=mask[:, None], position_ids=at, use_cache=False
            ).last_hidden_state  # (B, P+Q, d)
        # The prompt's last state predicts an ending's first token; the state before a later token predicts that.
        before = torch.where(nth == 0, p - 1, p - 1 + torch.arange(q, device=device))
        predicting = states[:, before]  # (B, Q, d)
        logs = _log_probabilities(machine, predicting.reshape(b * q, -1), ids.repeat(b)).view(b, q)
        sums = torch.zeros(b, len(endings), device=device).index_add_(1, of, logs)
        for i, row in zip(some, sums.tolist(), strict=True):
            out[i] = row
    return out


def _log_probabilities(machine: Machine, states: Tensor, ids: Tensor) -> Tensor:
    """Return the log-probability of each id at its state, among text ids: (N, d), (N,) → (N,)."""
    logs = []
    table = machine.model.lm.get_output_embeddings().weight.float()
    for h, i in zip(states.split(_LOGITS), ids.split(_LOGITS), strict=True):
        # full precision: bf16 logits differ in steps of an eighth, and ties would favour the first label
        logs.append(-F.cross_entropy(F.linear(h.float(), table), i, reduction="none"))
    return torch.cat(logs)


def _length(sequence: layout.Sequence, heard: Heard) -> int:
    return len(sequence.ids) - len(sequence.clips) + sum(len(heard.states_of(clip)) for clip in sequence.clips)
