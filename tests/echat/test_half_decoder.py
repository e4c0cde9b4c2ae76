"""Decoding on a CPU in half precision: the states of transformers' model, with a cache, padding and a batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from overtone.echat.net import half_decoder
from overtone.echat.net.backbone import build
from overtone.echat.net.half_decoder import HalfDecoder
from overtone.echat.net.model import places
from overtone.errors import UsageError
from tests.echat import small

MASK = torch.ones(3, 300, dtype=torch.bool)
MASK[1, :7] = False  # padding on the left
MASK[2, :2] = False


@pytest.fixture
def lm() -> Any:
    torch.manual_seed(0)
    return build(small.model_config().lm).eval()


def states(step: Any, x: Tensor, mask: Tensor | None, sizes: list[int]) -> Tensor:
    """Read inputs in pieces of these sizes."""
    out, cache, end = [], None, 0
    for size in sizes:
        piece, end = x[:, end : end + size], end + size
        seen = None if mask is None else mask[:, :end]
        hidden, cache = step(piece, seen, None if seen is None else places(seen, size), cache)
        out.append(hidden)
    return torch.cat(out, 1)


def plain(lm: Any) -> Any:
    """transformers' model, asked as `EChat.step` asks it."""

    def step(x: Tensor, mask: Tensor | None, at: Tensor | None, cache: Any) -> tuple[Tensor, Any]:
        out = lm.base_model(
            inputs_embeds=x, attention_mask=mask, position_ids=at, past_key_values=cache, use_cache=True
        )
        return out.last_hidden_state, out.past_key_values

    return step


@torch.inference_mode()
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("padded", [False, True])
def test_states_are_those_of_transformers_up_to_rounding(lm: Any, rows: int, padded: bool) -> None:
    mask = MASK[-rows:] if padded else None
    x = torch.randn(rows, 300, 32)
    sizes = [12, *[1] * 6, 2, 280]  # beyond the first 256 positions, for which memory is kept
    theirs, ours = (states(step, x, mask, sizes) for step in (plain(lm), HalfDecoder(lm)))
    seen = torch.ones(rows, 300, dtype=torch.bool) if mask is None else mask
    assert torch.allclose(ours[seen], theirs[seen], atol=0.02) and float(theirs.abs().max()) > 1
    assert not torch.equal(ours[seen], theirs[seen])  # or nothing was in half precision


@torch.inference_mode()
def test_a_rows_states_do_not_depend_on_its_batch(lm: Any) -> None:
    x = torch.randn(3, 5, 32)
    decoder = HalfDecoder(lm)
    together = states(decoder, x, None, [1] * 5)
    assert all(torch.equal(together[i : i + 1], states(decoder, x[i : i + 1], None, [1] * 5)) for i in range(3))


@torch.inference_mode()
def test_many_rows_are_multiplied_at_once_with_the_same_result(lm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, decoder = torch.randn(1, 6, 32), HalfDecoder(lm)
    one_by_one = states(decoder, x, None, [6])
    monkeypatch.setattr(half_decoder, "FEW", 2)
    assert torch.allclose(one_by_one, states(decoder, x, None, [6]), atol=0.02)


def test_other_families_are_refused() -> None:
    with pytest.raises(UsageError, match="needs a Llama, and this is a qwen2; use dtype=float32"):
        HalfDecoder(build(small.model_config(family="qwen2").lm))
