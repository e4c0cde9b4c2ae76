"""Weights in less room: what comes back is near what went in, within the bytes allowed, and told when it is foreign."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from overtone.echat.net import checkpoint, compact
from overtone.echat.net.checkpoint import Kept
from overtone.echat.net.compact import HEAD
from overtone.echat.net.config import Config
from overtone.errors import DataError, UsageError
from tests.echat import small

WHOLE = Config(name="test", model=small.model_config())


def size(kept: dict[str, torch.Tensor]) -> int:
    return sum(value.numel() * value.element_size() for value in kept.values())


def base() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {
        "table": torch.randn(800, 24),
        "up": torch.randn(96, 40),
        "down": torch.randn(40, 96),
        "norm": torch.ones(24),
    }


def low_rank(m: int, n: int, rank: int) -> Tensor:
    return torch.randn(m, rank) @ torch.randn(rank, n)


def error(a: dict[str, Tensor], b: dict[str, Tensor], old: dict[str, Tensor]) -> float:
    """What is left of the change."""
    return sum(float((a[k] - b[k]).square().sum()) for k in a) / sum(float((a[k] - old[k]).square().sum()) for k in a)


def test_eight_bits_a_weight_keep_every_weight_within_half_a_step() -> None:
    old = base()
    back = compact.whole("int8", compact.int8(old), {}, "x")
    assert set(back) == set(old) and torch.equal(back["norm"], old["norm"])
    for name in ("table", "up", "down"):
        step = old[name].abs().amax(1, keepdim=True) / 127
        assert ((back[name] - old[name]).abs() <= step * 0.5001).all()


def test_a_change_of_low_rank_comes_back_almost_whole_and_norms_exactly() -> None:
    old = base()
    new = {
        **old,
        "up": old["up"] + low_rank(96, 40, 3),
        "down": old["down"] + low_rank(40, 96, 3),
        "norm": old["norm"] * 2,
    }
    kept = compact.delta(new, old, 3 * 8 * HEAD + HEAD + 96 + 6 * 140 + 40)
    assert size(kept) < 3000  # of 55,000 in half precision
    back = compact.whole("delta", kept, old, "x")
    assert torch.equal(back["norm"], new["norm"])
    assert error(new, back, old) < 3e-4
    assert torch.equal(back["table"], old["table"])


def test_rows_of_a_table_that_moved_are_kept_by_themselves() -> None:
    old = base()
    new = {**old, "table": old["table"].clone()}
    moved = torch.randperm(800)[:30]
    new["table"][moved] += torch.randn(30, 24)
    kept = compact.delta(new, old, 3 * 8 * HEAD + HEAD + 96 + 30 * 32)
    assert sorted(moved.tolist()) == kept["table:rows"].tolist()
    assert error(new, compact.whole("delta", kept, old, "x"), old) < 1e-3


def test_where_nothing_is_of_low_rank_signs_take_most_of_the_error_away() -> None:
    old = base()
    new = {name: value + 0.1 * torch.randn(value.shape) for name, value in old.items()}
    budget = 3 * 8 * HEAD + HEAD + 96 + sum(m * (-(-n // 8) + 4) for m, n in ((800, 24), (96, 40), (40, 96))) + 3000
    kept = compact.delta(new, old, budget)
    assert size(kept) <= budget
    assert "up:signs" in kept
    assert error(new, compact.whole("delta", kept, old, "x"), old) < 0.36


def test_more_bytes_are_never_worse_and_a_rank_is_kept_to() -> None:
    old = base()
    new = {name: value + 0.1 * torch.randn(value.shape) for name, value in old.items()}
    left = []
    for budget in (6_000, 12_000, 24_000):
        kept = compact.delta(new, old, budget)
        assert size(kept) <= budget
        left.append(error(new, compact.whole("delta", kept, old, "x"), old))
    assert left == sorted(left, reverse=True)
    kept = compact.delta(new, old, 24_000, rank=2)
    assert max(value.shape[1] for name, value in kept.items() if name.endswith(":left")) == 2
    with pytest.raises(UsageError, match="too few"):
        compact.delta(new, old, 1000)


def test_the_same_change_gives_the_same_bytes_and_another_model_is_refused() -> None:
    old = base()
    new = {name: value + 0.1 * torch.randn(value.shape) for name, value in old.items()}
    first, second = (compact.delta(new, old, 9_000) for _ in range(2))
    assert first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
    with pytest.raises(UsageError, match="only one of them has up"):
        compact.delta(new, {k: v for k, v in old.items() if k != "up"}, 9_000)
    with pytest.raises(DataError, match="does not fit the model it is a change of"):
        compact.whole("delta", first, {**old, "up": torch.zeros(3, 3)}, "x")
    with pytest.raises(DataError, match="cannot read"):
        compact.whole("int3", first, old, "x")
    assert compact.fingerprint(old) != compact.fingerprint(new)


def test_a_checkpoint_with_a_part_in_less_room_loads_as_any_other(tmp_path: Path) -> None:
    model = small.model(seed=1)
    kept = {"lm": Kept("int8", compact.int8(checkpoint.part_state(model, "lm")))}
    checkpoint.save(model, tmp_path / "one", WHOLE, dtype=torch.float16, kept=kept)
    again, _ = checkpoint.load(tmp_path / "one")
    part = checkpoint.index(tmp_path / "one").parts["lm"]
    assert part.form == "int8" and part.parameters == sum(p.numel() for p in model.lm.parameters())
    assert torch.equal(again.adapter.out.weight, model.adapter.out.weight.half().float())
    a, b = (m(small.batch(model.config)).loss for m in (model.eval(), again))
    assert torch.allclose(a, b, atol=0.02) and not torch.equal(a, b)
