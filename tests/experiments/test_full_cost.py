"""The estimate for the published configuration: the page shows it, and a small model has the bytes that it counts."""

from __future__ import annotations

import json

import pytest
import torch

from experiments.echat import full_cost
from overtone.echat.learn.stages import StageRun, stages
from overtone.echat.learn.training_loop import make_optimiser
from overtone.echat.net import checkpoint
from overtone.echat.net import config as configs
from overtone.echat.net.config import PARTS
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "how-to" / "train-on-gpus.md"


def test_the_page_shows_the_estimate_that_the_script_makes() -> None:
    cost = full_cost.estimate(configs.read("full"), 8)
    assert json.loads(full_cost.COST.read_text()) == cost, "run: python -m experiments.echat.full_cost"
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(full_cost.table(cost)) in page
    low, high = cost["prefer"]["minutes_per_1000_pairs"]
    assert f"{cost['prefer']['gb']} GB per GPU and {low} to {high} minutes per 1,000 pairs" in page
    assert f"{cost['host_gb']} GB of the machine's memory" in page


def test_a_log_gives_positions_per_target_and_per_second() -> None:
    lines = [
        "stage 1: understanding; 60 steps, 6000 target tokens",
        "  step 20/60  loss 3.000  text 3.000  10 positions/s  4 s",  # with the start
        "  step 40/60  loss 2.000  text 2.000  1,000 positions/s  8 s",
        "  step 60/60  loss 1.000  text 1.000  1,100 positions/s  12 s",
    ]
    found = full_cost.measured("\n".join(lines))["1"]
    assert found.per_target == pytest.approx((4 * 1000 + 4 * 1000 + 4 * 1100) / 6000)
    assert found.speed == 1000
    assert set(full_cost.SAME.values()) <= set(full_cost.measured(full_cost.LOG.read_text()))


@pytest.mark.parametrize("name", ["1", "3"])
def test_a_small_model_in_training_has_the_counted_bytes(name: str) -> None:
    config = configs.read("tiny")
    stage = stages(config.stage, "tiny")[name]
    torch.manual_seed(0)
    model = checkpoint.make(config)
    parts = {part: list(getattr(model, part).parameters()) for part in PARTS}
    optimiser = make_optimiser(parts, StageRun(name, stage, 1, 1), torch.device("cpu"))
    tensors = [p for group in parts.values() for p in group]
    tensors += [p for p in tensors if p.requires_grad]  # their gradients
    tensors += [one for kept in optimiser.state.values() for key, one in kept.items() if key != "step"]
    held = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    sizes = {part: sum(p.numel() for p in group) for part, group in parts.items()}
    assert full_cost.state(sizes, stage) == held


def test_more_gpus_need_less_memory_and_time_each() -> None:
    config = configs.read("full")
    sizes = {"encoder": 307_000_000, "adapter": 51_000_000, "speech": 17_000_000, "lm": 3_086_000_000}
    stage = stages(config.stage, "full")["3"]
    bytes_ = [full_cost.memory(config, sizes, stage, gpus) for gpus in (1, 2, 8)]
    assert bytes_ == sorted(bytes_, reverse=True)
    assert full_cost.memory(config, sizes, stage, 8, frozen_copy=True) > bytes_[-1]
    frozen = stages(config.stage, "full")["1"]
    assert full_cost.operations(sizes, frozen, 0.0) < full_cost.operations(sizes, stage, 0.0)
    assert full_cost.operations(sizes, stage, 1.0) > full_cost.operations(sizes, stage, 0.0)
    assert full_cost.transfers(sizes, 1) == 0
