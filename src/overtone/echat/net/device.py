"""Choose the device and dtype of a model. A missing device raises an error before anything is loaded."""

from __future__ import annotations

import torch
from torch import nn

from overtone.errors import UsageError
from overtone.paths import shown


def choose_device(name: str) -> torch.device:
    """Return the device for `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`. Raises UsageError."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if name not in ("cpu", "cuda") and not (kind == "cuda" and number.isdecimal()):
        raise UsageError(f"device must be auto, cpu, cuda or cuda:N, not {shown(name)!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device {name}: torch sees no GPU; use cpu, or install torch with CUDA")
    if number and int(number) >= torch.cuda.device_count():
        raise UsageError(f"device {name}: torch sees {torch.cuda.device_count()} GPUs, numbered from 0")
    return torch.device(name)


def cast_weights(part: nn.Module, dtype: torch.dtype) -> None:
    """Convert a part's weights in place, but not its buffers: rotary angles in bf16 would encode other positions."""
    for weight in part.parameters():
        weight.data = weight.data.to(dtype)
