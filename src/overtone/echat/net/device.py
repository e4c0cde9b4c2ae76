"""Where a model runs: the device that a user names, refused at once where it is not there."""

from __future__ import annotations

import torch

from overtone.errors import UsageError
from overtone.paths import shown


def chosen(name: str) -> torch.device:
    """`auto` (a GPU where torch sees one), `cpu`, `cuda` or `cuda:N`. Raises UsageError."""
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
