"""Runs in lockstep are the same as runs alone, all arms see the same tokens, and outcomes are what they say."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch

from experiments.perspectives import outcomes
from experiments.perspectives.data import Data
from experiments.perspectives.model import Block, Optimizer, Sizes, Stack, random_state
from experiments.perspectives.recipe import Ratings, Settings, rating_losses, rating_steps, train_ratings
from overtone.studies.perspectives.design import PROMPTS

SIZES = Sizes(vocab=64, hidden=24, ffn=32, layers=2, heads=3, kv_heads=1)
SETTINGS = Settings(steps=4, rate=1e-2, rows=8, longest=64, replay=0.25)
ARMS = [arm for arm in PROMPTS if arm != "base"]


def stack(runs: int) -> Stack:
    return Stack(random_state(SIZES), runs, SIZES, "cpu")


def test_all_arms_have_the_same_tokens_but_for_tag_and_digits(data: Data) -> None:
    ratings = Ratings.of(data, np.arange(60), ARMS, seed=3)
    tags = {head[0] for head in data.heads.values()}
    for step in islice(rating_steps(ratings, SETTINGS, 3), 10):
        ids = step.blocks[0].ids
        for arm in range(1, len(ARMS)):
            differ = ids[0] != ids[arm]
            assert all(int(t) in tags | set(data.digits) for t in ids[arm][differ])
        assert step.blocks[1].ids.shape[:2] == (1, 2)  # a quarter of eight are replies, the same for all
        assert torch.allclose(step.weight.sum((1, 2)), step.weight.sum((1, 2))[0])


def test_the_order_of_an_arm_does_not_depend_on_the_arms_beside_it(data: Data) -> None:
    rows = np.arange(60)
    alone = islice(rating_steps(Ratings.of(data, rows, ["pseudo"], 1), SETTINGS, 1), 12)
    beside = islice(rating_steps(Ratings.of(data, rows, ARMS, 1), SETTINGS, 1), 12)
    at = ARMS.index("pseudo")
    for one, many in zip(alone, beside, strict=True):
        assert torch.equal(one.blocks[0].ids[0], many.blocks[0].ids[at])
        assert torch.equal(one.token[0], many.token[at]) and torch.equal(one.weight[0], many.weight[at])


def test_each_place_predicts_the_digit_after_it(data: Data) -> None:
    ratings = Ratings.of(data, np.arange(60), ["both"], 0)
    step = next(rating_steps(ratings, SETTINGS, 0))
    ids = step.blocks[0].ids[0].flatten()
    following = ids[step.at[:18] + 1]  # six ratings of three digits
    likeliest = step.token[0, :18].gather(1, step.weight[0, :18].argmax(1, keepdim=True))[:, 0]
    assert torch.equal(following, likeliest)


def test_training_in_lockstep_gives_the_weights_of_training_alone(data: Data) -> None:
    rows = np.arange(60)
    beside = stack(3)
    train_ratings(beside, Ratings.of(data, rows, ["both", "merged", "permuted"], 0), SETTINGS, 0)
    for i, arm in enumerate(("both", "merged", "permuted")):
        alone = stack(1)
        train_ratings(alone, Ratings.of(data, rows, [arm], 0), SETTINGS, 0)
        for name, weight in alone.weights.items():
            assert torch.allclose(weight[0], beside.weights[name][i], atol=2e-5), name


def test_training_lowers_the_loss(data: Data) -> None:
    one = stack(1)
    ratings = Ratings.of(data, np.arange(60), ["both"], 0)
    steps = list(islice(rating_steps(ratings, SETTINGS, 0), 1))
    optimizer = Optimizer(one, 1e-2, 40)
    first = float(rating_losses(one, steps[0]).detach())
    for _ in range(30):
        optimizer.step(rating_losses(one, steps[0]))
    assert float(rating_losses(one, steps[0]).detach()) < first - 0.5


def test_options_packed_behind_one_prompt_score_as_each_alone(data: Data) -> None:
    questions = data.questions["dream"]
    model = stack(2)
    with torch.no_grad():
        found = outcomes.choose(model, questions, "words")
        for q, (prompt, options) in enumerate(zip(questions.prompts["words"], questions.options, strict=True)):
            for o, option in enumerate(options):
                ids = torch.tensor([[prompt + option]])
                logp = model.logits(model.hidden([Block(ids)])).log_softmax(-1)[0]
                alone = sum(float(logp[len(prompt) - 1 + i, token]) for i, token in enumerate(option))
                assert found[1, q, o] == pytest.approx(alone, abs=1e-4)
    assert np.isneginf(found[0, 1, 3])  # a question with three options has no fourth


def test_choices_can_be_learnt(data: Data) -> None:
    questions = data.questions["dream-train"]
    model = stack(1)
    settings = Settings(steps=60, rate=1e-2, rows=4, longest=64)
    outcomes.tune_choices(model, questions, settings, 0)
    found = outcomes.choose(model, questions, "words")[0].argmax(1)
    assert (found == np.array(questions.gold)).mean() > 0.9


def test_ratings_of_a_row_do_not_depend_on_the_rows_beside_it(data: Data) -> None:
    model, arms = stack(2), ["both", "merged"]
    many = outcomes.rate(model, data, np.arange(20), arms)
    for i in (0, 7, 19):
        assert np.allclose(outcomes.rate(model, data, np.array([i]), arms)[:, 0], many[:, i], atol=1e-5)
    assert (many >= 1).all() and (many <= 5).all()
    assert np.array_equal(many[1, :, 0], many[1, :, 1])  # one prompt, the same values twice


def test_perplexity_is_the_mean_surprise_of_a_window(data: Data) -> None:
    model = stack(1)
    found = outcomes.perplexity(model, data.windows)
    ids = torch.tensor(data.windows[2])
    with torch.no_grad():
        logp = model.logits(model.hidden([Block(ids[None, None])])).log_softmax(-1)[0]
    assert found[0, 2] == pytest.approx(-float(logp[range(11), ids[1:]].mean()), abs=1e-5)
