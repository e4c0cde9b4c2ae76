"""`cascade?lm=DIR`: a tiny Llama of transformers in its worker, against a forward pass written for the test."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from overtone.errors import MissingExtra, ModelFailure, UsageError
from overtone.models import _causal
from overtone.models.cascade import Cascade, load
from overtone.schema import Key, Message, Reply, Request
from overtone.spec import parse_spec
from overtone.workers import model_source
from tests.models.test_worker_models import HERE, PYTHON, in_worker_environment

pytestmark = [pytest.mark.worker, pytest.mark.local]
OPTIONS = ("At home.", "In the office, I think.", "Abroad.")
ASKED, ALONE = "M: Hi.\n\nQuestion: Where?", "Question: Where?"


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("OVERTONE_WORKER_PYTHON", str(PYTHON))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("causal") / "tiny", "template")


def make(folder: Path, kind: str) -> Path:
    made = in_worker_environment(HERE / "make_tiny_causal.py", folder, kind)
    assert made.returncode == 0, made.stderr
    return folder


def reference(folder: Path, prompt: str, options: tuple[str, ...]) -> list[float]:
    made = in_worker_environment(HERE / "make_tiny_causal.py", folder, prompt, *options)
    assert made.returncode == 0, made.stderr
    return list(json.loads(made.stdout.splitlines()[-1]))


def request(task: str = "choose", **more: Any) -> Request:
    return Request(Key("item", "task/transcript"), (Message("user", (ASKED,)),), task=task, **more)


def weighed(steps: tuple[tuple[str, ...], ...] = (OPTIONS,)) -> Request:
    return request(continuations=steps, without=(Message("user", (ALONE,)),))


def with_model(spec: str, use: Callable[[Cascade], Awaitable[Any]]) -> Any:
    model = load(parse_spec(spec))

    async def once() -> Any:
        try:
            await model.open()
            return await use(model)
        finally:
            await model.close()

    return asyncio.run(once())


def ask(spec: str, *requests: Request) -> list[Reply]:
    async def all_of_them(model: Cascade) -> list[Reply]:
        return list(await asyncio.gather(*map(model.ask, requests)))

    return list(with_model(spec, all_of_them))


def test_likelihoods_equal_those_of_a_forward_pass_over_each_option(tiny: Path) -> None:
    (reply,) = ask(f"cascade?lm={tiny}&speech=no", weighed())
    totals = reference(tiny, f"user: {ASKED}<|im_end|>\nassistant: ", OPTIONS)
    priors = reference(tiny, f"user: {ALONE}<|im_end|>\nassistant: ", OPTIONS)
    (step,) = reply.likelihoods
    assert [one.total for one in step] == pytest.approx(totals, abs=1e-3)
    assert [one.prior for one in step] == pytest.approx(priors, abs=1e-3)
    means = [one.mean for one in step]
    assert reply.text == OPTIONS[means.index(max(means))]


def test_each_step_follows_the_likeliest_alternative_and_a_space(tiny: Path) -> None:
    (reply,) = ask(f"cascade?lm={tiny}&speech=no", weighed((("1", "2", "3"), ("4", "5"))))
    first = reply.text[0]
    totals = reference(tiny, f"user: {ASKED}<|im_end|>\nassistant: {first} ", ("4", "5"))
    priors = reference(tiny, f"user: {ALONE}<|im_end|>\nassistant: {first} ", ("4", "5"))
    assert [one.total for one in reply.likelihoods[1]] == pytest.approx(totals, abs=1e-3)
    assert [one.prior for one in reply.likelihoods[1]] == pytest.approx(priors, abs=1e-3)
    assert len(reply.text) == 3 and reply.text[1] == " "


def test_greedy_texts_are_the_same_alone_and_in_a_batch(tiny: Path) -> None:
    spec = f"cascade?lm={tiny}&speech=no&max_tokens=8"
    longer = Request(Key("b", "task/transcript"), (Message("user", ("Something longer. " * 5,)),), task="converse")
    alone = ask(spec, request("converse"))
    together = ask(f"{spec}&batch=4", longer, request("converse"), weighed())
    assert together[1].text == alone[0].text
    assert alone[0].usage.output_tokens == 8 and alone[0].finish == "length"
    assert together[2].likelihoods


def test_its_identity_is_its_description_and_the_hash_of_weights_and_tokenizer(tiny: Path, tmp_path: Path) -> None:
    async def describe(model: Cascade) -> Any:
        return model.describe()

    first = with_model(f"cascade?lm={tiny}&speech=no", describe)
    assert first["language"]["model_type"] == "llama" and first["language"]["chat"] == "its own template"
    assert first["language"]["sha256"] == model_source.fingerprint(tiny)
    assert first["facts"]["class"] == "LlamaForCausalLM"
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        other = tmp_path / name
        shutil.copytree(tiny, other)
        with (other / name).open("ab") as file:
            file.write(b" ")
        assert model_source.fingerprint(other) != model_source.fingerprint(tiny)


def test_a_tokenizer_without_a_template_gets_chatml_and_says_so(tmp_path: Path) -> None:
    plain = make(tmp_path / "plain", "plain")

    async def use(model: Cascade) -> tuple[Any, Reply, Reply]:
        return model.describe(), await model.ask(weighed()), await model.ask(request("converse"))

    described, likely, written = with_model(f"cascade?lm={plain}&speech=no&max_tokens=4", use)
    assert described["language"]["chat"] == "ChatML, because the tokenizer has no template"
    totals = reference(plain, f"<|im_start|>user\n{ASKED}<|im_end|>\n<|im_start|>assistant\n", OPTIONS)
    assert [one.total for one in likely.likelihoods[0]] == pytest.approx(totals, abs=1e-3)
    assert written.usage.output_tokens <= 4


def test_the_limits_of_answers_are_those_of_the_worker() -> None:
    text = (Path(model_source.__file__).with_name("causal_text.py")).read_text()
    assert f'LONGEST = {{"choose": {_causal.LONGEST["choose"]}}}' in text
    assert f"OTHER_TASKS = {_causal.LONGEST['converse']}" in text


def test_a_worker_that_is_killed_is_started_again(tiny: Path) -> None:
    async def use(model: Cascade) -> tuple[Reply, str, Reply]:
        first = await model.ask(weighed())
        assert model._lm is not None
        process = model._lm._seats[0].process
        assert process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        failure = ""
        try:
            return first, "", await model.ask(weighed())
        except ModelFailure as error:
            failure = str(error)
            assert error.retry
        return first, failure, await model.ask(weighed())

    first, failure, again = with_model(f"cascade?lm={tiny}&speech=no", use)
    assert again.likelihoods == first.likelihoods and ("worker" in failure or not failure)


def test_a_chat_that_does_not_fit_is_refused_alone(tiny: Path) -> None:
    long = Request(Key("b", "task/transcript"), (Message("user", ("word " * 300,)),), task="choose")

    async def use(model: Cascade) -> Reply:
        with pytest.raises(ModelFailure, match=r"too_large.* it holds 512"):
            await model.ask(long)
        return await model.ask(weighed())

    assert with_model(f"cascade?lm={tiny}&speech=no", use).likelihoods


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: shutil.rmtree(f), "does not exist"),
        (lambda f: (f / "config.json").unlink(), r"has no config\.json"),
        (lambda f: (f / "config.json").write_text("{"), r"config\.json cannot be read"),
        (lambda f: (f / "config.json").write_text("[]"), "has no model_type"),
        (lambda f: (f / "model.safetensors").rename(f / "model.bin"), r"no weights in safetensors \(only model\.bin"),
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer"),
    ],
)
def test_a_folder_that_is_not_a_checkpoint_is_refused_at_once(
    tiny: Path, tmp_path: Path, change: Callable[[Path], Any], message: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny, broken)
    for name in ("vocab.json", "merges.txt"):
        (broken / name).unlink(missing_ok=True)
    change(broken)
    with pytest.raises(UsageError, match=message):
        load(parse_spec(f"cascade?lm={broken}"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: _edit(f, model_type="nonsense"), "cannot be loaded as a causal language model"),
        (lambda f: _edit(f, num_hidden_layers=3), "lacks 9 weights"),
        (lambda f: _edit(f, vocab_size=9), "cannot be loaded|the tokenizer has"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 99), "cannot be loaded"),
        (
            lambda f: _edit(f, model_type="own", auto_map={"AutoConfig": "a.B", "AutoModelForCausalLM": "a.B"}),
            "needs Python code of its own",
        ),
    ],
)
def test_a_broken_checkpoint_is_refused_when_it_is_loaded(
    tiny: Path, tmp_path: Path, change: Callable[[Path], Any], message: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny, broken)
    change(broken)
    with pytest.raises(UsageError, match=message):
        ask(f"cascade?lm={broken}&speech=no", weighed())


def _edit(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | values))


def test_a_missing_environment_is_named_with_the_way_to_install_it(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_WORKER_PYTHON", str(tmp_path / "none"))
    with pytest.raises(UsageError, match=r"no Python for the worker .*requirements\.txt"):
        ask(f"cascade?lm={tiny}&speech=no", weighed())
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {PYTHON} -S "$@"\n')  # without its packages
    bare.chmod(0o755)
    with pytest.raises(MissingExtra, match=r"no package '(numpy|torch)'; install it there: .* pip install -r"):
        ask(f"cascade?lm={tiny}&speech=no&python={bare}", weighed())


def test_a_key_of_the_worker_without_a_folder_is_refused() -> None:
    with pytest.raises(UsageError, match="dtype is for a worker; give the folder of its language model as lm=DIR"):
        load(parse_spec("cascade?dtype=bfloat16"))
