"""What makes training on one GPU faster and changes no name of a weight: kernels recorded once, a frozen language model
held in bf16. Under torchrun neither is done: there FSDP narrows the weights and computes activations again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from overtone.echat.learn.graphs import Listener, Reader
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


# ── recorded kernels ──────────────────────────────────────────────────────────────────────────────────────────────────
def record(model: EChat, on: bool, most: int) -> None:
    """Have clips heard, and rows of at most `most` positions read, by recorded kernels: those there are, where weights
    still are where they were. A spectrum's augmentation is drawn on the processor, so that an encoder that has one is
    not recorded. Attention with a mask wants lengths that are whole blocks."""
    learns = any(p.requires_grad for part in (model.encoder, model.adapter) for p in part.parameters())
    hears = on and learns and model.encoder.config.kind == "moonshine"
    model.block, model.encoder.block = (BLOCK, BLOCK * math.prod(model.adapter.strides)) if on else (1, 1)
    if not (hears and model.listener and model.listener.fits()):
        model.listener = None  # what it held is free for the next
    if not (on and model.reader and model.reader.fits(most)):
        model.reader = None
    if on:
        torch.cuda.empty_cache()
    if hears and not model.listener:
        model.listener = Listener(model.encoder, model.adapter)
    if on and not model.reader:
        model.reader = Reader(model.lm.base_model, most)


def sizes(model: EChat) -> str:
    """How many sizes were recorded."""
    found = [made.recorder for made in (model.listener, model.reader) if made]
    return f"; {sum(len(recorder.recordings) for recorder in found)} sizes recorded" if found else ""
