"""What makes a GPU faster changes no loss, no name and no weight: whole blocks, a narrow frozen part, less kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from overtone.echat.learn import gpu_speed
from overtone.echat.net import config
from overtone.echat.net.backbone import RMSNorm, open_lm
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import EChat
from tests.echat import small

ROWS = (
    ((0.8, "hello", 6), (0.5, "yes", 0)),
    ((0.9, "hello you", 9), (0.4, "no", 3), (0.7, "who", 2)),
    ((0.6, "a", 12), (0.7, "b", 1), (0.5, "ccc", 2), (0.9, "d", 0)),
)


def model(kind: str = "small", dropout: float = 0.0) -> EChat:
    """One that hears as `mini` does, where it takes the wave: also what lies in the middle of its encoder."""
    made = small.model_config(hidden=96, layers=3, heads=6, kv_heads=2)
    taps = (1,) if kind == "moonshine" else ()
    encoder = msgspec.structs.replace(made.encoder, kind=kind, dim=48, layers=2, taps=taps)
    adapter = msgspec.structs.replace(made.adapter, layers=2, dropout=dropout)
    made = msgspec.structs.replace(made, encoder=encoder, adapter=adapter)
    torch.manual_seed(0)
    found = EChat(made, open_encoder(made.encoder), open_lm(made.lm)).train()
    if found.adapter.beside is not None:
        nn.init.normal_(found.adapter.beside.weight, std=0.1)
    return found


def learnt(made: EChat, rows: Any, holes: bool = False) -> tuple[float, list[torch.Tensor]]:
    batch = small.batch(made.config, rows)
    batch.holes = holes  # type: ignore[attr-defined]
    if holes:
        batch.mask[0, 1] = False
    made.ctc = 0.3
    made.zero_grad()
    loss = made(batch).loss
    loss.backward()
    return float(loss.detach()), [p.grad.clone() for p in made.parameters() if p.grad is not None]


@pytest.mark.parametrize("kind", ["small", "moonshine"])
def test_lengths_of_whole_blocks_change_no_loss(kind: str) -> None:
    made = model(kind)
    first = [learnt(made, rows, holes)[0] for rows in ROWS for holes in (False, True)]
    made.block, made.encoder.block = 8, 32
    for samples in (3_200, 3_520, 17_000):
        states, _ = made.encoder(torch.randn(2, samples), torch.tensor([samples, 3_300]))
        heard, _ = made.adapter(states, torch.tensor([9, 8]))
        assert states.shape[1] % 32 == 0 and heard.shape[1] % 8 == 0
    assert first == pytest.approx([learnt(made, rows, holes)[0] for rows in ROWS for holes in (False, True)], abs=1e-5)


def test_a_narrow_language_model_teaches_the_same_and_is_given_back_to_the_bit() -> None:
    wide, made = model(), model()
    for one in (wide, made):
        one.lm.requires_grad_(False)
    exact = gpu_speed.freeze(list(made.lm.parameters()), narrow=True)
    assert {p.dtype for p in made.lm.parameters()} == {torch.bfloat16}
    assert made.lm.base_model.rotary_emb.inv_freq.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        (a, first), (b, second) = learnt(wide, ROWS[0]), learnt(made, ROWS[0])
    assert abs(a - b) < 0.03 and {grad.dtype for grad in second} == {torch.float32}
    one, other = (torch.cat([grad.flatten() for grad in grads]) for grads in (first, second))
    assert nn.functional.cosine_similarity(one, other, dim=0) > 0.99
    gpu_speed.thaw(list(made.lm.parameters()), exact)
    assert all(torch.equal(p, q) for p, q in zip(wide.lm.parameters(), made.lm.parameters(), strict=True))
    assert made.lm.lm_head.weight is made.lm.model.embed_tokens.weight


def kept(run: Any) -> int:
    """Bytes that a forward pass keeps for the backward pass."""
    found: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # or its place would be given to the next
        return tensor

    alive: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run()
    return sum(found.values())


def test_a_batch_of_minis_keeps_less_than_half_of_a_gpu() -> None:
    """What a layer of mini's language model keeps of a position, times its layers and the positions of a batch. Of its
    two normalisations a GPU's kernel keeps what they are given; on a CPU they are many operations, so they are left out
    here and counted apart."""
    made = config.read("mini")
    lm = open_lm(msgspec.structs.replace(made.model.lm, source="random", layers=1, vocab=260)).base_model
    for name in [name for name, module in lm.named_modules() if isinstance(module, RMSNorm)]:
        lm.set_submodule(name, nn.Identity())
    sizes = {}
    for dtype, width in ((torch.float32, 4), (torch.bfloat16, 2)):
        rows = torch.randn(4, 64, made.model.lm.hidden, dtype=dtype, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            one, two = (kept(lambda x=x: lm(inputs_embeds=x, use_cache=False)) for x in (rows[:2], rows))
        sizes[dtype] = (two - one) / 128 + 2 * width * made.model.lm.hidden
    positions = max(table["positions"] for name, table in made.stage.items() if name != "prefer")
    assert 15e9 < sizes[torch.bfloat16] * made.model.lm.layers * positions < 21e9
    assert sizes[torch.bfloat16] < sizes[torch.float32]
