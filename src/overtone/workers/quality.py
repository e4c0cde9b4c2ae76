"""Predictors of speech quality, run in the measuring environment: sounds in, named values out.

The option `predictor` names one. The blobs of a call are float32 sounds at the predictor's rate, checked and resampled
by the caller. The answer has one object of values per sound.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overtone.workers import protocol
else:
    import protocol


PREDICTORS = {"nisqa": "Nisqa", "dnsmos": "Dnsmos", "distillmos": "DistillMos", "utmos": "Utmos"}  # file → class


class Quality:
    """A loaded predictor that answers calls."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.predict = _predictor(options)
        packages = ("torch", "onnxruntime", "speechmos", "distillmos")
        self.facts = {"rate": self.predict.rate, **self.predict.facts, "versions": protocol.versions(packages)}

    def __call__(self, header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        import numpy as np

        sounds = [np.frombuffer(blob, np.float32).copy() for blob in blobs]
        return {"values": self.predict(sounds)}, []


def _predictor(options: dict[str, Any]) -> Any:
    name = options["predictor"]
    if name not in PREDICTORS:
        raise ValueError(f"no predictor {name!r}; known: {', '.join(PREDICTORS)}")
    return getattr(importlib.import_module(f"_{name}"), PREDICTORS[name])(options)


if __name__ == "__main__":
    sys.exit(protocol.serve_calls(Quality))
