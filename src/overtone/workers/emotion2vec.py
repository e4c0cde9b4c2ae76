"""emotion2vec+ through FunASR's AutoModel, run in the measuring environment: sounds in, labels and their scores out.

The option `model` is a folder with a downloaded model (its `configuration.json` or `config.yaml`, `tokens.txt` and
`model.pt`), or a hub id; `hub` is `ms` (ModelScope) or `hf`. The blobs of a call are mono float32 sounds at 16 kHz.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overtone.workers import protocol
else:
    import protocol

MODEL = "iic/emotion2vec_plus_large"
RATE = 16_000


class Emotion2vec:
    """A loaded model that answers calls."""

    def __init__(self, options: dict[str, Any]) -> None:
        from funasr import AutoModel

        name = str(options.get("model") or MODEL)
        hub = str(options.get("hub") or "ms")
        if hub not in ("ms", "hf"):
            raise ValueError(f"no hub {hub!r}; known: ms (ModelScope), hf (Hugging Face)")
        device = str(options.get("device") or _device())
        self.model = AutoModel(model=name, hub=hub, device=device, disable_update=True, disable_pbar=True)
        self.facts = {
            "rate": RATE,
            "model": Path(name).name if Path(name).is_dir() else name,
            "sha256": _sha256(Path(name)),
            "versions": protocol.versions(("funasr", "torch")),
        }

    def __call__(self, header: dict[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        import numpy as np

        values = []
        for blob in blobs:
            sound = np.frombuffer(blob, np.float32).copy()
            result = self.model.generate(sound, granularity="utterance", extract_embedding=False, fs=RATE)[0]
            values.append({"labels": list(result["labels"]), "scores": [float(score) for score in result["scores"]]})
        return {"values": values}, []


def _device() -> str:
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu"


def _sha256(folder: Path) -> str:
    """Return the digest of the weights in a local folder; "" for a hub id, because name and version identify it."""
    import hashlib

    weights = folder / "model.pt"
    if not weights.is_file():
        return ""
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(protocol.serve_calls(Emotion2vec))
