"""Checkpoints: a folder with the configuration, one safetensors file per part, and the files' SHA-256.

A folder is written atomically. The language model's configuration is stored too, so that the model can be rebuilt
without its source.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from overtone.echat.net.backbone import open_lm, rebuild, saved_config, table_size, tied_names
from overtone.echat.net.config import PARTS, Config, convert
from overtone.echat.net.device import cast_weights
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import EChat, fill
from overtone.errors import DataError, UsageError
from overtone.heard import HeardFile, HeardInTraining
from overtone.heard import read as read_heard
from overtone.heard import write as write_heard
from overtone.paths import read_plain, sha256, shown, to_disk
from overtone.spec import suggest
from overtone.version import __version__

FORMAT = 1
INDEX = "checkpoint.json"


class Part(Struct, frozen=True):
    """A file of weights."""

    file: str
    sha256: str
    bytes: int
    parameters: int  # number of parameters of the part


class Index(Struct, frozen=True):
    """The contents of checkpoint.json. Parts that are not listed come from the source in `config`."""

    format: int
    config: dict[str, Any]
    parts: dict[str, Part]
    overtone: str = ""
    notes: dict[str, Any] = {}  # from training: stage, step, seed
    heard: HeardFile | None = None  # what the model heard in training; None in checkpoints without a statement
    lm: dict[str, Any] = {}  # transformers' configuration of the language model, if its weights are stored


def make(config: Config) -> EChat:
    """Build a new model with the initial weights of its parts."""
    return EChat(config.model, open_encoder(config.model.encoder), open_lm(config.model.lm))


def random_copy(model: EChat) -> EChat:
    """Build a model of the same kind with random weights, to be filled from a sharded model."""
    return EChat(model.config, open_encoder(model.config.encoder, empty=True), rebuild(saved_config(model.lm)))


def save(
    model: EChat,
    folder: Path,
    config: Config,
    *,
    parts: Iterable[str] = PARTS,
    dtype: torch.dtype | None = None,
    notes: dict[str, Any] | None = None,
    heard: HeardInTraining | None = None,
) -> None:
    """Write the model, or some of its parts, to a folder. A checkpoint that is already there is replaced.

    Weights are converted to `dtype`; None leaves them unchanged. `heard` states what the model heard in training.
    """
    folder = folder.absolute()
    fresh = _beside(folder, "new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        written = {part: _write(fresh, part, part_state(model, part), dtype) for part in parts}
        kind = saved_config(model.lm) if "lm" in written else {}
        stated = None if heard is None else write_heard(fresh, heard)
        index = Index(FORMAT, msgspec.to_builtins(config), written, __version__, notes or {}, stated, kind)
        (fresh / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)))
        for path in fresh.iterdir():
            to_disk(path)
        take_place(fresh, folder)
    except BaseException:  # including interrupts: leave no partial folder
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def take_place(fresh: Path, folder: Path) -> None:
    """Rename a new checkpoint to its final folder. Replaces an older checkpoint, but no other files."""
    folder = folder.absolute()
    old = _beside(folder, "old")
    if folder.exists():
        if not (folder / INDEX).is_file() and any(folder.iterdir()):
            raise UsageError(f"{shown(str(folder))}: contains other files; give an empty folder for the checkpoint")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def part_state(model: EChat, part: str) -> dict[str, Tensor]:
    """Return a part's weights by name. An output table that is shared with the embedding is left out."""
    module = getattr(model, part)
    tied = tied_names(module) if part == "lm" else ()
    return {name: value for name, value in module.state_dict().items() if name not in tied}


def index(folder: Path) -> Index:
    """Read checkpoint.json. Raises DataError if the folder is not a checkpoint."""
    folder = _present(folder)
    path = folder / INDEX
    if not path.is_file():
        raise DataError(f"{shown(str(folder))}: not a checkpoint: {INDEX} is missing")
    try:
        read = msgspec.json.decode(read_plain(path, 1 << 20), type=Index)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{shown(str(path))}: not a checkpoint's index: {error}") from None
    if read.format != FORMAT:
        raise DataError(f"{shown(str(path))}: format {read.format}, but this version of Overtone reads {FORMAT}")
    if unknown := sorted(read.parts.keys() - set(PARTS)):
        raise DataError(
            f"{shown(str(path))}: unknown part {shown(unknown[0][:40])!r}{suggest(unknown[0], PARTS)}; known: "
            f"{', '.join(PARTS)}"
        )
    return read


def heard(folder: Path) -> HeardInTraining | None:
    """Return what a checkpoint's model heard in training; None if it does not state that. Raises DataError."""
    entry = index(folder).heard
    return None if entry is None else read_heard(_present(folder), entry)


def config(folder: Path) -> Config:
    """Return the configuration of a checkpoint."""
    return convert(index(folder).config, Config, f"{shown(str(folder))}/{INDEX}")


def load(
    folder: Path,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    check: bool = True,
) -> tuple[EChat, Config]:
    """Load a checkpoint's model, and return it with its configuration.

    A missing encoder or language model comes from the source in the configuration. `check` compares each file with its
    SHA-256. Raises DataError for a part without a source, and for a file that is missing, incomplete or changed.
    """
    stored = index(folder)
    made = config(folder)
    sources = {"encoder": made.model.encoder.weights or made.model.encoder.source, "lm": made.model.lm.source}
    for part in PARTS:
        if part not in stored.parts and sources.get(part, "random") == "random":
            raise DataError(f"{shown(str(folder))}: part {part!r} is missing, and it has no other source")
    model = EChat(
        made.model,
        open_encoder(made.model.encoder, empty="encoder" in stored.parts),
        _random_lm(stored.lm, made, folder) if "lm" in stored.parts else open_lm(made.model.lm),
    )
    load_parts(model, folder, stored.parts, check=check)
    cast_weights(model, dtype)
    return model.to(device).eval(), made


def load_parts(model: EChat, folder: Path, parts: Iterable[str] = PARTS, *, check: bool = True) -> None:
    """Load some parts of a model from a checkpoint, for example to start a stage. Raises DataError."""
    stored = index(folder)
    folder = _present(folder)
    for part in parts:
        if part not in stored.parts:
            names = ", ".join(stored.parts)
            raise DataError(f"{shown(str(folder))}: no part {part!r}{suggest(part, stored.parts)}; it has {names}")
        where = folder / Path(stored.parts[part].file).name
        state = _read(where, stored.parts[part], check)
        module = getattr(model, part)
        device = next(module.parameters()).device
        tied = tied_names(module)
        if both := tied & state.keys():
            raise DataError(f"{shown(str(where))}: does not fit the configured model, where {min(both)} is tied")
        fill(module, {name: value.to(device) for name, value in state.items()}, str(where), tied)


def _random_lm(kind: dict[str, Any], made: Config, folder: Path) -> Any:
    """Build a checkpoint's language model with random weights."""
    where = f"{shown(str(folder))}/{INDEX}"
    try:
        lm = rebuild(kind)
    except ValueError as error:
        raise DataError(f"{where}: its language model cannot be built here: {error}") from None
    if table_size(lm) != (made.model.lm.hidden, made.model.lm.vocab):
        raise DataError(f"{where}: the sizes of its language model differ from its configuration")
    return lm


def _write(folder: Path, part: str, state: dict[str, Tensor], dtype: torch.dtype | None) -> Part:
    path = folder / f"{part}.safetensors"
    tensors = {name: value.detach().to("cpu", dtype or value.dtype).contiguous() for name, value in state.items()}
    save_file(tensors, path)
    size = sum(value.numel() for value in state.values())
    return Part(path.name, sha256(path), path.stat().st_size, size)


def _read(path: Path, part: Part, check: bool) -> dict[str, Tensor]:
    again = "copy the checkpoint again, or use the previous one"
    try:
        exists = path.is_file()
    except OSError as error:  # an invalid file name
        raise DataError(f"{shown(str(path))[:200]}: {error.strerror}; {again}") from None
    if not exists:
        raise DataError(f"{shown(str(path))}: missing; {again}")
    if path.stat().st_size != part.bytes:
        raise DataError(f"{shown(str(path))}: {path.stat().st_size} bytes instead of {part.bytes}; {again}")
    if check and sha256(path) != part.sha256:
        raise DataError(f"{shown(str(path))}: changed since it was written (different SHA-256); {again}")
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise DataError(f"{shown(str(path))}: not a safetensors file ({error}); {again}") from None


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}")


def _present(folder: Path) -> Path:
    """Return the folder. If it is missing because saving was killed between two renames, return its predecessor."""
    old = _beside(folder.absolute(), "old")
    return old if not folder.exists() and old.is_dir() else folder
