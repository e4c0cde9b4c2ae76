"""Checkpoints: a folder with the configuration, one safetensors file per part, and the files' SHA-256.

A folder is written atomically. The language model's configuration is stored too, so that the model can be rebuilt
without its source. Of an adapted language model, only the trained weights are stored, with the SHA-256 of the frozen
ones, which come from the source again.
"""

from __future__ import annotations

import math
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
from overtone.echat.net.low_rank import adapted, frozen_digest, learned, merge
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
    """A file of weights. `more` has the other files of a part that was divided."""

    file: str
    sha256: str
    bytes: int
    parameters: int  # number of parameters in the file
    more: tuple[Part, ...] = ()

    @property
    def files(self) -> tuple[Part, ...]:
        """All files of the part."""
        return (self, *self.more)


class Base(Struct, frozen=True):
    """The frozen weights of an adapted language model. They are not stored."""

    sha256: str
    parameters: int


class Index(Struct, frozen=True):
    """The contents of checkpoint.json. Parts that are not listed come from the source in `config`."""

    format: int
    config: dict[str, Any]
    parts: dict[str, Part]
    overtone: str = ""
    notes: dict[str, Any] = {}  # from training: stage, step, seed
    heard: HeardFile | None = None  # what the model heard in training; None in checkpoints without a statement
    lm: dict[str, Any] = {}  # transformers' configuration of the language model, if its weights are stored
    base: Base | None = None  # if the language model is adapted

    @property
    def parameters(self) -> int:
        """The number of parameters of the model."""
        stored = sum(file.parameters for part in self.parts.values() for file in part.files)
        return stored + (self.base.parameters if self.base else 0)


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
    file_bytes: float = math.inf,
) -> None:
    """Write the model, or some of its parts, to a folder. A checkpoint that is already there is replaced.

    Weights are converted to `dtype`; None leaves them unchanged. A part with more than `file_bytes` bytes of weights is
    divided into several files, without dividing a weight. `heard` states what the model heard in training.
    """
    folder = folder.absolute()
    fresh = _beside(folder, "new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        written = {part: _write(fresh, part, part_state(model, part), dtype, file_bytes) for part in parts}
        kind = saved_config(model.lm) if "lm" in written else {}
        base = Base(*frozen_digest(model.lm)) if "lm" in written and config.model.lm.lora else None
        stated = None if heard is None else write_heard(fresh, heard)
        index = Index(FORMAT, msgspec.to_builtins(config), written, __version__, notes or {}, stated, kind, base)
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
    """Return a part's weights by name. An output table that is shared with the embedding is left out, and so are the
    frozen weights of an adapted language model. Raises ValueError for an adapted language model that was merged."""
    module = getattr(model, part)
    if part == "lm" and model.config.lm.lora:
        if not adapted(module):
            raise ValueError("the language model was merged; load it with merged=False to save it")
        return {name: weight.data for name, weight in learned(module).items()}
    tied = tied_names(module) if part == "lm" else ()
    return {name: value for name, value in module.state_dict().items() if name not in tied}


@torch.no_grad()
def round_weights(model: EChat, dtype: torch.dtype) -> None:
    """Round all weights that a checkpoint stores to the numbers that `dtype` has, in place.

    Raises DataError for a weight that is too large for it.
    """
    for part in PARTS:
        for name, value in part_state(model, part).items():
            value.copy_(value.to(dtype))
            if not bool(value.isfinite().all()):
                raise DataError(f"{part}: {name} has a value that {dtype} cannot hold; train with dtype = 'float32'")


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
    merged: bool = True,
) -> tuple[EChat, Config]:
    """Load a checkpoint's model, and return it with its configuration.

    A missing encoder or language model comes from the source in the configuration. `check` compares each file with its
    SHA-256. An adapted language model becomes an ordinary one, unless `merged` is false, which training needs. Raises
    DataError for a part without a source, and for a file that is missing, incomplete or changed.
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
        _random_lm(stored.lm, made, folder)
        if "lm" in stored.parts and not made.model.lm.lora
        else open_lm(made.model.lm),
    )
    load_parts(model, folder, stored.parts, check=check)
    if stored.base and check and frozen_digest(model.lm)[0] != stored.base.sha256:
        raise DataError(
            f"{shown(str(folder))}: it was trained beside another language model than this one of "
            f"{shown(made.model.lm.source)!r}; install the same version, for smollm2 with 'overtone setup local'"
        )
    if merged:
        merge(model.lm)
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
        state: dict[str, Tensor] = {}
        for file in stored.parts[part].files:
            state |= _read(folder / Path(file.file).name, file, check)
        module = getattr(model, part)
        device = next(module.parameters()).device
        spare = tied_names(module)
        if both := spare & state.keys():
            raise DataError(f"{shown(str(where))}: does not fit the configured model, where {min(both)} is tied")
        if part == "lm" and model.config.lm.lora:
            spare |= module.state_dict().keys() - learned(module).keys()
        fill(module, {name: value.to(device) for name, value in state.items()}, str(where), spare)


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


def _write(
    folder: Path, part: str, state: dict[str, Tensor], dtype: torch.dtype | None, file_bytes: float
) -> Part:  # fmt: skip
    tensors = {name: value.detach().to("cpu", dtype or value.dtype).contiguous() for name, value in state.items()}
    groups: list[dict[str, Tensor]] = [{}]
    for name, value in tensors.items():
        if groups[-1] and sum(one.nbytes for one in groups[-1].values()) + value.nbytes > file_bytes:
            groups.append({})
        groups[-1][name] = value
    files = []
    for number, group in enumerate(groups, 1):
        path = folder / (f"{part}.safetensors" if len(groups) == 1 else f"{part}-{number}.safetensors")
        save_file(group, path)
        files.append(Part(path.name, sha256(path), path.stat().st_size, sum(value.numel() for value in group.values())))
    return msgspec.structs.replace(files[0], more=tuple(files[1:]))


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
