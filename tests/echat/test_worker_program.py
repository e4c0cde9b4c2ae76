"""`echat:CHECKPOINT` is a model like any other: it runs in a process with torch and answers a benchmark's items."""

from __future__ import annotations

import asyncio
import importlib
import io
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from bench.data import make
from overtone import open_run
from overtone.audio import encode_wav, load_sound
from overtone.echat.net import checkpoint, config
from overtone.echat.talk.answer import Answer
from overtone.errors import DataError, MissingExtra, ModelFailure, UsageError
from overtone.models import echat
from overtone.schema import Key, Message, Request
from overtone.spec import parse_spec
from overtone.workers import protocol

pytestmark = pytest.mark.local


def noise(seconds: float) -> Any:
    rng = np.random.default_rng(0)
    return load_sound(encode_wav((0.1 * rng.standard_normal(round(16_000 * seconds))).astype(np.float32), 16_000))


def request(*parts: Any, speech: bool = False, task: str = "converse", seed: int | None = None) -> Request:
    return Request(Key("i", "c"), (Message("user", parts),), speech, task, seed=seed)


@pytest.mark.timeout(180)
async def test_requests_are_answered_together_and_a_bad_one_fails_alone(tiny: Path) -> None:
    spec = f"echat:{tiny.parent.parent}?max_tokens=40&max_speech=1&threads=1&device=cpu"
    model = echat.load(parse_spec(spec))
    assert model.slots == 8
    try:
        await model.open()
        assert model.describe()["facts"]["think"] == "label"
        asked = [
            request(noise(0.5), speech=True, seed=7),
            request("Which? A. sad B. happy", noise(0.5), task="choose"),
            request("Write it down.", noise(0.5), task="transcribe"),
            request(noise(0.01)),
            request(noise(0.5), speech=True, seed=7),
        ]
        first, chosen, words, bad, again = await asyncio.gather(
            *(model.ask(one) for one in asked), return_exceptions=True
        )
    finally:
        await model.close()
    assert isinstance(bad, ModelFailure) and bad.reason == "bad_clip" and "too short" in bad.detail
    assert not isinstance(first, BaseException) and not isinstance(again, BaseException)
    assert not isinstance(chosen, BaseException) and not isinstance(words, BaseException)
    assert first == again and first.audio
    with wave.open(io.BytesIO(first.audio)) as sound:
        assert sound.getframerate() == 24_000
        assert 0.02 < sound.getnframes() / 24_000 / first.usage.output_audio_tokens < 1  # seconds per unit
    assert any(note.startswith("thought: <think>User's words:") for note in first.notes)
    assert chosen.audio is None and words.audio is None
    assert first.usage.input_audio_tokens == config.positions(config.read("tiny").model, 8_000)


@pytest.mark.timeout(240)
def test_a_run_asks_a_checkpoint(tiny: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    data = make(tmp_path / "data", scripts=1, questions=2, seconds=0.2)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "overtone", "run", "echomind", "--data", str(data), "--out", str(out), "-q"]
    command += ["--model", f"echat:{tiny}?think=none&max_tokens=12&max_speech=0.5&threads=1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with open_run(out) as run:
        replies = list(run.replies())
        tasks = {item.id: item.task for item in run.items()}
    assert {tasks[reply.key.item] for reply in replies} == {"transcribe", "choose", "converse"}
    assert all(bool(reply.audio) == (tasks[reply.key.item] == "converse") for reply in replies)


def test_a_checkpoint_is_known_by_its_weights(tiny: Path) -> None:
    described = echat.load(parse_spec(f"echat:{tiny}")).describe()
    assert described["weights"]["lm"] == checkpoint.index(tiny).parts["lm"].sha256
    assert described["trained"] == {"stage": "3"}
    assert (echat.INDEX, echat.FORMAT) == (checkpoint.INDEX, checkpoint.FORMAT)


def test_a_folder_that_is_no_checkpoint_is_told_before_anything_starts(tiny: Path, tmp_path: Path) -> None:
    def load(path: Path | str, more: str = "") -> None:
        echat.load(parse_spec(f"echat:{path}{more}"))

    with pytest.raises(DataError, match="no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(DataError, match="neither a checkpoint"):
        load(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="a file"):
        load(tmp_path / "file")
    other = tmp_path / "other"
    other.mkdir()
    (other / echat.INDEX).write_text('{"model": "some other thing"}')
    with pytest.raises(DataError, match="not a checkpoint's index"):
        load(other)
    found = msgspec.json.decode((tiny / echat.INDEX).read_bytes())
    (other / echat.INDEX).write_bytes(msgspec.json.encode({**found, "format": 9}))
    with pytest.raises(DataError, match="format 9, but this version of Overtone reads 1"):
        load(other)
    for more, wrong in (
        ("?think=lable", "did you mean 'label'"),
        ("?system=mine", "own or given"),
        ("?temprature=1", "did you mean 'temperature'"),
        ("?max_tokens=0", "max_tokens must be between 1 and"),
        ("?temperature=-1", "between 0 and 2, not -1"),
        ("?temperature=warm", "must be a number"),
        ("?top_p=nan", "between 0.001 and 1, not nan"),
        ("?top_p=0", "between 0.001 and 1"),
        ("?speech_temperature=inf", "between 0 and 2, not inf"),
        ("?max_speech=inf", "between 0.04 and 600"),
        ("?max_tokens=" + 400 * "9", "max_tokens must be between"),
        ("?max_tokens=1.5", "must be a whole number"),
        ("?seed=" + 30 * "9", "seed must be between"),
        ("?threads=0", "threads must be between"),
        ("?batch=-1", "batch must be between"),
        ("?timeout=nan", "timeout must be between"),
        ("?restarts=-1", "restarts must be between"),
    ):
        with pytest.raises(UsageError, match=wrong):
            load(tiny, more)
    with pytest.raises(UsageError, match="folder is missing"):
        echat.load(parse_spec("echat"))


async def test_a_python_that_is_not_there_or_has_no_torch_is_told(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Python at"):
        await echat.load(parse_spec(f"echat:{tiny}?python={tmp_path}/python")).open()
    lone = tmp_path / "lone"  # an interpreter without packages
    lone.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    lone.chmod(0o755)
    model = echat.load(parse_spec(f"echat:{tiny}?python={lone}"))
    try:
        with pytest.raises(MissingExtra, match=r"no package '\w+'.*pip install .*\[train\]'"):
            await model.open()
    finally:
        await model.close()


def test_what_a_reply_was_said_with_is_noted(monkeypatch) -> None:
    monkeypatch.syspath_prepend(Path(protocol.__file__).parent)  # as it is run
    engine = importlib.import_module("overtone.echat.talk.worker_program").Engine()
    engine.tells = False
    told = engine._notes(Answer("Oh no.", "<think>sad<think end>", "caring", codes=(3, 1)))
    assert list(told) == ["thought: <think>sad<think end>", "reply emotion: caring"]
    assert not list(engine._notes(Answer("Oh no.")))
