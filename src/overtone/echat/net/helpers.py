"""Two losses on what the adapter gives, beside the language model's. Neither is in the published recipe: there the
adapter learns only through a frozen language model, from millions of clips; these tell it at once which of its outputs
belongs to which word, and that a voice is part of what is heard."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.echat.data.labels import DIMENSIONS, UNKNOWN

LABELS = [len(labels) for labels in DIMENSIONS.values()]
WORDS = 1_000  # different ones in a batch, about


class Helpers(nn.Module):
    """What the two losses learn besides the adapter; the model itself has no use for it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.blank = nn.Linear(width, 1)  # "no word here"
        self.scale = nn.Parameter(torch.ones(1))  # how sharply words are told apart
        self.labels = nn.Linear(width, sum(LABELS))

    def words(self, heard: Tensor, lengths: Tensor, ids: Tensor, sizes: Tensor, table: Tensor) -> Tensor:
        """What is said, read off the adapter's outputs (C, T, d) by the language model's own embeddings (V, d), among
        the words of the batch (CTC): a mean over words. `ids` (C, U), of which `sizes` (C,) count; 0 = not known. The
        two and `lengths` are best where the processor is: else it waits for the device to tell them."""
        known = sizes > 0
        words, used = torch.unique(ids.clamp(min=0), return_inverse=True)  # (W,), (C, U)
        words, used, counted = (t.to(heard.device, non_blocking=True) for t in (words, used + 1, known))
        among = max(int((sizes * known).sum()), 1)
        with torch.autocast(heard.device.type, enabled=False):
            x = F.rms_norm(heard.float(), heard.shape[-1:]) * self.scale
            scores = torch.cat((_exactly(self.blank, x), x @ table[words].float().T), -1).log_softmax(-1)  # (C, T, 1+W)
            counts = lengths.cpu(), sizes.cpu().clamp(min=1)
            loss = F.ctc_loss(scores.transpose(0, 1), used, *counts, reduction="none", zero_infinity=True)
        return (loss * counted).sum() / among

    def cues(self, heard: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """Labels (C, dimensions) of clips, by a layer on the mean of a clip's outputs: a mean over those known."""
        with torch.autocast(heard.device.type, enabled=False):
            inside = torch.arange(heard.shape[1], device=heard.device) < lengths[:, None]
            x = F.rms_norm(heard.float(), heard.shape[-1:]) * inside[..., None]
            scores = _exactly(self.labels, x.sum(1) / lengths[:, None])  # (C, all labels)
            losses = [
                F.cross_entropy(part, goal, ignore_index=UNKNOWN, reduction="sum")
                for part, goal in zip(scores.split(LABELS, -1), labels.unbind(-1), strict=True)
            ]
        return torch.stack(losses).sum() / (labels != UNKNOWN).sum().clamp(min=1)


def _exactly(layer: nn.Linear, x: Tensor) -> Tensor:
    """A layer in float32, also where several processes gather its weights in bf16."""
    return F.linear(x, layer.weight.float(), layer.bias.float())
