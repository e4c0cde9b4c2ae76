"""What makes training on one GPU faster and changes no name of a weight: kernels recorded once, a frozen language model
held in bf16. Under torchrun neither is done: there FSDP narrows the weights and computes activations again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from overtone.echat.learn.graphs import Reader
from overtone.echat.learn.launch import World
from overtone.echat.net.model import EChat

BLOCK = 8  # positions: attention with a mask wants rows of whole 16 bytes; more would be padding


def alone_on_gpu(world: World) -> bool:
    return world.size == 1 and world.device.type == "cuda"


# ── a frozen part in bf16 ─────────────────────────────────────────────────────────────────────────────────────────────
def freeze(part: nn.Module, narrow: bool) -> list[Tensor]:
    """Set a frozen part's weights aside, for `thaw`, and go on with copies; `narrow`: in bf16, so that autocast casts
    nothing and activations take half the width. Not its buffers: rotary angles in bf16 would be other positions."""
    exact = [weight.data for weight in part.parameters()]
    for weight in part.parameters():
        weight.data = weight.data.bfloat16() if narrow else weight.data.clone()
    return exact


def thaw(part: nn.Module, exact: Sequence[Tensor]) -> None:
    """Put the weights in place that `freeze` set aside: a stage that does not learn a part leaves it to the bit, also
    where it resumed a checkpoint that a GPU wrote, with the narrow ones."""
    for weight, was in zip(part.parameters(), exact, strict=True):
        weight.data = was.to(weight.device)


# ── the language model by recorded kernels ────────────────────────────────────────────────────────────────────────────
def record(model: EChat, wanted: bool, most: int) -> None:
    """Have the language model read by recorded kernels, as before where its weights still are where they were; or not.
    Where it is not, and in the encoder, attention with a mask wants lengths that are whole blocks."""
    model.block, model.encoder.block = (BLOCK, BLOCK * math.prod(model.adapter.strides)) if wanted else (1, 1)
    lm = model.lm.base_model
    if not (wanted and model.reader and model.reader.fits(most)):
        model.reader = None  # what it held is free for the next
        if wanted:
            torch.cuda.empty_cache()
        model.reader = Reader(lm, most, record=True) if wanted else None
