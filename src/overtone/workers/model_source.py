"""Where a language model comes from: the folder of a transformers checkpoint, checked before anything heavy is loaded.

A source is `DIR`, or `LOADER:DIR` for a checkpoint that transformers cannot read by itself. This file imports only the
standard library, because Overtone, its workers and its training programs use it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

# LOADER → the module in this folder with `open_model(folder, dtype) -> (model, tokenizer)` and `check(folder)`.
LOADERS = {"openpangu": "openpangu"}
# LOADER → what its users must know before the first use. They say that they do by the variable below.
NOTICES = {
    "openpangu": "openPangu is under the OPENPANGU MODEL LICENSE AGREEMENT 1.0, which forbids use within the European "
    "Union, asks for the notice 'Powered by openPangu' and for a copy of the agreement with what you pass on. "
    "Read the LICENSE file of the checkpoint",
}
ACCEPTED = "OVERTONE_ACCEPTED_LICENCES"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "vocab.txt")
_IDENTITY = ("config.json", "generation_config.json", "*.safetensors", "token*", "vocab*", "merges.txt", "spiece.model",
             "special_tokens_map.json", "added_tokens.json", "chat_template*")  # fmt: skip


class BadSource(ValueError):
    """The source cannot be used. The text says why, and what to do."""


def split(source: str) -> tuple[str, Path]:
    """Return the loader ("" for transformers' own) and the folder of a source."""
    kind, colon, rest = source.partition(":")
    loader, name = (kind, rest) if colon and kind in LOADERS else ("", source)
    return loader, Path(name).expanduser()


def check(source: str) -> Path:
    """Return the folder of a source. Raises BadSource if it is missing or is not a complete checkpoint.

    A model with a notice about its licence is refused until the user has accepted it.
    """
    loader, folder = split(source)
    if loader in NOTICES and loader not in os.environ.get(ACCEPTED, "").replace(" ", "").split(","):
        raise BadSource(f"{NOTICES[loader]}. If you accept it, set {ACCEPTED}={loader}")
    if not folder.is_dir():
        state = "is a file, not a folder" if folder.is_file() else "does not exist"
        raise BadSource(f"{folder} {state}; name the folder of a language model: config.json, safetensors, tokenizer")
    read_config(folder)
    if not any((folder / name).is_file() for name in WEIGHTS):
        other = next((path.name for path in sorted(folder.glob("*.bin")) + sorted(folder.glob("*.gguf"))), "")
        why = f"only {other}; convert it with save_pretrained" if other else "copy the checkpoint again"
        raise BadSource(f"{folder} has no weights in safetensors ({why})")
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise BadSource(f"{folder} has no tokenizer ({', '.join(TOKENIZERS[:2])}); copy it there from the base model")
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json of a checkpoint. Raises BadSource if it is missing or damaged."""
    path = folder / "config.json"
    if not path.is_file():
        raise BadSource(f"{folder} has no config.json; name the folder of a transformers checkpoint")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadSource(f"{path} cannot be read ({error}); copy the checkpoint again") from None
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise BadSource(f"{path} has no model_type; it is not the configuration of a transformers model")
    return config


def fingerprint(folder: Path) -> str:
    """Return a SHA-256 over the names and bytes of the files that determine a checkpoint's replies.

    These are the configuration, the weights, the tokenizer and the chat template.
    """
    whole = hashlib.sha256()
    for path in sorted({path for pattern in _IDENTITY for path in folder.glob(pattern) if path.is_file()}):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        whole.update(f"{path.name} {digest.hexdigest()}\n".encode())
    return whole.hexdigest()
