"""openPangu without its remote code: a tiny checkpoint in the published layout, against the published equations."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.models.cascade import load
from overtone.schema import THOUGHT, Key, Message, Reply, Request
from overtone.spec import parse_spec
from overtone.workers import model_source
from overtone.workers.host import WORKERS, worker_environment
from tests.models.test_worker_models import HERE, PYTHON, in_worker_environment

pytestmark = [pytest.mark.worker, pytest.mark.local]


@pytest.fixture(autouse=True)
def accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("OVERTONE_WORKER_PYTHON", str(PYTHON))
    monkeypatch.setenv(model_source.ACCEPTED, "openpangu")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("pangu") / "tiny"
    done = in_worker_environment(HERE / "make_tiny_pangu.py", folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


def probe(asked: dict[str, Any], *folders: Path) -> list[dict[str, Any]]:
    environment = worker_environment(os.environ, hub=False, gpu=None)
    given = json.dumps({"ids": asked["ids"], "texts": list(asked["texts"])})
    done = subprocess.run(
        [PYTHON, HERE / "probe_pangu.py", *folders], env=environment, input=given, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


def test_logits_tokens_and_chat_are_those_of_the_publication(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, expected = made
    first, again = probe(expected, folder, tmp_path / "again")
    assert first["class"] == "LlamaForCausalLM"
    assert np.abs(np.array(first["logits"]) - expected["logits"]).max() < 1e-4 < np.abs(expected["logits"]).max()
    assert first["texts"] == expected["texts"]
    assert first["decoded"] == list(expected["texts"])
    assert first["chat"] == "<s>[unused9]系统：[unused10][unused9]用户：I am fine.[unused10][unused9]助手："
    marks = expected["marks"]
    assert first["ids"][:2] == [1, marks["[unused9]"]] and first["ids"].count(1) == 1
    assert first["eos"] == first["ends"] == marks["[unused10]"] and first["pad"] == 0 and first["greedy"]
    assert again == first  # what training saves opens the same way, with one begin token


def test_a_template_that_writes_the_begin_token_gets_no_second_one(
    made: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, expected = made
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    path = other / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings["chat_template"] = settings["chat_template"].replace("'[unused9]系统：", "'<s>[unused9]系统：")
    path.write_text(json.dumps(settings))
    (seen,) = probe(expected, other)
    assert seen["ids"].count(1) == 1 and seen["chat"].startswith("<s>[unused9]")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / "model-00002-of-00002.safetensors").unlink(), "is missing; copy all shards"),
        pytest.param(
            lambda f: (f / "model-00001-of-00002.safetensors").write_bytes(b"no"),
            "cannot be read",
            marks=pytest.mark.full,
        ),
        pytest.param(
            lambda f: (f / "tokenizer.model").write_bytes(b"no"),
            "tokenizer.model cannot be read",
            marks=pytest.mark.full,
        ),
        pytest.param(lambda f: _edit(f, hidden_size=64), "config.json asks for", marks=pytest.mark.full),
        pytest.param(
            lambda f: _edit(f, bias=False), "a weight that this network does not have", marks=pytest.mark.full
        ),
        (lambda f: _edit(f, num_hidden_layers=4), "lacks the weight model.layers.3"),
        pytest.param(lambda f: _edit(f, model_type="qwen3"), "give it without 'openpangu:'", marks=pytest.mark.full),
        pytest.param(lambda f: _edit(f, rope_theta=None), "has no rope_theta", marks=pytest.mark.full),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_the_reason(
    made: tuple[Path, dict[str, Any]], tmp_path: Path, damage: Any, says: str
) -> None:
    folder, expected = made
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    damage(other)
    (seen,) = probe(expected, other)
    assert says in seen["error"]


def _edit(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


def test_the_licence_is_shown_until_it_is_accepted(
    made: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(model_source.ACCEPTED)
    with pytest.raises(UsageError, match=r"European Union.*OVERTONE_ACCEPTED_LICENCES=openpangu"):
        load(parse_spec(f"cascade?lm=openpangu:{made[0]}"))


def ask(spec: str, request: Request) -> tuple[Reply, dict[str, Any]]:
    async def run() -> tuple[Reply, dict[str, Any]]:
        model = load(parse_spec(spec))
        await model.open()
        try:
            return await model.ask(request), model.describe()
        finally:
            await model.close()

    return asyncio.run(run())


def test_it_answers_as_the_language_model_of_a_cascade(made: tuple[Path, dict[str, Any]]) -> None:
    asked = Request(Key("item", "task/transcript"), (Message("user", ("Where?",)),), task="converse")
    quick, about = ask(f"cascade?lm=openpangu:{made[0]}&max_tokens=8&speech=no", asked)
    slow, _ = ask(f"cascade?lm=openpangu:{made[0]}&max_tokens=8&speech=no&think=slow", asked)
    assert quick.usage.input_tokens > slow.usage.input_tokens  # " /no_think" was added
    assert '"think": "off"' in json.dumps(about)
    weighed, _ = ask(
        f"cascade?lm=openpangu:{made[0]}&speech=no",
        Request(asked.key, asked.messages, task="choose", continuations=(("today", "fine"),)),
    )
    assert len(weighed.likelihoods[0]) == 2 and weighed.text in ("today", "fine")


def test_a_thought_is_a_note_and_not_part_of_the_reply(made: tuple[Path, dict[str, Any]]) -> None:
    program = (
        "import sys, json, torch, causal_text\n"
        "engine = causal_text.CausalText()\n"
        "engine.load({'model': sys.argv[1], 'hub': False, 'trust_remote_code': False})\n"
        "ids = engine.encode('[unused16]I am[unused17]fine.[unused10]')\n"
        "cut = engine.encode('[unused16]I am')\n"
        "ends = {engine.tokenizer.eos_token_id}\n"
        "answers = [engine.finish(torch.tensor(row), ends, {}) for row in (ids, cut)]\n"
        "print(json.dumps([[a.text, a.notes, a.finish, a.usage['output_tokens'] + 0] for a in answers]))\n"
        "print(causal_text.THOUGHT)\n"
    )
    environment = worker_environment(os.environ, hub=False, gpu=None)
    done = subprocess.run(
        [PYTHON, "-c", program, f"openpangu:{made[0]}"], env=environment, capture_output=True, text=True, check=False,
        cwd=WORKERS, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers, prefix = done.stdout.splitlines()[-2:]
    assert prefix.strip() == THOUGHT.strip()
    whole, cut = json.loads(answers)
    assert whole[:3] == ["fine.", [f"{THOUGHT}I am"], "stop"]
    assert cut[:3] == ["", [f"{THOUGHT}I am"], "length"]
