"""What makes training on one GPU faster and changes no name of a weight: layers compiled in place, a frozen language
model held in bf16. Under torchrun neither is done: there FSDP narrows the weights and computes activations again."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

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


# ── compiled layers ───────────────────────────────────────────────────────────────────────────────────────────────────
def wanted(asked: bool | None, preset: bool, world: World, say: Callable[[str], None]) -> bool:
    """Whether layers are to be compiled: where a user asks for it, or the preset does and one GPU trains."""
    if world.size > 1 or not (preset and alone_on_gpu(world) if asked is None else asked):
        return False
    if why := lack(world.device.type):
        say(f"  layers are not compiled: {why}")
    return not why


def lack(device: str) -> str:
    """What torch.compile needs and this machine has not, or ""."""
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    given, known = ("CC", ("cc", "gcc", "clang")) if device == "cuda" else ("CXX", ("c++", "g++", "clang++"))
    if not (os.environ.get(given) or any(map(shutil.which, known))):
        return f"there is no compiler ({', '.join(known)})"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():  # triton builds a module of its own with it
        return "Python's headers are not installed"
    return ""


def compile_layers(model: EChat, layers: Sequence[nn.Module], backend: Any = "inductor") -> bool:
    """Compile layers in place; True. Each by itself: thirty alike are compiled once, in seconds where the whole would
    take minutes. Sizes are variables: no batch needs code of its own. TORCHINDUCTOR_CACHE_DIR says where it is kept."""
    torch._dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is written, with a warning
    for layer in layers:
        layer.compile(dynamic=True, backend=backend)
    model.block, model.encoder.block = BLOCK, BLOCK * math.prod(model.adapter.strides)
    return True


def uncompiled(compiled: bool) -> contextlib.AbstractContextManager[Any]:
    """A context in which compiled layers run as they are written: decoding has other inputs at every step."""
    return torch.compiler.set_stance("force_eager") if compiled else contextlib.nullcontext()
