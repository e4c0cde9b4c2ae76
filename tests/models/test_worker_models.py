"""The built-in workers with tiny checkpoints of the real classes: real loading and generation, in their processes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overtone.audio import decode, encode_wav
from overtone.errors import ModelFailure, UsageError
from overtone.models.worker import WorkerModel, load
from overtone.schema import Key, Message, Reply, Request, Sound
from overtone.spec import parse_spec
from overtone.workers.host import WORKERS

HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("OVERTONE_WORKER_PYTHON") or HERE.parents[1] / ".venv-worker/bin/python")
KINDS = ("qwen2_audio", "audio_flamingo", "qwen2_5_omni", "qwen3_omni")

pytestmark = pytest.mark.worker


def in_worker_environment(*command: str | Path) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(WORKERS),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "HOME": os.environ.get("HOME", "/"),
    }
    return subprocess.run([PYTHON, *command], env=env, capture_output=True, text=True, timeout=240)


@pytest.fixture(autouse=True)
def one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny matrices gain nothing from threads, which others need more. Logs that are kept stay with the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("tiny")
    folders = {kind: root / kind for kind in KINDS}
    made = in_worker_environment(HERE / "make_tiny.py", *(str(x) for pair in folders.items() for x in pair))
    assert made.returncode == 0, made.stderr
    return folders


def sound(seconds: float, seed: int) -> Sound:
    noise = np.random.default_rng(seed).normal(0, 0.1, round(seconds * 16000)).astype(np.float32)
    wav = encode_wav(noise, 16000)
    return Sound(wav, hashlib.sha256(wav).hexdigest(), seconds)


def asked(number: int, *, speech: bool = False) -> Request:
    clip = sound((1.1, 2.9, 0.4)[number], number)
    messages = (Message("system", ("Be kind.",)), Message("user", (clip, "What", "is it? " * (number + 1))))
    return Request(Key(f"item{number}", "task/audio"), messages, speech)


def model_of(worker: str, folder: Path, **keys: Any) -> WorkerModel:
    query = "&".join(f"{k}={v}" for k, v in {"model": folder, "python": PYTHON, "max_tokens": 6, **keys}.items())
    return load(parse_spec(f"worker:{worker}?{query}"))


@pytest.mark.parametrize(
    ("worker", "kind", "family"),
    [
        ("qwen2_audio", "qwen2_audio", "Qwen2AudioForConditionalGeneration"),
        ("hf_audio_text", "audio_flamingo", "AudioFlamingo3ForConditionalGeneration"),
        ("qwen2_5_omni", "qwen2_5_omni", "Qwen2_5OmniForConditionalGeneration"),
        ("qwen3_omni", "qwen3_omni", "Qwen3OmniMoeForConditionalGeneration"),
    ],
)
async def test_a_batch_of_clips_of_different_lengths_is_answered_as_each_alone(
    tiny: dict[str, Path], worker: str, kind: str, family: str
) -> None:
    model = model_of(worker, tiny[kind], batch=3, speech="no")
    await model.open()
    try:
        facts = model.describe()["facts"]
        assert facts["class"] == family and facts["device"] == "cpu" and facts["parameters"] > 10_000
        assert facts["versions"]["transformers"].startswith("5.")
        together = await asyncio.gather(*(model.ask(asked(n)) for n in range(3)))
        alone = [await model.ask(asked(n)) for n in range(3)]
        broken = Sound(b"RIFF" + bytes(60), "", 0.0)
        with pytest.raises(ModelFailure) as failure:
            await model.ask(Request(Key("x", "task/audio"), (Message("user", (broken, "x")),)))
        words = await model.ask(Request(Key("x", "task/transcript"), (Message("user", ("no sound at all",)),)))
    finally:
        await model.close()
    assert failure.value.reason == "bad_clip"
    assert [r.text for r in together] == [r.text for r in alone]
    assert len({r.text for r in together}) == 3, "the replies must depend on what was heard"
    assert all(r.finish == "length" and r.usage.output_tokens == 6 for r in together)
    lengths = [r.usage.input_audio_tokens for r in together]
    assert lengths[2] < lengths[0] < lengths[1]
    assert all(r.audio is None and r.usage.input_tokens > r.usage.input_audio_tokens for r in together)
    assert words.usage.input_audio_tokens == 0 and words.text


@pytest.mark.parametrize("kind", ["qwen2_5_omni", "qwen3_omni"])
async def test_an_omni_model_answers_with_speech_that_a_seed_repeats(tiny: dict[str, Path], kind: str) -> None:
    model = model_of(kind, tiny[kind], batch=2, max_speech=0.4, seed=3)
    await model.open()
    try:
        first = await asyncio.gather(*(model.ask(asked(n, speech=True)) for n in range(2)))
        again = await model.ask(asked(0, speech=True))
        text: Reply = await model.ask(asked(1))
    finally:
        await model.close()
    for reply in first:
        assert reply.audio is not None and reply.text
        samples, rate = decode(reply.audio)
        assert rate == 24_000
        assert 0.2 < len(samples) / rate <= 0.4 and np.abs(samples).max() > 0
        assert reply.usage.output_audio_tokens > 0
    assert first[0].audio == again.audio, "the same seed must draw the same speech, in company or alone"
    assert first[0].audio != first[1].audio
    assert text.audio is None and text.text


async def test_a_temperature_draws_and_a_seed_repeats_the_draw(tiny: dict[str, Path]) -> None:
    model = model_of("qwen2_audio", tiny["qwen2_audio"], temperature=5.0, seed=11, batch=2)
    await model.open()
    try:
        request = asked(0)
        first, second = await asyncio.gather(model.ask(request), model.ask(request))
        other = await model.ask(Request(Key("item0", "task/audio", 1), request.messages, seed=12))
    finally:
        await model.close()
    assert first.text == second.text != other.text


async def test_a_voice_the_checkpoint_lacks_is_an_error_that_names_those_it_has(tiny: dict[str, Path]) -> None:
    with pytest.raises(UsageError, match="voice=Bob is not one of this checkpoint's voices: Chelsie, Ethan"):
        await model_of("qwen2_5_omni", tiny["qwen2_5_omni"], voice="Bob").open()


async def test_weights_that_are_no_safetensors_are_not_loaded(tiny: dict[str, Path], tmp_path: Path) -> None:
    for file in tiny["qwen2_audio"].iterdir():
        name = "pytorch_model.bin" if file.name == "model.safetensors" else file.name
        (tmp_path / name).write_bytes(file.read_bytes())
    with pytest.raises(UsageError, match=r"safetensors"):
        await model_of("qwen2_audio", tmp_path).open()


def test_there_is_one_audio_token_for_each_step_of_the_audio_encoder(tiny: dict[str, Path]) -> None:
    for kind, seen in probed("tokens", tiny, "qwen2_audio", "qwen2_5_omni", "qwen3_omni").items():
        assert len(seen) > 8
        assert {s: v["tokens"] for s, v in seen.items()} == {s: v["steps"] for s, v in seen.items()}
        assert all(v["tokens"] > 0 for v in seen.values())
        cut = [] if kind == "qwen3_omni" else ["sound 1 cut from 6.0 s to the 5.0 s this model hears"]
        assert seen["6.0"]["notes"] == cut and seen["5.0"]["notes"] == []


def test_the_inputs_equal_those_of_the_models_own_processor(tiny: dict[str, Path]) -> None:
    if in_worker_environment("-c", "import torchvision").returncode:
        pytest.skip("AutoProcessor of an Omni model needs torchvision, which does not load in the workers' environment")
    for seen in probed("processor", tiny, "qwen2_5_omni", "qwen3_omni").values():
        assert seen["class"].endswith("Processor") and seen["input_ids"] and seen["attention_mask"]
        assert max(seen["gaps"]) < 1e-5


def probed(what: str, tiny: dict[str, Path], *kinds: str) -> dict[str, Any]:
    done = in_worker_environment(HERE / "probe_inputs.py", what, *(x for kind in kinds for x in (kind, tiny[kind])))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert set(found) == set(kinds)
    return found
