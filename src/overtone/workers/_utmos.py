"""UTMOS (Saeki et al. 2022), the strong learner, through its published interface: the torch.hub repository
tarepan/SpeechMOS, entry `utmos22_strong`, called as `predictor(wave, rate)`."""

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
    """The predictor. `rate` is that of the sounds it takes; `facts` says which weights these are.

    `source` is a local copy of the repository; without one it is fetched, which runs code from the network. `weights`
    is a state dict on disk; without one the repository's own are fetched.
    """

    rate = RATE

    def __init__(self, options: dict[str, Any]) -> None:
        _torchaudio.stand_in()
        source, weights = options.get("source", ""), options.get("weights", "")
        local = {"source": "local"} if source else {"source": "github", "trust_repo": True}
        told: dict[str, Any] = {"progress": False}
        if weights:
            told["pretrained"] = False
        self.model = torch.hub.load(source or REPOSITORY, ENTRY, **local, **told)
        if weights:
            self.model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        self.model.eval()
        if "sr" not in inspect.signature(self.model.forward).parameters:
            raise ValueError(f"{source or REPOSITORY}: {ENTRY} is not called with (wave, sr); use version 1.1 or later")
        digest = hashlib.sha256(b"".join(_bytes(t) for t in self.model.state_dict().values())).hexdigest()[:8]
        name = Path(source).resolve().name if source else REPOSITORY
        self.facts = {"names": ["utmos"], "weights": f"{name}.{digest}", "least": 0.25, "most": 60.0}

    def __call__(self, sounds: list[Floats]) -> list[dict[str, float]]:
        """Each sound's value. One at a time: the network takes no mask, so padding would change its mean over time."""
        with torch.inference_mode():
            return [{"utmos": float(self.model(torch.from_numpy(x)[None], RATE).reshape(()))} for x in sounds]


def _bytes(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.detach().contiguous().cpu().numpy().tobytes())
