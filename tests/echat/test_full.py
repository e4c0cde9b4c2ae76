"""The published configuration, built without memory: its parts have the published sizes."""

from __future__ import annotations

import pytest
import torch

from overtone.echat.net import config
from overtone.echat.net.backbone import build, fused
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import EChat


def count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.fixture(scope="module")
def full() -> EChat:
    made = config.read("full").model
    with torch.device("meta"):
        return EChat(made, open_encoder(made.encoder, empty=True), fused(build(made.lm)))


def test_the_published_model_has_the_published_sizes(full: EChat) -> None:
    assert all(p.is_meta for p in full.parameters())
    assert count(full.encoder) == 307_216_384  # Whisper-medium's encoder, with its 1,500 positions
    assert count(full.lm) == 3_085_938_688  # Qwen2.5-3B, its two tables one
    # the published code notes about 51.6 M; its layers add up to this, and what our helper losses learn
    assert count(full.adapter) - count(full.adapter.helpers) == 50_388_992
    assert abs(count(full.adapter) / 51.6e6 - 1) < 0.03
    assert full.speech["embed"].weight.shape == (4099, 2048)
    assert full.speech["head"].weight.shape == (4097, 2048)
    assert (full.vocab, full.codes, full.edge) == (151_936, 4096, 151_936 + 4096)


def test_its_adapter_is_the_published_one(full: EChat) -> None:
    adapter = full.adapter
    assert [(c.in_channels, c.out_channels, *c.kernel_size, *c.stride) for c in adapter.convs] == [
        (1024, 1024, 3, 1),
        (1024, 1024, 3, 2),
        (1024, 1024, 3, 2),
    ]
    assert [(b.heads, b.up.out_features, b.dropout) for b in adapter.blocks] == [(4, 2560, 0.1)] * 4
    assert (adapter.out.in_features, adapter.out.out_features) == (1024, 2048)


def test_the_mini_and_tiny_presets_stay_small() -> None:
    sizes = {}
    for name in ("mini", "tiny"):
        made = config.read(name).model
        with torch.device("meta"):
            model = EChat(made, open_encoder(made.encoder, empty=True), fused(build(made.lm)))
        sizes[name] = {part: count(getattr(model, part)) for part in ("encoder", "adapter", "speech", "lm")}
    assert sizes["mini"]["encoder"] == 7_681_248
    assert sizes["mini"]["encoder"] + sizes["mini"]["adapter"] < 12.7e6
    assert sizes["mini"]["lm"] == 134_515_008
    assert sum(sizes["tiny"].values()) < 1.5e6
