"""Low-rank adaptation (LoRA) of the language model: small trained matrices beside its frozen layers.

    y = W x + scale · B (A x)        W frozen, A (rank × in) and B (out × rank) trained

Written here because the recorded kernels and the sharding of training need layers whose names stay the same, and
because a checkpoint stores the trained matrices alone.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from overtone.echat.net.config import LoraConfig


class LowRank(nn.Module):
    """A frozen linear layer with a trained change of low rank. The frozen weight keeps its name and its memory."""

    def __init__(self, layer: nn.Linear, config: LoraConfig) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.scale = config.alpha / config.rank
        self.a = nn.Parameter(layer.weight.new_empty(config.rank, layer.in_features))
        self.b = nn.Parameter(layer.weight.new_zeros(layer.out_features, config.rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the frozen layer and the trained change."""
        return F.linear(x, self.weight, self.bias) + self.scale * F.linear(F.linear(x, self.a), self.b)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """Return one linear layer with the sum of both weights."""
        layer = nn.Linear(*self.weight.shape[::-1], bias=self.bias is not None, device="meta")
        layer.weight = nn.Parameter(torch.addmm(self.weight, self.b, self.a, alpha=self.scale), requires_grad=False)
        if self.bias is not None:
            layer.bias = self.bias
        return layer


def adapt(lm: Any, config: LoraConfig) -> None:
    """Freeze a language model, and add trained matrices to every linear layer of its transformer.

    Normalisations have few weights and are trained themselves. The tables of embeddings and outputs stay frozen.
    """
    lm.requires_grad_(False)
    body = lm.base_model
    for name, module in list(body.named_modules()):
        if isinstance(module, nn.Linear):
            body.set_submodule(name, LowRank(module, config))
    for parameter in learned(lm).values():
        parameter.requires_grad_()


def adapted(lm: Any) -> bool:
    """Return whether a language model has trained matrices beside frozen layers."""
    return any(isinstance(module, LowRank) for module in lm.modules())


def learned(lm: Any) -> dict[str, nn.Parameter]:
    """Return the trained weights of an adapted language model by name: its small matrices, and vectors like those of
    normalisations. Of a model that is not adapted, return all weights."""
    if not adapted(lm):
        return dict(lm.named_parameters())
    frozen = {id(parameter) for parameter in _frozen(lm).values()}
    return {name: parameter for name, parameter in lm.named_parameters() if id(parameter) not in frozen}


def _frozen(lm: Any) -> dict[str, nn.Parameter]:
    """Return the weights of an adapted language model that came from its source and are not trained."""
    tables = (lm.get_input_embeddings(), lm.get_output_embeddings())
    own = {id(parameter) for table in tables for parameter in table.parameters()}
    for module in lm.modules():
        if isinstance(module, LowRank):
            own |= {id(parameter) for parameter in (module.weight, module.bias) if parameter is not None}
    return {name: parameter for name, parameter in lm.named_parameters() if id(parameter) in own}


def merge(lm: Any) -> None:
    """Replace each adapted layer by one linear layer with the sum of its weights.

    The result costs as much to run as the language model without changes. It differs from the adapted model by rounding
    alone, and the same matrices give the same sum.
    """
    for name, module in list(lm.named_modules()):
        if isinstance(module, LowRank):
            lm.set_submodule(name, module.merged())


def frozen_digest(lm: Any) -> tuple[str, int]:
    """Return the SHA-256 of an adapted language model's frozen weights, and their number."""
    digest, count = hashlib.sha256(), 0
    for name, parameter in sorted(_frozen(lm).items()):
        digest.update(name.encode())
        digest.update(parameter.detach().to("cpu", torch.float32).contiguous().numpy().data)
        count += parameter.numel()
    return digest.hexdigest(), count
