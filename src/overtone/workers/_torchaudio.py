"""A replacement for torchaudio. Some predictors import it to read and resample files, which is not needed here, because
they get samples at the right rate. The real library does not work with every build of torch."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def stand_in() -> None:
    """Install the replacement if torchaudio is not installed."""
    if "torchaudio" in sys.modules or importlib.util.find_spec("torchaudio") is not None:
        return
    module, functional = ModuleType("torchaudio"), ModuleType("torchaudio.functional")
    module.__spec__ = ModuleSpec("torchaudio", None)
    functional.__spec__ = ModuleSpec("torchaudio.functional", None)
    functional.resample = _same_rate  # type: ignore[attr-defined]
    module.functional = functional  # type: ignore[attr-defined]
    sys.modules |= {"torchaudio": module, "torchaudio.functional": functional}


def _same_rate(wave: Any, orig_freq: int, new_freq: int, *_: Any, **__: Any) -> Any:
    if orig_freq != new_freq:
        raise RuntimeError(f"resampling from {orig_freq} to {new_freq} Hz needs torchaudio")
    return wave
