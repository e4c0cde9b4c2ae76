"""A language model that learns by small matrices: what is trained, stored, merged and released."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from msgspec.structs import replace

from overtone.echat.learn import graphs, run_stages
from overtone.echat.learn.run_stages import run
from overtone.echat.learn.training_report import LOG, read_log
from overtone.echat.net import checkpoint, config
from overtone.echat.net.config import LoraConfig
from overtone.echat.net.decode import Sampling
from overtone.echat.net.low_rank import LowRank, adapted, frozen_digest, learned, merge
from overtone.echat.talk.answer import Answer, open_answerer
from overtone.echat.talk.dialogue import Asked, Message
from overtone.echat.talk.reply_settings import ReplySettings
from overtone.errors import DataError, UsageError
from overtone.models.echat import checkpoint_folder
from scripts import release_echat
from tests.echat import small
from tests.echat.test_graphs import Straight
from tests.echat.toys import make_pack
from tests.echat.trained_toy import preset, release, settings, unpacked


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A preset and a pack."""
    home = tmp_path_factory.mktemp("lora")
    return preset(home), make_pack(home / "pack")


@pytest.fixture(scope="module")
def trained(made: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    assert run(settings(made, out), lambda line: None)
    return out


def test_a_new_model_is_its_base_and_only_small_weights_learn() -> None:
    plain, one = small.model(), small.model()
    one = type(one)(replace(one.config, lm=replace(one.config.lm, lora=LoraConfig(4, 8.0))), one.encoder, one.lm)
    x = torch.randn(2, 5, 32)
    with torch.no_grad():
        assert torch.equal(*(m.lm.base_model(inputs_embeds=x).last_hidden_state for m in (plain, one)))
    learning = {name for name, p in one.lm.named_parameters() if p.requires_grad}
    assert learning == set(learned(one.lm))
    assert {name.rpartition(".")[2] for name in learning if "proj" in name} == {"a", "b"}
    assert not [name for name in learning if "embed" in name or "lm_head" in name]
    assert [name for name in learning if "norm" in name]
    assert len([m for m in one.lm.modules() if isinstance(m, LowRank)]) == 2 * 7
    assert set(learned(plain.lm)) == {name for name, _ in plain.lm.named_parameters()}


def test_a_merged_model_computes_the_same_without_small_matrices(trained: Path) -> None:
    folder = checkpoint_folder(trained)
    (apart, _), (one, _), (again, _) = (checkpoint.load(folder, merged=merged) for merged in (False, True, True))
    assert adapted(apart.lm) and not adapted(one.lm)
    assert any(bool(m.b.any()) for m in apart.lm.modules() if isinstance(m, LowRank))
    x = torch.randn(2, 5, 32)
    with torch.no_grad():
        states = [m.lm.base_model(inputs_embeds=x).last_hidden_state for m in (apart, one)]
    assert torch.allclose(*states, atol=1e-5)
    assert all(torch.equal(p, q) for p, q in zip(one.state_dict().values(), again.state_dict().values(), strict=True))
    with pytest.raises(ValueError, match="merged=False"):
        checkpoint.part_state(one, "lm")


def test_training_leaves_the_base_as_it_was_and_stores_what_it_trained_in_half_precision(
    made: tuple[Path, Path], trained: Path
) -> None:
    folder = checkpoint_folder(trained)
    index = checkpoint.index(folder)
    torch.manual_seed(0)
    new = checkpoint.make(config.read(str(made[0])))
    assert index.base and index.base.sha256 == frozen_digest(new.lm)[0]
    assert index.parameters == sum(p.numel() for p in new.parameters())
    model, _ = checkpoint.load(folder, merged=False)
    assert frozen_digest(model.lm) == frozen_digest(new.lm)
    state = checkpoint.part_state(model, "lm")
    assert index.parts["lm"].parameters == sum(value.numel() for value in state.values()) < index.base.parameters
    for part in config.PARTS:
        assert all(torch.equal(v, v.half().float()) for v in checkpoint.part_state(model, part).values()), part
    assert sum(row.loss for row in read_log(trained / "stage-3" / LOG)) > 0


def test_a_stage_in_slices_from_a_checkpoint_ends_as_in_one_run(
    made: tuple[Path, Path], trained: Path, tmp_path: Path
) -> None:
    start = trained / "stage-1" / "model"  # rounded, as the model that the run went on with
    for _ in range(8):
        if run(settings(made, tmp_path, stage="2a", start=start, minutes=1e-6, resume=True), lambda line: None):
            break
    stages = [checkpoint.index(out / "stage-2a" / "model") for out in (trained, tmp_path)]
    assert stages[0].parts == stages[1].parts


def test_a_frozen_base_held_in_bf16_is_exact_afterwards(
    made: tuple[Path, Path], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exactly = run_stages.gpu_speed.freeze
    held = []

    def freeze(weights: Any, narrow: bool) -> Any:
        held.append(len(weights))
        return exactly(weights, narrow=True)

    monkeypatch.setattr(run_stages.gpu_speed, "freeze", freeze)
    with torch.autocast("cpu", torch.bfloat16):
        assert run(settings(made, tmp_path), lambda line: None)
    assert len(held) == 4 and held[0] > held[1] == held[2] == held[3] > 0  # in stage 1, small matrices are frozen too
    index = checkpoint.index(checkpoint_folder(tmp_path))
    assert index.base == checkpoint.index(checkpoint_folder(trained)).base


def test_rows_end_to_end_train_small_matrices_as_padded_ones_do(
    made: tuple[Path, Path], trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with recorded kernels on a GPU, but for the recording. No dropout, whose draws depend on the padding."""
    sure = tmp_path / "small-lora.toml"
    sure.write_text(made[0].read_text().replace("[model.adapter]", "[model.adapter]\ndropout = 0.0"))
    first = {"stage": "1", "graphs": False}
    for out in ("plain", "rows"):
        run(settings((sure, made[1]), tmp_path / out, **first), lambda line: None)
    run(settings((sure, made[1]), tmp_path / "plain", stage="2a"), lambda line: None)
    recorded, kept = run_stages.gpu_speed.record, []

    def rows(model: Any, on: bool, most: int) -> None:
        recorded(model, True, most)
        kept.append(model.reader)

    monkeypatch.setattr(graphs, "Recorder", Straight)
    monkeypatch.setattr(run_stages.gpu_speed, "record", rows)
    run(settings((sure, made[1]), tmp_path / "rows", stage="2a"), lambda line: None)
    (reader,) = kept
    assert {name.rpartition(".")[2] for name in reader.recorder.weights} == {"a", "b", "weight"}
    assert not [name for name in reader.recorder.weights if "proj.weight" in name or "embed" in name]
    plain, others = (
        checkpoint.load(tmp_path / out / "stage-2a" / "model")[0].state_dict() for out in ("plain", "rows")
    )
    assert all(torch.allclose(plain[name], others[name], atol=1e-3) for name in plain)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_torchrun_trains_small_matrices_and_leaves_the_base(
    made: tuple[Path, Path], trained: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    runner = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29671"]
    words = ["train", "echat", "--preset", made[0], "--data", made[1], "--out", tmp_path, "--device", "cpu"]
    command = [*runner, "-m", "overtone", *map(str, words), "--samples", "0", "--workers", "0"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    indices = [checkpoint.index(out / "stage-3" / "model") for out in (tmp_path, trained)]
    assert indices[0].base == indices[1].base and indices[0].parts["lm"] != indices[1].parts["lm"]
    assert [index.parts["lm"].parameters for index in indices] == [indices[0].parts["lm"].parameters] * 2


def test_another_base_is_refused(made: tuple[Path, Path], trained: Path, tmp_path: Path) -> None:
    preset(tmp_path, seed=1)
    folder = checkpoint_folder(trained)
    index = msgspec.json.decode((folder / "checkpoint.json").read_bytes())
    index["config"]["model"]["lm"]["source"] = str(tmp_path / "base")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "checkpoint.json").write_bytes(msgspec.json.encode(index))
    with pytest.raises(DataError, match="beside another language model"):
        checkpoint.load(copy)


def test_a_random_base_and_impossible_sizes_are_refused(tmp_path: Path) -> None:
    text = preset(tmp_path).read_text()
    for old, new, told in (
        (f'"{tmp_path / "base"}"', '"random"', "cannot be opened again"),
        ("rank = 4", "rank = 0", "rank must be at least 1"),
        ("alpha = 8.0", "alpha = inf", "alpha above 0"),
    ):
        assert old in text
        (tmp_path / "wrong.toml").write_text(text.replace(old, new))
        with pytest.raises(UsageError, match=told):
            config.read(str(tmp_path / "wrong.toml"))


def replies(folder: Path, dtype: str, sampled: bool) -> list[Answer]:
    """Answers in text and speech to several messages, greedy or sampled with a seed."""
    how = ReplySettings(max_text=40, max_speech=30)
    if sampled:
        how = replace(how, text=Sampling(0.9, top_p=0.95))
    answerer = open_answerer(folder, how, device="cpu", dtype=dtype)
    rng = np.random.default_rng(0)
    waves = [0.1 * rng.standard_normal(16_000 * seconds).astype(np.float32) for seconds in (1, 2)]
    asks = [Asked((Message("user", (wave,)),), speech=True, seed=n) for n, wave in enumerate(waves)]
    asks.append(Asked((Message("user", ("Hello there.",)),), speech=False, seed=7))
    return [answer for asked in asks for answer in answerer.answer([asked])]


@pytest.fixture(scope="module")
def released(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint's release, from its archive, with every part divided into several files."""
    home = tmp_path_factory.mktemp("released")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_echat, "FILE_BYTES", 4_000)
        assert release(checkpoint_folder(trained), home / "toy") == 0
    return unpacked(home / "toy.tar")


@pytest.mark.parametrize(("dtype", "sampled"), [("float32", False), ("float32", True), ("", False), ("", True)])
def test_replies_of_a_release_equal_the_checkpoints_to_the_token(
    trained: Path, released: Path, dtype: str, sampled: bool
) -> None:
    ours, theirs = (replies(folder, dtype, sampled) for folder in (checkpoint_folder(trained), released))
    assert [(a.text, a.thought, a.codes) for a in ours] == [(a.text, a.thought, a.codes) for a in theirs]
    assert sum(answer.said for answer in ours) > 60 and any(answer.codes for answer in ours)
    assert all(np.array_equal(a.sound, b.sound) for a, b in zip(ours, theirs, strict=True) if a.sound is not None)


def test_a_release_has_small_matrices_in_files_of_limited_size_with_their_hashes(released: Path) -> None:
    index = checkpoint.index(released)
    assert len(index.parts["lm"].files) > 1 and index.base
    small_ones = [file for file in index.parts["lm"].files if 2 * file.parameters <= 4_000]
    assert small_ones == list(index.parts["lm"].files)
    for name, digest in msgspec.json.decode((released / "manifest.json").read_bytes())["sha256"].items():
        assert hashlib.sha256((released / name).read_bytes()).hexdigest() == digest
    text = (released / "README.md").read_text()
    assert "in half precision" in text and f"| {index.base.parameters:,} | not included |" in text


def test_a_checkpoint_that_is_not_in_its_number_type_is_not_released(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, made = checkpoint.load(checkpoint_folder(trained), merged=False)
    with torch.no_grad():
        model.speech["head"].weight += 1e-5
    checkpoint.save(model, tmp_path / "one", made, notes=checkpoint.index(checkpoint_folder(trained)).notes)
    assert release(tmp_path / "one", tmp_path / "toy") != 0
    assert "speech: head.weight is not in half precision" in capsys.readouterr().err


def test_a_weight_beyond_half_precision_is_refused_by_name() -> None:
    model = small.model()
    with torch.no_grad():
        model.speech["head"].bias[3] = 1e6
    with pytest.raises(DataError, match=r"speech: head\.bias has a value"):
        checkpoint.round_weights(model, torch.float16)


def test_the_preset_of_the_released_model_fits_into_fifty_megabytes() -> None:
    """The sizes of mini-lora's parts, with random weights in place of the packages'."""
    made = config.read("mini-lora")
    model = replace(made.model, lm=replace(made.model.lm, source="random"))
    model = replace(model, encoder=replace(model.encoder, source="random"))
    built = checkpoint.make(replace(made, model=model))
    numbers = sum(v.numel() for part in config.PARTS for v in checkpoint.part_state(built, part).values())
    assert made.dtype == "float16" and 43e6 < 2 * numbers < 49e6
    merge(built.lm)
    assert not adapted(built.lm)
