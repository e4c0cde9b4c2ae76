"""SmolLM2 for several training runs at once: every weight has a leading axis of runs.

A step of a 135M model is thousands of kernels that are too small for a large GPU. The arms of one seed see the same
batches, so their weights are stacked and each kernel does the work of all of them. The runs share nothing else: each
has its own loss, gradients, clipping and optimiser state. This file needs torch and numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from overtone.studies.perspectives.token_batches import rate_share


@dataclass(frozen=True)
class Sizes:
    """The sizes of a Llama model. The defaults are SmolLM2-135M's."""

    vocab: int = 49152
    hidden: int = 576
    ffn: int = 1536
    layers: int = 30
    heads: int = 9
    kv_heads: int = 3
    theta: float = 100_000.0
    eps: float = 1e-5

    @property
    def head(self) -> int:
        return self.hidden // self.heads

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight of one run. Matrices are (in, out); q, k, v and gate, up are joined."""
        kv = self.kv_heads * self.head
        norms = (2 * self.layers + 1, self.hidden)  # two a layer and the last
        out: dict[str, tuple[int, ...]] = {"embed": (self.vocab, self.hidden), "norms": norms}
        for i in range(self.layers):
            out |= {
                f"{i}.qkv": (self.hidden, self.hidden + 2 * kv),
                f"{i}.o": (self.hidden, self.hidden),
                f"{i}.gate_up": (self.hidden, 2 * self.ffn),
                f"{i}.down": (self.ffn, self.hidden),
            }
        return out


@dataclass(frozen=True)
class Block:
    """Sequences of one padded length: ids are (runs or 1, rows, length), the rest is (rows, length).

    `segment` is 0 for a prompt and k for the k-th of several continuations of it, which do not see each other.
    Without `segment` the rows are plain causal sequences with positions 0, 1, …
    """

    ids: Tensor
    position: Tensor | None = None
    segment: Tensor | None = None

    def mask(self) -> Tensor | None:
        """Return what may be seen, (rows, 1, length, length), or None for causal attention."""
        if self.segment is None:
            return None
        length = self.segment.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=self.ids.device).tril()
        of, by = self.segment[:, None, :], self.segment[:, :, None]
        return (causal & ((of == 0) | (of == by)))[:, None]


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate heads (runs, tokens, heads, width) by their positions; `cos` and `sin` are (tokens, 1, width)."""
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def swiglu(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def rms_norm(x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
    """Normalise the residual stream in float32; the result has the dtype of the matrix products."""
    return (F.rms_norm(x, x.shape[-1:], eps=eps) * weight[:, None]).to(dtype)


class Stack:
    """Weights of several runs that all start from `state`, and the forward pass over them."""

    def __init__(
        self, state: Mapping[str, Tensor], runs: int, sizes: Sizes, device: str, *, compiled: bool = False
    ) -> None:
        self.sizes, self.runs, self.device = sizes, runs, device
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self.weights = {
            name: state[name].to(device, torch.float32).expand(runs, *shape).clone().requires_grad_()
            for name, shape in sizes.shapes().items()
        }
        optimised: Callable[[Any], Any] = torch.compile(dynamic=True) if compiled else lambda f: f
        self.rope, self.swiglu, self.rms_norm = optimised(rope), optimised(swiglu), optimised(rms_norm)
        frequency = sizes.theta ** (-torch.arange(0, sizes.head, 2, device=device).float() / sizes.head)
        angle = torch.arange(4096, device=device).float()[:, None] * frequency
        self.cos, self.sin = (f(torch.cat((angle, angle), -1)).to(self.dtype)[:, None] for f in (torch.cos, torch.sin))

    def parameters(self) -> list[Tensor]:
        return list(self.weights.values())

    def cast(self, name: str) -> Tensor:
        return self.weights[name].to(self.dtype)

    def hidden(self, blocks: Sequence[Block]) -> Tensor:
        """Return the last states of all blocks' tokens, one block after the other: (runs, tokens, hidden), float32."""
        position = torch.cat([self._positions(block) for block in blocks])
        cos, sin = self.cos[position], self.sin[position]
        masks = [block.mask() for block in blocks]
        x = self._embedded(blocks)
        norms = self.weights["norms"].unbind(1)
        for i in range(self.sizes.layers):
            y = self.rms_norm(x, norms[2 * i], self.sizes.eps, self.dtype)
            x = x + torch.bmm(
                self._attend(torch.bmm(y, self.cast(f"{i}.qkv")), cos, sin, blocks, masks), self.cast(f"{i}.o")
            )
            y = self.rms_norm(x, norms[2 * i + 1], self.sizes.eps, self.dtype)
            x = x + torch.bmm(self.swiglu(torch.bmm(y, self.cast(f"{i}.gate_up"))), self.cast(f"{i}.down"))
        return self.rms_norm(x, norms[-1], self.sizes.eps, torch.float32)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return (runs, n, vocabulary) in float32: bfloat16 logits would be off by up to 0.06."""
        return torch.bmm(hidden, self.weights["embed"].transpose(1, 2))

    def _positions(self, block: Block) -> Tensor:
        rows, length = block.ids.shape[1:]
        if block.position is None:
            return torch.arange(length, device=self.device).repeat(rows)
        return block.position.flatten()

    def _embedded(self, blocks: Sequence[Block]) -> Tensor:
        ids = torch.cat([b.ids.expand(self.runs, -1, -1).flatten(1) for b in blocks], 1)
        first = torch.arange(self.runs, device=self.device)[:, None] * self.sizes.vocab
        return F.embedding(ids + first, self.weights["embed"].flatten(0, 1))

    def _attend(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, blocks: Sequence[Block], masks: Sequence[Tensor | None]
    ) -> Tensor:
        """Return what each token takes from those before it in its row. The backward pass of `split` is one kernel,
        that of slices is several."""
        s = self.sizes
        heads = qkv.unflatten(-1, (s.heads + 2 * s.kv_heads, s.head))
        qk, v = heads.split((s.heads + s.kv_heads, s.kv_heads), 2)
        q, k = self.rope(qk, cos, sin).split((s.heads, s.kv_heads), 2)
        k, v = (
            x[:, :, :, None].expand(-1, -1, -1, s.heads // s.kv_heads, -1).reshape(q.shape) for x in (k, v)
        )  # fmt: skip
        sizes = [block.ids.shape[1] * block.ids.shape[2] for block in blocks]
        parts = zip(*(x.split(sizes, 1) for x in (q, k, v)), strict=True)
        out = [self._within(*part, block, mask) for part, block, mask in zip(parts, blocks, masks, strict=True)]
        return out[0] if len(out) == 1 else torch.cat(out, 1)

    def _within(self, q: Tensor, k: Tensor, v: Tensor, block: Block, mask: Tensor | None) -> Tensor:
        rows, length = block.ids.shape[1:]
        # (runs × rows, heads, length, width)
        by_row = (x.unflatten(1, (rows, length)).flatten(0, 1).transpose(1, 2) for x in (q, k, v))
        seen = None if mask is None else mask.repeat(self.runs, 1, 1, 1)
        y = F.scaled_dot_product_attention(*by_row, seen, is_causal=seen is None)
        return y.transpose(1, 2).reshape(self.runs, rows * length, self.sizes.hidden)


class Optimizer:
    """AdamW on all runs, each clipped by its own norm, with a linear warm-up and a cosine to zero."""

    def __init__(self, stack: Stack, rate: float, steps: int) -> None:
        self.stack, self.rate, self.steps, self.done = stack, rate, steps, 0
        self.inner = torch.optim.AdamW(
            stack.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01, fused=stack.device == "cuda"
        )

    def step(self, losses: Tensor) -> None:
        """Go one step against the runs' losses, (runs,)."""
        losses.sum().backward()
        grads = [p.grad for p in self.stack.parameters() if p.grad is not None]
        norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in grads])  # (weights, runs)
        scale = (1 / (norms.norm(dim=0) + 1e-6)).clamp(max=1)
        for grad in grads:
            grad.mul_(scale.view(-1, *[1] * (grad.ndim - 1)))
        self.inner.param_groups[0]["lr"] = self.rate * rate_share(self.done, self.steps)
        self.inner.step()
        self.inner.zero_grad()
        self.done += 1


# ── weights ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def random_state(sizes: Sizes, seed: int = 0) -> dict[str, Tensor]:
    """Return random weights, for tests and for measuring speed."""
    made = torch.Generator().manual_seed(seed)
    return {
        name: torch.ones(shape) if name == "norms" else torch.randn(shape, generator=made) * 0.02
        for name, shape in sizes.shapes().items()
    }


def read_state(path: Path, sizes: Sizes) -> dict[str, Tensor]:
    """Read what `prepare.py` wrote: GGUF's own blocks, de-quantised here and rounded to half precision."""
    with np.load(path) as file:
        found = {name: _dequantised(file[name]) for name in file.files}
    state = {}
    for name, shape in sizes.shapes().items():
        # Products with weights are x @ W here; GGUF keeps (out, in).
        value = found[name].reshape(shape[::-1]).T if name.split(".")[-1] in MATRICES else found[name].reshape(shape)
        state[name] = torch.from_numpy(np.ascontiguousarray(value, np.float16))
    return state


MATRICES = ("qkv", "o", "gate_up", "down")


def _dequantised(raw: np.ndarray) -> np.ndarray:
    """Blocks of 32 values: Q4_1 has scale, minimum and 16 bytes of halves; Q8_0 has scale and 32 bytes; or floats."""
    if raw.dtype != np.uint8:
        return raw
    if raw.shape[-1] == 20:
        scale, low = (raw[..., i : i + 2].copy().view(np.float16).astype(np.float32) for i in (0, 2))
        halves = np.concatenate((raw[..., 4:] & 15, raw[..., 4:] >> 4), -1)
        return halves.astype(np.float32) * scale + low
    scale = raw[..., :2].copy().view(np.float16).astype(np.float32)
    return raw[..., 2:].view(np.int8).astype(np.float32) * scale
