"""A model in a folder: its configuration, one safetensors file for each part, and the SHA-256 of each. The folder is
there whole or not at all. A part may be kept in less room (compact.py): `form` says how. What the language model is, is
kept beside its weights, so that it is built again where its source is not at hand."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from overtone.echat.net import compact
from overtone.echat.net.backbone import doubles, open_lm, rebuild, table_size, told
from overtone.echat.net.config import PARTS, Config, convert
from overtone.echat.net.device import narrow
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import EChat, fill
from overtone.errors import DataError, UsageError
from overtone.paths import read_plain, sha256, shown, to_disk
from overtone.spec import suggest
from overtone.version import __version__

FORMAT = 1
INDEX = "checkpoint.json"


class Part(Struct, frozen=True):
    """A file of weights: as they are, or in one of `compact.FORMS`; of a delta, what it was taken from."""

    file: str
    sha256: str
    bytes: int
    parameters: int  # of the model
    form: str = ""
    base: str = ""  # compact.fingerprint


class Kept(Struct, frozen=True):
    """A part in less room, to be saved in the place of its weights."""

    form: str
    tensors: dict[str, Any]
    base: str = ""


class Index(Struct, frozen=True):
    """What a checkpoint folder says of itself. A part it does not hold comes from where `config` says."""

    format: int
    config: dict[str, Any]
    parts: dict[str, Part]
    overtone: str = ""
    notes: dict[str, Any] = {}  # of whoever trained it: stage, step, seed
    lm: dict[str, Any] = {}  # transformers' configuration of the language model, where its weights are a part


def make(config: Config) -> EChat:
    """A new model with its parts' first weights."""
    return EChat(config.model, open_encoder(config.model.encoder), open_lm(config.model.lm))


def emptied(model: EChat) -> EChat:
    """Another of the same kind with random weights, to be filled with those of a model that lies in pieces."""
    return EChat(model.config, open_encoder(model.config.encoder, empty=True), rebuild(told(model.lm)))


def save(
    model: EChat,
    folder: Path,
    config: Config,
    *,
    parts: Iterable[str] = PARTS,
    dtype: torch.dtype | None = None,
    notes: dict[str, Any] | None = None,
    kept: Mapping[str, Kept] | None = None,
) -> None:
    """Write the model, or some parts of it, in `dtype` (its own when None), those in `kept` as they are there. An older
    checkpoint there is replaced."""
    folder = folder.absolute()
    fresh = _beside(folder, "new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        small = kept or {}
        written = {part: _write(fresh, part, part_state(model, part), dtype, small.get(part)) for part in parts}
        kind = told(model.lm) if "lm" in written else {}
        index = Index(FORMAT, msgspec.to_builtins(config), written, __version__, notes or {}, kind)
        (fresh / INDEX).write_bytes(msgspec.json.format(msgspec.json.encode(index)))
        for path in fresh.iterdir():
            to_disk(path)
        take_place(fresh, folder)
    except BaseException:  # also when interrupted: nothing half is left behind
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def take_place(fresh: Path, folder: Path) -> None:
    """A checkpoint beside a folder becomes it; an older one there is replaced, other files are not."""
    folder = folder.absolute()
    old = _beside(folder, "old")
    if folder.exists():
        if not (folder / INDEX).is_file() and any(folder.iterdir()):
            raise UsageError(f"{shown(str(folder))}: holds other files; give a folder of its own for a checkpoint")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def part_state(model: EChat, part: str) -> dict[str, Tensor]:
    """A part's weights by name. A tied output table is left out: it is the embedding."""
    module = getattr(model, part)
    return lm_state(module) if part == "lm" else dict(module.state_dict())


def lm_state(lm: Any) -> dict[str, Tensor]:
    """A language model's weights by name; where two names are one weight, the first of them."""
    left = doubles(lm)
    return {name: value for name, value in lm.state_dict().items() if name not in left}


def index(folder: Path) -> Index:
    """What a checkpoint says of itself. Raises DataError for a folder that is none."""
    folder = _present(folder)
    path = folder / INDEX
    if not path.is_file():
        raise DataError(f"{shown(str(folder))}: not a checkpoint: it has no {INDEX}")
    try:
        found = msgspec.json.decode(read_plain(path, 1 << 20), type=Index)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{shown(str(path))}: not a checkpoint's index: {error}") from None
    if found.format != FORMAT:
        raise DataError(f"{shown(str(path))}: format {found.format}, but this version of overtone reads {FORMAT}")
    if strange := sorted(found.parts.keys() - set(PARTS)):
        raise DataError(
            f"{shown(str(path))}: tells of a part {shown(strange[0][:40])!r}{suggest(strange[0], PARTS)} (a model has "
            f"{', '.join(PARTS)})"
        )
    return found


def config(folder: Path) -> Config:
    """The configuration a checkpoint was made with."""
    return convert(index(folder).config, Config, f"{shown(str(folder))}/{INDEX}")


def load(
    folder: Path,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    check: bool = True,
    lm: str = "",
) -> tuple[EChat, Config]:
    """The model of a checkpoint and its configuration. An encoder or a language model that it does not hold comes from
    where the configuration says.

    `check`: compare each file with its SHA-256. `lm`: the packaged weights that a delta needs, where their package is
    not installed. Raises DataError for a part that comes from nowhere and a file that is missing, cut short or changed.
    """
    found = index(folder)
    made = config(folder)
    sources = {"encoder": made.model.encoder.weights or made.model.encoder.source, "lm": made.model.lm.source}
    for part in PARTS:
        if part not in found.parts and sources.get(part, "random") == "random":
            raise DataError(f"{shown(str(folder))}: holds no {part!r}, whose weights come from nowhere else")
    model = EChat(
        made.model,
        open_encoder(made.model.encoder, empty="encoder" in found.parts),
        _hollow(found.lm, made, folder) if "lm" in found.parts else open_lm(made.model.lm),
    )
    load_parts(model, folder, found.parts, check=check, lm=lm)
    narrow(model, dtype)
    return model.to(device).eval(), made


def load_parts(model: EChat, folder: Path, parts: Iterable[str] = PARTS, *, check: bool = True, lm: str = "") -> None:
    """Fill these parts of a model from a checkpoint, as a stage does that starts from another's."""
    found = index(folder)
    folder = _present(folder)
    for part in parts:
        if part not in found.parts:
            raise DataError(
                f"{shown(str(folder))}: holds no {part!r}{suggest(part, found.parts)} (it has {', '.join(found.parts)})"
            )
        where = folder / Path(found.parts[part].file).name
        state = _whole(_read(where, found.parts[part], check), found.parts[part], folder, where, lm)
        module = getattr(model, part)
        device = next(module.parameters()).device
        spare = doubles(module)
        if both := spare & state.keys():
            raise DataError(f"{shown(str(where))}: does not fit the configured model: {min(both)} is tied there")
        fill(module, {name: value.to(device) for name, value in state.items()}, str(where), spare)


def _hollow(kind: dict[str, Any], made: Config, folder: Path) -> Any:
    """The language model that a checkpoint's weights are of, with random ones."""
    where = f"{shown(str(folder))}/{INDEX}"
    try:
        lm = rebuild(kind)
    except ValueError as error:
        raise DataError(f"{where}: tells of no language model that can be built here: {error}") from None
    if table_size(lm) != (made.model.lm.hidden, made.model.lm.vocab):
        raise DataError(f"{where}: tells of a language model of other sizes than its configuration")
    return lm


def _write(folder: Path, part: str, state: dict[str, Tensor], dtype: torch.dtype | None, kept: Kept | None) -> Part:
    path = folder / f"{part}.safetensors"
    tensors = kept.tensors if kept else {name: value.detach().to(dtype or value.dtype) for name, value in state.items()}
    save_file({name: value.to("cpu").contiguous() for name, value in tensors.items()}, path)
    size = sum(value.numel() for value in state.values())
    form, base = (kept.form, kept.base) if kept else ("", "")
    return Part(path.name, sha256(path), path.stat().st_size, size, form, base)


def _whole(state: dict[str, Tensor], part: Part, folder: Path, where: Path, given: str) -> dict[str, Tensor]:
    """A part's weights, of whatever form. A delta needs the language model that the configuration names."""
    if not part.form:
        return state
    base: dict[str, Tensor] = {}
    if part.form == compact.DELTA:
        lm = config(folder).model.lm
        lm = msgspec.structs.replace(lm, weights=given or lm.weights)
        base = lm_state(open_lm(lm))
        if compact.fingerprint(base) != part.base:
            raise DataError(
                f"{shown(str(where))}: a change of other weights than those of {shown(lm.source)!r} here; install the "
                "package or the model that it was made with"
            )
    return compact.whole(part.form, state, base, str(where))


def _read(path: Path, part: Part, check: bool) -> dict[str, Tensor]:
    again = "copy the checkpoint again, or go back to the one before it"
    try:
        there = path.is_file()
    except OSError as error:  # a name that no file can have
        raise DataError(f"{shown(str(path))[:200]}: {error.strerror}; {again}") from None
    if not there:
        raise DataError(f"{shown(str(path))}: missing from its checkpoint; {again}")
    if path.stat().st_size != part.bytes:
        raise DataError(f"{shown(str(path))}: {path.stat().st_size} bytes instead of {part.bytes}; {again}")
    if check and sha256(path) != part.sha256:
        raise DataError(f"{shown(str(path))}: changed since it was written (another SHA-256); {again}")
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise DataError(f"{shown(str(path))}: not a safetensors file ({error}); {again}") from None


def _beside(folder: Path, what: str) -> Path:
    return folder.with_name(f".{folder.name}.{what}")


def _present(folder: Path) -> Path:
    """The folder, or the one it was about to replace when saving was killed between the two renames."""
    old = _beside(folder.absolute(), "old")
    return old if not folder.exists() and old.is_dir() else folder
