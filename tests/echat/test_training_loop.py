"""The loop: what it promises of steps, target tokens, rates, frozen parts, seeds and of a loss that is no number."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch

from overtone.cli import main
from overtone.echat.learn import run_stages, train_text
from overtone.echat.learn.batch_stream import Corpus, Stream
from overtone.echat.learn.batches import Clips
from overtone.echat.learn.stages import Rates, StageRun, plan, stages
from overtone.echat.learn.training_loop import Diverged, make_optimiser, step_seed, train
from overtone.echat.learn.training_report import LOG, read_log
from overtone.echat.net.config import read
from overtone.echat.net.tokenizer import open_tokenizer
from tests.echat.toys import ALONE, RUN, STAGE, Numbers, Toy, learn, make_pack


def test_the_same_seed_gives_the_same_run_to_the_bit(tmp_path) -> None:
    (_, one), (_, two) = learn(tmp_path / "one"), learn(tmp_path / "two")
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    losses = [[row.loss for row in read_log(tmp_path / name / LOG)] for name in ("one", "two")]
    assert losses[0] == losses[1]
    _, other = learn(tmp_path / "three", seed=1)
    assert not torch.equal(one.lm.weight, other.lm.weight)


@pytest.mark.parametrize("seed", [1_700_000_000, 2**63 - 1])
def test_a_large_seed_is_a_seed_like_any_other(tmp_path, seed) -> None:
    short = StageRun("1", STAGE, 2, 200)
    assert learn(tmp_path / "loop", run=short, seed=seed)[0]
    config, corpus = read("tiny"), Corpus([make_pack(tmp_path / "pack", 6)])
    [planned] = plan(stages(config.stage, "tiny"), only="3")
    clips, tok = Clips(corpus.packs, torch.device("cpu")), open_tokenizer(config.model)
    drawn = []
    for one in (seed, seed - 1):
        stream = Stream(corpus, clips, planned, config.model, tok, seed=one, learn=False)
        stream.ready(next(iter(stream.held_out(1).values())), step=1)
        drawn.append(stream.generator.initial_seed())
    assert drawn[0] != drawn[1]


def test_seeds_used_until_now_draw_what_they_drew() -> None:
    assert step_seed(0, 1, 0) == 65_537 and step_seed(1, 20, 3) == (1_000_003 + 20) * 65_537 + 3
    assert step_seed(280_000_000, 5_000, 7) == (280_000_000 * 1_000_003 + 5_000) * 65_537 + 7
    assert 0 <= step_seed(2**63 - 1, 10**6, 10**4) < 2**64


def test_the_loss_falls_and_every_step_is_logged(tmp_path) -> None:
    done, _ = learn(tmp_path)
    rows = read_log(tmp_path / LOG)
    assert done and [row.step for row in rows] == list(range(1, 31))
    assert rows[-1].loss < 0.6 * rows[0].loss
    assert rows[0].rate < rows[5].rate == 1.0
    assert {row.tasks for row in rows} == {"t2t"} and rows[-1].positions % 50 == 0


def test_the_targets_of_a_stage_are_used_up_to_a_batch(tmp_path) -> None:
    """Also where a step's share is no multiple of a batch: what one step takes too much, the next takes less."""
    for name, targets in (("a", 3000), ("b", 2990), ("c", 1801)):
        learn(tmp_path / name, run=StageRun("1", STAGE, 30, targets))
        rows = read_log(tmp_path / name / LOG)
        used = 0
        for row in rows:
            used += row.text_targets
            assert 0 <= used - row.step * targets / 30 < 37
    assert {row.text_targets for row in rows} != {rows[0].text_targets}


def test_a_part_without_a_rate_does_not_move(tmp_path) -> None:
    before = Toy()
    _, after = learn(tmp_path)
    assert torch.equal(before.encoder.weight, after.encoder.weight)
    assert not torch.equal(before.adapter.weight, after.adapter.weight)


def test_each_part_learns_at_its_own_rate() -> None:
    model = Toy()
    optimiser = make_optimiser(model.parts(), RUN, torch.device("cpu"))
    assert [(group["name"], group["lr"]) for group in optimiser.param_groups] == [("adapter", 3e-2), ("lm", 1e-2)]
    assert not model.encoder.weight.requires_grad
    assert optimiser.defaults["betas"] == (0.9, 0.99) and optimiser.defaults["eps"] == 1e-6
    assert optimiser.defaults["weight_decay"] == 0.01


def test_gradients_of_several_batches_are_those_of_one(tmp_path) -> None:
    """A step over three batches is a step over their mean, by targets: shares, not counts of batches, weigh them."""
    stage = msgspec.structs.replace(STAGE, lr=Rates(encoder=1e-2), decay=0.0, eps=1e3, warmup=0, clip=1e9)
    run = StageRun("1", stage, 1, 90)  # batches of 30, 31 and 32 targets; a large eps makes Adam's step ∝ its gradient
    _, model = learn(tmp_path, run=run)
    fresh = Toy()
    batches = [batch for _, (_, batch) in zip(range(3), Numbers().batches(0), strict=False)]
    fresh.eval()
    for batch in batches:
        (fresh(batch).loss * batch.n_targets / 93).backward()
    moved = Toy().encoder.weight - model.encoder.weight
    expected = fresh.encoder.weight.grad
    assert torch.nn.functional.cosine_similarity(moved.flatten(), expected.flatten(), dim=0) > 0.97  # dropout differs


def test_a_loss_that_is_no_number_stops_the_run_with_advice(tmp_path) -> None:
    with pytest.raises(Diverged, match=r"step 4: .*not finite.*lower"):
        learn(tmp_path, Numbers(broken=10))


def test_a_gradient_that_is_no_number_is_no_finished_stage(tmp_path) -> None:
    model = Toy()
    model.lm.weight.register_hook(lambda slope: slope * float("nan"))
    with pytest.raises(Diverged, match=r"step 1: the gradient's norm is not finite.*lower"):
        train(model, model.parts(), Numbers(), StageRun("1", STAGE, 1, 30), tmp_path, ALONE)


def test_it_looks_now_and_then_with_dropout_off(tmp_path) -> None:
    seen: list[int] = []
    learn(tmp_path, look_every=12, look=seen.append)
    assert seen == [12, 24, 30]


def test_the_command_hands_on_what_was_given_and_no_more(tmp_path, monkeypatch) -> None:
    asked: list[object] = []
    for module in (run_stages, train_text):
        monkeypatch.setattr(module, "run", lambda settings, say: asked.append(settings) or True)
    common = ["--data", "a", "--out", "o"]
    assert main(["train", "echat", *common, "--ablate", ""]) == 0
    assert main(["train", "echat", *common, "--preset", "tiny", "--ablate", "think, understanding", "--scale", "0.5",
                 "--samples", "0", "--save-minutes", "0", "--seed", "7"]) == 0  # fmt: skip
    assert main(["train", "text", *common]) == 0
    assert main(["train", "text", *common, "--steps", "3", "--lr", "0.5", "--batch", "2", "--held-out", "h"]) == 0
    data, out = (Path("a"),), Path("o")
    assert asked == [
        run_stages.Settings("mini", data, out),
        run_stages.Settings("tiny", data, out, ablate=("think", "understanding"), scale=0.5, samples=0,
                            save_minutes=0.0, seed=7),
        train_text.Settings("smollm2", data, out),
        train_text.Settings("smollm2", data, out, steps=3, lr=0.5, batch=2, held_out=Path("h")),
    ]  # fmt: skip
