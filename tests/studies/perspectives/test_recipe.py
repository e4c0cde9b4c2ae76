"""The recipe gives the weights of the experiment's stacked training, resumes to the same weights, and runs in parts."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.perspectives import outcomes as stacked_outcomes
from experiments.perspectives.data import Data
from experiments.perspectives.model import Sizes, Stack
from experiments.perspectives.recipe import Ratings as StackedRatings
from experiments.perspectives.recipe import train_ratings
from overtone.cli import main
from overtone.echat.learn.distributed import World
from overtone.studies.perspectives import design
from overtone.studies.perspectives.design import Job, Study, labels
from overtone.studies.perspectives.inputs import Inputs, read_corpus, read_inputs
from overtone.studies.perspectives.language_model import open_model
from overtone.studies.perspectives.one_job import run_job, tuning_steps
from overtone.studies.perspectives.recipe import Clock, Ratings, fit, rating_steps
from overtone.studies.perspectives.stored_predictions import choose, perplexity, rate
from overtone.studies.perspectives.token_batches import Settings
from overtone.studies.perspectives.tokens import tokenise
from tests.studies.perspectives.toys import write_corpus, write_model

ALONE = World(0, 1, torch.device("cpu"))
SETTINGS = Settings(steps=4, rate=1e-2, rows=8, longest=200, replay=0.25)
REPLIES = [([5, 6, 7], [8, 9, 10, 11]), ([6, 6], [12, 13])]
ARMS = ("both", "merged", "reader", "writer", "matched", "pseudo", "shuffled", "permuted")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("lm"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def inputs(corpus: Path) -> Inputs:
    bank = read_corpus(corpus)
    asked = [
        {"dialogue": f"M: {word}", "question": "How?", "options": ["good", "bad", "so so"][: 3 - i % 2], "gold": i % 2,
         "about": {"cluster": f"c{i // 2}"}}
        for i, word in enumerate(bank.texts[:12])
    ]  # fmt: skip
    heard = [
        {**row, "words": f"hi {i}", "heard": "high", "cue": "male", "about": {"cluster": f"c{i // 2}", "level": 2}}
        for i, row in enumerate(asked)
    ]
    plain = ["some plain text " * 40]
    return Inputs(bank, ["hello", "who"], {"open": heard, "dream": asked, "dream-train": asked}, plain)


def as_stack(lm: torch.nn.Module, runs: int = 1) -> Stack:
    """Return the tiny model's weights in the experiment's layout."""
    sizes = Sizes(vocab=lm.config.vocab_size, hidden=24, ffn=32, layers=2, heads=3, kv_heads=1)
    return Stack(stacked_state(lm), runs, sizes, "cpu")


def stacked_state(lm: torch.nn.Module) -> dict[str, torch.Tensor]:
    found = {name: value.detach().clone() for name, value in lm.state_dict().items()}
    norms = [
        found[f"model.layers.{i}.{n}.weight"] for i in range(2) for n in ("input_layernorm", "post_attention_layernorm")
    ]
    state = {"embed": found["model.embed_tokens.weight"], "norms": torch.stack([*norms, found["model.norm.weight"]])}
    for i in range(2):
        at = f"model.layers.{i}"
        qkv = [found[f"{at}.self_attn.{n}_proj.weight"] for n in "qkv"]
        state |= {
            f"{i}.qkv": torch.cat(qkv).T, f"{i}.o": found[f"{at}.self_attn.o_proj.weight"].T,
            f"{i}.gate_up": torch.cat([found[f"{at}.mlp.{n}_proj.weight"] for n in ("gate", "up")]).T,
            f"{i}.down": found[f"{at}.mlp.down_proj.weight"].T,
        }  # fmt: skip
    return state


def as_data(inputs: Inputs, tokens: object) -> Data:
    from experiments.perspectives.data import Questions

    return Data(
        sha256="toy", bank=inputs.bank, heads={who: [] for who in tokens.prompts}, tails=tokens.prompts["merged"],
        digits=list(tokens.answer.digits[0]), space=tokens.answer.tokens[1], replies=REPLIES,
        questions={n: Questions(dict(q.prompts), q.options, q.gold, q.about) for n, q in tokens.questions.items()},
        windows=tokens.windows,
    )  # fmt: skip


def test_the_recipe_gives_the_weights_and_predictions_of_the_stacked_training(model, inputs, tmp_path) -> None:
    opened = open_model(str(model))
    tokens = tokenise(inputs, opened)
    data, rows = as_data(inputs, tokens), np.arange(40)
    stack = as_stack(opened.lm)
    train_ratings(stack, StackedRatings.of(data, rows, ["merged"], 3), SETTINGS, 3)
    ratings = Ratings.of(tokens, inputs.bank, "merged", rows, 3)
    # The stack has one prompt for both rows of an arm, which is so for `merged`.
    fit(opened.lm, rating_steps(ratings, REPLIES, SETTINGS, 3, ALONE), SETTINGS, tmp_path, ALONE, Clock())
    for name, value in stacked_state(opened.lm).items():
        assert torch.allclose(value, stack.weights[name][0], atol=3e-5), name
    held = np.arange(40, 60)
    assert np.allclose(
        rate(opened.lm, tokens, held, "merged", ALONE),
        stacked_outcomes.rate(stack, data, held, ["merged"])[0],
        atol=1e-3,
    )
    for condition in ("words", "none"):
        found = choose(opened.lm, tokens.questions["dream"], condition, ALONE)
        expected = stacked_outcomes.choose(stack, data.questions["dream"], condition)[0]
        assert np.allclose(found, expected, atol=1e-2)
    assert np.allclose(
        perplexity(opened.lm, tokens.windows, ALONE), stacked_outcomes.perplexity(stack, tokens.windows)[0], atol=1e-3
    )


def test_all_arms_have_as_many_tokens_and_the_same_sentences(model, inputs) -> None:
    tokens = tokenise(inputs, open_model(str(model)))
    seen = {}
    for arm in ARMS:
        ratings = Ratings.of(tokens, inputs.bank, arm, np.arange(60), 1)
        steps = list(islice(rating_steps(ratings, REPLIES, SETTINGS, 1, ALONE), 8))
        weight = [sum(w for part, _ in step.parts for e in part for t in e.targets for _, w in t) for step in steps]
        seen[arm] = [step.tokens for step in steps], np.round(weight, 6).tolist(), [step.total for step in steps]
    assert all(value == seen["both"] for value in seen.values())
    assert seen["both"][1] == seen["both"][2] == [24.0] * 8


def test_an_example_learns_the_arms_labels_as_soft_digits(model, inputs) -> None:
    tokens = tokenise(inputs, open_model(str(model)))
    for arm in ARMS:
        example = Ratings.of(tokens, inputs.bank, arm, np.arange(60), 1).example(7)
        expected = labels(inputs.bank, arm, np.arange(60), 1)[3, 1]
        value = {token: digit for digit, token in enumerate(tokens.answer.digits[0])}
        learnt = [(sum(value[t] * w for t, w in targets) + 1) / 2 for targets in example.targets]
        assert np.allclose(learnt, expected)
        following = [example.ids[at + 1] for at in example.at]
        assert following == [max(targets, key=lambda t: t[1])[0] for targets in example.targets]


def settings_of(corpus: Path, model: Path, out: Path, *more: str) -> list[str]:
    return [
        "train", "text", "--recipe", "perspectives", "--data", str(corpus), "--model", str(model), "--out", str(out),
        "--device", "cpu", "--batch", "8", "--lr", "0.01", *more,
    ]  # fmt: skip


def weights(out: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(out / "model" / "model.safetensors")


def test_the_command_lowers_the_loss_and_writes_a_model_that_transformers_reads(
    model, corpus, tmp_path, capsys
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "out"
    assert main(settings_of(corpus, model, out, "--steps", "30", "--arm", "both", "--stop-on-dev", "10")) == 0
    losses = [float(line) for line in (out / "training" / "log.jsonl").read_text().split()]
    assert len(losses) == 30 and np.mean(losses[-5:]) < 0.7 * losses[0]
    AutoModelForCausalLM.from_pretrained(out / "model")
    AutoTokenizer.from_pretrained(out / "model")
    manifest = json.loads((out / "model" / "manifest.json").read_text())
    assert manifest["arm"] == "both" and manifest["study"] == Study.read().sha256 and manifest["licence_of_labels"]
    assert manifest["data"] == read_inputs(corpus).sha256
    with np.load(out / "official.both.0.npz") as file:
        assert file["emobank"].shape == (10, 2, 3)
    capsys.readouterr()
    assert main(settings_of(corpus, model, out, "--steps", "30", "--arm", "both", "--stop-on-dev", "10")) == 2
    assert "--resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--arm", "neither"], "give one of"),
        (["--split", "genre/opera"], "genre/blog"),
        (["--target", "tokens"], "does not apply"),
        (["--batch", "500"], "too few"),
        (["--stop-on-dev", "5", "--split", "document/0"], "official"),
        (["--model", "no/such/folder"], "does not exist"),
    ],
)
def test_wrong_flags_are_refused_with_what_to_do(flags, message, model, corpus, tmp_path, capsys) -> None:
    assert main(settings_of(corpus, model, tmp_path / "out", "--steps", "2", *flags)) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out" / "model").exists()


@pytest.mark.full
def test_a_killed_run_resumes_to_the_same_weights(model, corpus, tmp_path, environment) -> None:
    more = ["--steps", "40", "--save-minutes", "0", "--log-every", "1"]
    assert main(settings_of(corpus, model, tmp_path / "whole", *more)) == 0
    command = [sys.executable, "-m", "overtone", *settings_of(corpus, model, tmp_path / "cut", *more)]
    source = str(Path(__file__).parents[3] / "src")
    path = os.pathsep.join((source, environment["PYTHONPATH"], os.environ.get("PYTHONPATH", "")))
    process = subprocess.Popen(command, env={**environment, "PYTHONPATH": path}, stdout=subprocess.DEVNULL)
    checkpoints = tmp_path / "cut" / "training"
    deadline = time.monotonic() + 60
    while not list(checkpoints.glob("step-*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(checkpoints.glob("step-*")) and not (tmp_path / "cut" / "model").exists()
    assert main(settings_of(corpus, model, tmp_path / "cut", *more, "--resume")) == 0
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert whole.keys() == cut.keys() and all(torch.equal(whole[name], cut[name]) for name in whole)


@pytest.mark.full
def test_two_processes_train_what_one_does(model, corpus, tmp_path, environment) -> None:
    more = ["--steps", "6", "--split", "document/1"]
    assert main(settings_of(corpus, model, tmp_path / "one", *more)) == 0
    source = str(Path(__file__).parents[3] / "src")
    path = os.pathsep.join((source, environment["PYTHONPATH"], os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
               "-m", "overtone", *settings_of(corpus, model, tmp_path / "two", *more)]  # fmt: skip
    done = subprocess.run(command, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert one.keys() == two.keys()
    assert all(torch.allclose(one[name], two[name], atol=1e-4) for name in one)
    with (
        np.load(tmp_path / "one" / "document-1.both.0.npz") as a,
        np.load(tmp_path / "two" / "document-1.both.0.npz") as b,
    ):
        assert np.allclose(a["emobank"], b["emobank"], atol=1e-3)


def test_lora_trains_few_weights_and_is_merged_into_the_saved_model(model, corpus, tmp_path) -> None:
    pytest.importorskip("peft", reason="peft is not installed; run 'make .venv-worker/.ready'")
    assert main(settings_of(corpus, model, tmp_path / "out", "--steps", "4", "--lora")) == 0
    before, after = open_model(str(model)).lm.state_dict(), weights(tmp_path / "out")
    assert torch.equal(before["model.embed_tokens.weight"], after["model.embed_tokens.weight"])
    name = "model.layers.0.self_attn.q_proj.weight"
    assert after.keys() <= before.keys() and not torch.equal(before[name], after[name])


def small_study() -> Study:
    study = Study.read()
    fast = {name: study.settings[name] | {"steps": 2, "rows": 4} for name in ("training", "dream_tuning")}
    return dataclasses.replace(study, settings=study.settings | fast)


def test_a_job_writes_its_outcomes_per_item_and_is_not_run_again(model, inputs, tmp_path) -> None:
    path = run_job(Job("document", "0", "both", 0), small_study(), inputs, str(model), tmp_path, device="cpu")
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
        names = set(file.files)
        assert file["open/told"].shape == (12, 3) and np.isneginf(file["dream/words"][1, 2])
        assert np.isfinite(file["perplexity"]).all()
    conditions = {f"open/{c}" for c in ("words", "heard", "told", "none")} | {"dream/words", "dream/none"}
    assert names == {"about", "emobank", "perplexity"} | conditions
    assert about["study"] == small_study().sha256 and about["data"] == inputs.sha256 and len(about["losses"]) == 2
    written = path.stat().st_mtime_ns
    run_job(Job("document", "0", "both", 0), small_study(), inputs, str(model), tmp_path, device="cpu")
    assert path.stat().st_mtime_ns == written


def test_the_control_is_tuned_on_one_half_of_overtone_open_and_answers_all_questions(model, inputs, tmp_path) -> None:
    study = small_study()
    halves = [group[0] for group in study.control_jobs(1)]
    assert [job.key for job in halves] == ["open-control-0.base.0.tuned", "open-control-1.base.0.tuned"]
    found = []
    for job in halves:
        with np.load(run_job(job, study, inputs, str(model), tmp_path, device="cpu")) as file:
            assert set(file.files) == {"about", "open/words", "open/told", "open/none"}
            found.append(file["open/told"])
    assert found[0].shape == (12, 3) and not np.array_equal(*found)


def test_the_control_never_learns_a_question_that_it_is_tested_on(model, inputs) -> None:
    tokens = tokenise(inputs, open_model(str(model)))
    settings = dataclasses.replace(SETTINGS, rows=2)
    clusters = [about["cluster"] for about in tokens.questions["open"].about]
    for job in (group[0] for group in small_study().control_jobs(2)):
        tested = design.tested_questions(clusters, job.seed, int(job.part))
        learnt = {row for step in islice(tuning_steps(job, tokens, settings, ALONE), 12) for row in step.rows}
        assert learnt == set(np.flatnonzero(~tested).tolist())


def test_a_tuned_job_continues_from_the_weights_of_its_arm(model, inputs, tmp_path) -> None:
    job = Job("document", "0", "both", 0)
    run_job(job, small_study(), inputs, str(model), tmp_path, device="cpu")
    path = run_job(dataclasses.replace(job, tuned=True), small_study(), inputs, str(model), tmp_path, device="cpu")
    with np.load(path) as file:
        assert set(file.files) == {"about", "tuned/words"}
        kept = file["tuned/words"]
    again = run_job(
        dataclasses.replace(job, tuned=True), small_study(), inputs, str(model), tmp_path / "new", device="cpu"
    )
    with np.load(again) as file:
        assert np.allclose(file["tuned/words"], kept, atol=1e-4)
