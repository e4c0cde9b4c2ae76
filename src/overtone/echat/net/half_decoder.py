"""A Llama's transformer for decoding on a CPU: the weights in half precision, everything else in float32.

On a CPU, decoding one token takes as long as reading the weights and starting a few hundred kernels. Half precision
halves the first, and joining matrices and leaving out transformers' generality more than halves the second.
`python -m bench.echat` measures both.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from overtone.errors import UsageError

FEW = 8  # rows up to which one product per row is faster than converting a matrix to float32


class Cache:
    """Keys and values of all layers, in tensors that grow by doubling: (B, heads, positions, size)."""

    def __init__(self, layers: int) -> None:
        self.length = 0
        self.kept: list[Tensor | None] = [None] * layers

    def add(self, layer: int, both: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values (2, B, heads, n, size) of a layer, and return all of the layer."""
        old, end = self.kept[layer], self.length + both.shape[3]
        if old is None or old.shape[3] < end:
            grown = both.new_empty(*both.shape[:3], max(2 * end, 256), both.shape[4])
            if old is not None:
                grown[:, :, :, : self.length] = old[:, :, :, : self.length]
            old = self.kept[layer] = grown
        old[:, :, :, self.length : end] = both
        keys, values = old[:, :, :, :end]
        return keys, values


class HalfDecoder:
    """Reads inputs (B, n, d) after a cache: returns the last hidden states (B, n, d) and the cache.

    Raises UsageError for a language model that is not a Llama without biases.
    """

    def __init__(self, lm: Any) -> None:
        body, config = lm.base_model, lm.config
        biased = any(name.endswith("bias") for name, _ in body.named_parameters())
        if config.model_type != "llama" or config.hidden_act != "silu" or biased:
            raise UsageError(f"dtype float16 needs a Llama, and this is a {config.model_type}; use dtype=float32")
        self.heads, self.kv = config.num_attention_heads, config.num_key_value_heads
        self.rotary, self.eps, self.last = body.rotary_emb, config.rms_norm_eps, body.norm.weight
        self.layers = [
            (
                layer.input_layernorm.weight,
                _half(*(getattr(layer.self_attn, f"{name}_proj") for name in "qkv")),
                _half(layer.self_attn.o_proj),
                layer.post_attention_layernorm.weight,
                _half(layer.mlp.gate_proj, layer.mlp.up_proj),
                _half(layer.mlp.down_proj),
            )
            for layer in body.layers
        ]

    def __call__(self, x: Tensor, mask: Tensor | None, at: Tensor | None, cache: Cache | None) -> tuple[Tensor, Cache]:
        """Run all layers. `mask` (B, all positions so far) is True where visible; `at` (B, n) has the positions."""
        b, n, _ = x.shape
        cache = cache or Cache(len(self.layers))
        if at is None:
            at = torch.arange(cache.length, cache.length + n)[None]
        cos, sin = (angle[:, :, None] for angle in self.rotary(x, at))  # (B, n, 1, size)
        seen = _visible(mask, n, cache.length)
        for number, (before, qkv, o, between, gate_up, down) in enumerate(self.layers):
            heads = _apply(self._norm(x, before), qkv).view(b, n, self.heads + 2 * self.kv, -1)
            turned, v = heads[:, :, : self.heads + self.kv], heads[:, :, self.heads + self.kv :]
            first, second = turned.chunk(2, -1)
            turned = turned * cos + torch.cat((-second, first), -1) * sin
            q, k = turned[:, :, : self.heads], turned[:, :, self.heads :]
            keys, values = cache.add(number, torch.stack((k, v)).transpose(2, 3))
            heard = F.scaled_dot_product_attention(
                q.transpose(1, 2), keys, values, attn_mask=seen, is_causal=seen is None and n > 1, enable_gqa=True
            )
            x = x + _apply(heard.transpose(1, 2).reshape(b, n, -1), o)
            gate, up = _apply(self._norm(x, between), gate_up).chunk(2, -1)
            x = x + _apply(F.silu(gate) * up, down)
        cache.length += n
        return self._norm(x, self.last), cache

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, self.eps)


def _half(*layers: Any) -> Tensor:
    """Return the weights of layers with the same input as one matrix in half precision."""
    return torch.cat([layer.weight.detach() for layer in layers]).half()


def _apply(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply x (B, n, in) in float32 by a matrix (out, in) in half precision.

    Only products of one row are fast in half precision, on a CPU without instructions for it. More rows are multiplied
    one by one, so that a row's result does not depend on its batch, or, if they are many, in float32.
    """
    rows = x.shape[0] * x.shape[1]
    if rows == 1:
        return F.linear(x.half(), weight).float()
    if rows > FEW:
        return F.linear(x, weight.float())
    parts = [F.linear(row, weight) for row in x.half().flatten(0, 1).split(1)]
    return torch.cat(parts).float().view(*x.shape[:2], -1)


def _visible(mask: Tensor | None, n: int, before: int) -> Tensor | None:
    """Return the attention mask (B, 1, n, all) of n positions after `before` others, or None if none is needed."""
    if mask is not None and bool(mask.all()):
        mask = None
    if mask is None and (n == 1 or not before):  # all are visible, or those that causal attention sees by itself
        return None
    seen = torch.ones(n, before + n, dtype=torch.bool).tril(before)
    return seen if mask is None else mask[:, None, None, :] & seen
