"""Two auxiliary losses on the adapter's outputs, in addition to the language model's loss.

The published recipe has neither: there the adapter learns through a frozen language model from millions of clips. These
losses tell the adapter directly which output belongs to which word, and that the voice matters.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.echat.data.labels import DIMENSIONS, UNKNOWN

LABELS = [len(labels) for labels in DIMENSIONS.values()]
WORDS = 1_000  # approximate number of different words in a batch


class Helpers(nn.Module):
    """The parameters of the two losses. The model itself does not use them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.blank = nn.Linear(width, 1)  # the score of "no word here"
        self.scale = nn.Parameter(torch.ones(1))  # sharpness of the distinction between words
        self.labels = nn.Linear(width, sum(LABELS))

    def words(self, heard: Tensor, lengths: Tensor, ids: Tensor, sizes: Tensor, table: Tensor) -> Tensor:
        """Return the CTC loss of the words, as a mean over words.

        The adapter's outputs (C, T, d) are compared with the language model's embeddings (V, d) of the batch's words.
        `ids` (C, U) has the words' ids, of which the first `sizes` (C,) count; a size of 0 means that the words are
        unknown. Keep these two and `lengths` on the CPU to avoid waiting for the device.
        """
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
        """Return the loss of the labels (C, dimensions), predicted from the mean of a clip's outputs: all of
        them, or those that describe its voice.

        It is a mean over the known labels.
        """
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
    """Apply a layer in float32, even if its weights were gathered from several processes in bf16."""
    return F.linear(x, layer.weight.float(), layer.bias.float())
