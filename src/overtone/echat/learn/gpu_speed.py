"""Speed up training on one GPU: record kernels, and hold a frozen language model in bf16.

Neither changes the names of weights. Neither is used under torchrun, where FSDP casts weights and recomputes
activations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from overtone.echat.learn.distributed import World
from overtone.echat.learn.graphs import Listener, Reader
from overtone.echat.net.model import EChat

BLOCK = 8  # positions; masked attention needs rows that are multiples of 16 bytes


def alone_on_gpu(world: World) -> bool:
    """Return whether a single process trains on a GPU."""
    return world.size == 1 and world.device.type == "cuda"


# ── frozen weights in bf16 ────────────────────────────────────────────────────────────────────────────────────────────
def freeze(weights: Sequence[nn.Parameter], narrow: bool) -> list[Tensor]:
    """Replace frozen weights by copies, and return the originals for `thaw`.

    With `narrow`, the copies are in bf16, so that autocast casts nothing and activations take half the memory. Buffers
    stay unchanged, because rotary angles in bf16 would encode other positions.
    """
    exact = [weight.data for weight in weights]
    for weight in weights:
        weight.data = weight.data.bfloat16() if narrow else weight.data.clone()
    return exact


def thaw(weights: Sequence[nn.Parameter], exact: Sequence[Tensor]) -> None:
    """Restore the weights that `freeze` returned, so that untrained weights stay bit-identical.

    This also holds after resuming a checkpoint with bf16 weights.
    """
    for weight, was in zip(weights, exact, strict=True):
        weight.data = was.to(weight.device)


# ── recorded kernels ──────────────────────────────────────────────────────────────────────────────────────────────────
def record(model: EChat, on: bool, most: int) -> None:
    """Switch recorded kernels on or off, for clips and for rows of at most `most` positions.

    Existing recordings are reused if weights have not moved. An encoder that reads a spectrum is not recorded, because
    its augmentation is drawn on the processor.
    """
    learns = any(p.requires_grad for part in (model.encoder, model.adapter) for p in part.parameters())
    hears = on and learns and model.encoder.config.kind == "moonshine"
    align(model, on)
    if not (hears and model.listener and model.listener.fits()):
        model.listener = None  # frees its memory
    if not (on and model.reader and model.reader.fits(most)):
        model.reader = None
    if on:
        torch.cuda.empty_cache()
    if hears and not model.listener:
        model.listener = Listener(model.encoder, model.adapter)
    if on and not model.reader:
        model.reader = Reader(model.lm.base_model, most)


def align(model: EChat, on: bool) -> None:
    """Make the model round lengths up to multiples of a block, which masked attention needs; undo this if `on` is
    false."""
    model.block, model.encoder.block = (BLOCK, BLOCK * math.prod(model.adapter.strides)) if on else (1, 1)


def sizes(model: EChat) -> str:
    """Return a note with the number of input sizes for which kernels were recorded, or "" if none were."""
    recorders = [made.recorder for made in (model.listener, model.reader) if made]
    return f"; {sum(len(recorder.recordings) for recorder in recorders)} sizes recorded" if recorders else ""
