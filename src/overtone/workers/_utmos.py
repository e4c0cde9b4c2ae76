"""UTMOS (Saeki et al. 2022), the strong learner, through its published interface: `predictor(wave, rate)` of the entry
`utmos22_strong` in the torch.hub repository tarepan/SpeechMOS."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from overtone.workers import _torchaudio
    from overtone.workers._mel import Floats
else:
    import _torchaudio

    Floats = Any

RATE = 16_000
REPOSITORY = "tarepan/SpeechMOS:v1.2.0"
ENTRY = "utmos22_strong"


class Utmos:
    """The predictor. `rate` is the sampling rate of its input; `facts` identifies the weights.

    The option `source` is a local copy of the repository (default: download it, which runs code from the network). The
    option `weights` is a state dict on disk (default: download the repository's own).
    """

    rate = RATE

    def __init__(self, options: dict[str, Any]) -> None:
        _torchaudio.stand_in()
        source, weights = options.get("source", ""), options.get("weights", "")
        local = {"source": "local"} if source else {"source": "github", "trust_repo": True}
        arguments = {"progress": False, **({"pretrained": False} if weights else {})}
        self.model: Any = torch.hub.load(source or REPOSITORY, ENTRY, **local, **arguments)
        if weights:
            self.model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        self.model.eval()
        if "sr" not in inspect.signature(self.model.forward).parameters:
            raise ValueError(f"{source or REPOSITORY}: {ENTRY} is not called with (wave, sr); use version 1.1 or later")
        digest = hashlib.sha256(b"".join(_bytes(t) for t in self.model.state_dict().values())).hexdigest()[:8]
        name = Path(source).resolve().name if source else REPOSITORY
        self.facts = {"names": ["utmos"], "weights": f"{name}.{digest}", "least": 0.25, "most": 60.0}

    def __call__(self, sounds: list[Floats]) -> list[dict[str, float]]:
        """Return name → value for each sound. Sounds are not batched, because padding would change the network's mean
        over time."""
        with torch.inference_mode():
            return [{"utmos": float(self.model(torch.from_numpy(x)[None], RATE).reshape(()))} for x in sounds]


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().cpu().numpy().tobytes())
