"""NISQA v2 and NISQA-TTS (Mittag et al. 2021) in our own code, with the authors' weights.

A convolutional network reads windows of a mel spectrogram, self-attention or an LSTM connects them, and each dimension
is pooled to one number. The checkpoint's `args` say which of these parts it has; tensors keep the authors' names.
"""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from overtone.workers import _mel
    from overtone.workers._mel import Floats
else:
    import _mel

    Floats = Any

RATE = 48_000
NAMES = ("nisqa_mos", "nisqa_noisiness", "nisqa_discontinuity", "nisqa_coloration", "nisqa_loudness")
_PARTS = {
    "cnn_model": ("adapt", "standard"),
    "td": ("self_att", "lstm"),
    "td_2": ("skip", None),
    "pool": ("att", "last_step_bi"),
    "double_ended": (False,),
    "td_sa_pos_enc": (False, None),
}
_ROWS = 2048  # windows through the convolutions at once


class Nisqa:
    """A loaded checkpoint. `rate` is the sampling rate of its input; `facts` identifies the weights."""

    rate = RATE

    def __init__(self, options: dict[str, Any]) -> None:
        path = Path(options["weights"])
        self.args, self.tensors = _load(path)
        a = self.args
        for key, known in _PARTS.items():
            if a.get(key) not in known:
                raise ValueError(f"{path.name}: its {key} is {a.get(key)!r}; known: {', '.join(map(str, known))}")
        self.heads = [f"pool_layers.{n}.model" for n in range(5)] if a["dim"] else ["pool.model"]
        tts = "tts" in str(a.get("name", "")).lower()
        self.names = NAMES if a["dim"] else ("nisqa_tts" if tts else "nisqa_mos",)
        self.filters = _mel.filters(RATE, a["ms_n_fft"], a["ms_n_mels"], a["ms_fmax"])
        if a["td"] == "lstm":
            self.lstm = _lstm(a, self.tensors)
        hop = a["ms_seg_hop_length"] * a["ms_hop_length"]
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        self.facts = {
            "names": list(self.names),
            "weights": f"{a.get('name') or path.stem}.{digest}",
            "least": round((a["ms_seg_length"] - 1) * a["ms_hop_length"], 3),
            "most": round(a["ms_max_segments"] * hop, 3),
        }

    def __call__(self, sounds: list[Floats]) -> list[dict[str, float]]:
        """Return the values of each sound. The convolutions process the windows of all sounds together, without
        padding. The rest of the network processes one sound at a time, so that no value depends on the other sounds."""
        with torch.inference_mode():
            cut = [torch.from_numpy(self.windows(x)) for x in sounds]
            flat = torch.cat(cut)[:, None]
            seen = torch.cat([self.see(flat[i : i + _ROWS]) for i in range(0, len(flat), _ROWS)])
            return [self.pooled(part) for part in seen.split([len(c) for c in cut])]

    def windows(self, x: Floats) -> Floats:
        """Return the windows of a sound's mel spectrogram: (windows, mel bands, frames of a window)."""
        a = self.args
        hop, width = int(RATE * a["ms_hop_length"]), int(RATE * a["ms_win_length"])
        mel = _mel.frames(x, a["ms_n_fft"], hop, width, "reflect") @ self.filters.T
        db = _mel.decibels(np.square(mel), 1e-8)
        cut = np.lib.stride_tricks.sliding_window_view(db, a["ms_seg_length"], axis=0)
        return np.ascontiguousarray(cut[:: a["ms_seg_hop_length"]])

    def see(self, x: torch.Tensor) -> torch.Tensor:
        """Apply six convolutions: (windows, 1, bands, frames) to (windows, features)."""
        a = self.args
        adapt = a["cnn_model"] == "adapt"
        last = (1, 0) if adapt else (1, 1)  # the last kernel of the adaptive form is as wide as its input
        x = self._conv(x, 1, (1, 1))
        x = F.adaptive_max_pool2d(x, a["cnn_pool_1"]) if adapt else F.max_pool2d(x, 2, padding=(0, 1))
        x = self._conv(x, 2, (1, 1))
        x = F.adaptive_max_pool2d(x, a["cnn_pool_2"]) if adapt else F.max_pool2d(x, 2)
        x = self._conv(self._conv(x, 3, (1, 1)), 4, (1, 1))
        x = F.adaptive_max_pool2d(x, a["cnn_pool_3"]) if adapt else F.max_pool2d(x, 2)
        x = self._conv(self._conv(x, 5, (1, 1)), 6, last).flatten(1)
        for name in ("cnn.model.fc_out", "cnn.model.fc"):
            if f"{name}.weight" in self.tensors:
                return self._linear(x, name)
        return x

    def pooled(self, x: torch.Tensor) -> dict[str, float]:
        """Return name → value for one sound, given the features of its windows: (windows, features)."""
        x = self.lstm(x[None])[0][0] if self.args["td"] == "lstm" else self._attend(x)
        values = [self._last(x, h) if self.args["pool"] == "last_step_bi" else self._pool(x, h) for h in self.heads]
        return dict(zip(self.names, values, strict=True))

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        base, heads = "time_dependency.model", self.args["td_sa_nhead"]
        x = self._norm(self._linear(x, f"{base}.linear"), f"{base}.norm1")
        for n in range(self.args["td_sa_num_layers"]):
            layer = f"{base}.layers.{n}"
            weight = self.tensors[f"{layer}.self_attn.in_proj_weight"]
            parts = F.linear(x, weight, self.tensors[f"{layer}.self_attn.in_proj_bias"]).chunk(3, dim=1)
            q, k, v = (p.unflatten(1, (heads, -1)).transpose(0, 1) for p in parts)  # (heads, windows, features)
            attended = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
            x = self._norm(x + self._linear(attended, f"{layer}.self_attn.out_proj"), f"{layer}.norm1")
            inner = self._linear(F.relu(self._linear(x, f"{layer}.linear1")), f"{layer}.linear2")
            x = self._norm(x + inner, f"{layer}.norm2")
        return x

    def _pool(self, x: torch.Tensor, head: str) -> float:
        weight = torch.softmax(self._linear(F.relu(self._linear(x, f"{head}.linear1")), f"{head}.linear2"), dim=0)
        return float(self._linear((weight * x).sum(0), f"{head}.linear3"))

    def _last(self, x: torch.Tensor, head: str) -> float:
        """Pool the final state of each direction of the LSTM: forward at the last window, backward at the first."""
        half = x.shape[1] // 2
        return float(self._linear(torch.cat((x[-1, :half], x[0, half:])), f"{head}.linear"))

    def _conv(self, x: torch.Tensor, n: int, padding: tuple[int, int]) -> torch.Tensor:
        t, conv, norm = self.tensors, f"cnn.model.conv{n}", f"cnn.model.bn{n}"
        x = F.conv2d(x, t[f"{conv}.weight"], t[f"{conv}.bias"], padding=padding)
        mean, spread = t[f"{norm}.running_mean"], t[f"{norm}.running_var"]
        return F.relu(F.batch_norm(x, mean, spread, t[f"{norm}.weight"], t[f"{norm}.bias"]))

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])


def _lstm(args: dict[str, Any], tensors: dict[str, torch.Tensor]) -> torch.nn.LSTM:
    prefix = "time_dependency.model.lstm."
    own = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    lstm = torch.nn.LSTM(
        own["weight_ih_l0"].shape[1],
        args["td_lstm_h"],
        args["td_lstm_num_layers"],
        batch_first=True,
        bidirectional=args["td_lstm_bidirectional"],
    )
    lstm.load_state_dict(own)
    return lstm.eval()


def _load(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the checkpoint's arguments and tensors. A pickle with anything else is refused and never executed."""
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} is not a NISQA checkpoint that can be loaded safely: {first}") from None
    if not isinstance(checkpoint, dict) or not {"args", "model_state_dict"} <= set(checkpoint):
        raise ValueError(f"{path} is not a NISQA checkpoint: it has no args and model_state_dict")
    return dict(checkpoint["args"]), dict(checkpoint["model_state_dict"])
