"""A small model that was trained in a moment by small matrices, and its release."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import msgspec
import torch

from overtone.echat.learn.run_stages import Settings
from overtone.echat.net import checkpoint
from overtone.echat.net.backbone import build
from scripts import release_echat
from tests.echat import small
from tests.echat.test_release import manifest
from tests.echat.test_run_stages import STAGE, TABLES

PRESET = """
dtype = "float16"
[model.encoder]
kind = "small"
dim = 32
layers = 1
heads = 2
ffn = 64
[model.adapter]
dim = 32
ffn = 64
layers = 1
heads = 2
[model.lm]
source = "{base}"
tokenizer = "bytes"
hidden = 32
layers = 2
heads = 2
kv_heads = 1
ffn = 64
vocab = 260
context = 4096
lora = {{ rank = 4, alpha = 8.0 }}
[model.speech]
codes = 384
"""


def preset(home: Path, seed: int = 0) -> Path:
    """Write a base model and a preset that adapts it."""
    torch.manual_seed(seed)
    made = small.model_config(context=4096)
    build(made.lm).save_pretrained(home / "base")
    text = PRESET.format(base=home / "base")
    path = home / "small-lora.toml"
    path.write_text(text + "".join(STAGE.format(name=name, rest=rest) for name, rest in TABLES.items()))
    return path


def settings(made: tuple[Path, Path], out: Path, **changes: Any) -> Settings:
    return Settings(str(made[0]), (made[1],), out, **{"device": "cpu", "samples": 0, "workers": 0, **changes})


def release(checkpoint_path: Path, out: Path) -> int:
    """Release a checkpoint, with a manifest of what it was trained on."""
    told = msgspec.json.decode(manifest(out.parent / "manifest.json").read_bytes())
    told["sha256"] = dict(enumerate(checkpoint.index(checkpoint_path).notes["data"]))
    (out.parent / "manifest.json").write_bytes(msgspec.json.encode(told))
    return release_echat.main([str(checkpoint_path), str(out), "--trained-on", str(out.parent / "manifest.json")])


def unpacked(archive: Path) -> Path:
    """Unpack a release's archive elsewhere, and return its folder."""
    there = archive.parent / "there"
    with tarfile.open(archive) as tar:
        tar.extractall(there, filter="data")
    return there / archive.stem
