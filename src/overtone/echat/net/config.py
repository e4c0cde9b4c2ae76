"""What a model is made of and how it is trained, as plain values in one TOML file: a preset's name or a path. What
follows from them (how many positions a clip takes in the language model) is computed here too, without torch."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.paths import read_plain, shown, user_path
from overtone.spec import suggest

PARTS = ("encoder", "adapter", "speech", "lm")  # of the model, as its checkpoint keeps them
PRESETS = Path(__file__).parent / "presets"
RATE = 16_000  # of every clip the model hears
SHORTEST = 3_200  # samples (0.2 s); a shorter clip is heard as one of this length, the rest silent
LIMIT = 1 << 20  # bytes of a configuration file


class EncoderConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The speech encoder. `source`: `random`, `package` (Moonshine tiny from moonshine-voice), or a Hugging Face folder
    or name. `weights`: a safetensors file with the same state, for a machine that has neither."""

    kind: Literal["whisper", "moonshine", "small"]
    dim: int
    layers: int
    heads: int
    ffn: int
    source: str = "random"
    weights: str = ""
    mels: int = 80  # whisper and small
    longest: float = 30.0  # seconds; whisper has positions for no more
    taps: tuple[int, ...] = ()  # the adapter hears a clip's mean and spread after so many layers too

    @property
    def beside(self) -> int:
        """Channels of what the adapter hears besides the last states."""
        return 2 * self.dim * len(self.taps)


class AdapterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Three causal convolutions (strides 1, 2, 2), then transformer layers, then a linear map to the LM's width."""

    dim: int
    ffn: int
    layers: int = 4
    heads: int = 4
    dropout: float = 0.1
    level: bool = False  # bring its outputs to the size of the LM's embeddings


class LMConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The language model. `source`: `smollm2` (its package), `random` (the sizes below), or a Hugging Face folder or
    name. Of one of these `hidden` and `vocab` must be its own and `context` no more than it has; all else is taken from
    it, also whether one table is input and output. `weights` is a GGUF file or a folder made from it."""

    source: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int  # rows of its embedding table: text ids lie below
    family: Literal["llama", "qwen2"] = "llama"
    theta: float = 10_000.0  # of its rotary positions
    context: int = 8_192
    tied: bool = True  # one table for input and output
    weights: str = ""
    tokenizer: str = ""  # `bytes`, or where `source` brings none: `smollm2`, a folder or name


class SpeechConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The speech tokens: where they come from, and how many codes there are."""

    codes: int
    tokens: str = "units"


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The four parts of the picture."""

    encoder: EncoderConfig
    adapter: AdapterConfig
    lm: LMConfig
    speech: SpeechConfig


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole configuration. `stage` holds the `[stage.N]` tables as they are written: `stages.stages` reads them."""

    name: str
    model: ModelConfig
    about: str = ""
    save_minutes: float = 5.0  # between checkpoints under way
    stage: dict[str, Any] = {}


T = TypeVar("T")


def names() -> list[str]:
    """The presets."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def read(name: str) -> Config:
    """The preset of that name, or the TOML file at that path; `like = "mini"` in it: that preset but for what it says.
    Raises UsageError with the key that is wrong."""
    path = _path(name)
    return convert({"name": path.stem, **_table(name)}, Config, shown(str(path)))


def _path(name: str) -> Path:
    return user_path(name) if "/" in name or name.endswith(".toml") else PRESETS / f"{name}.toml"


def _table(name: str) -> dict[str, Any]:
    """What a file says, over what the preset says that it is like."""
    path = _path(name)
    if not path.is_file():
        known = names()
        raise UsageError(
            f"there is no preset {shown(name)!r}{suggest(name, known)} (presets: {', '.join(known)}; "
            "a file of your own ends in .toml)"
        )
    try:
        table = tomllib.loads(read_plain(path, LIMIT).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown(str(path))}: not a TOML file: {error}") from None
    base = table.pop("like", None)
    if base is None:
        return table
    if base not in names():
        raise UsageError(f"{shown(str(path))}: like = {shown(str(base))!r} is no preset{suggest(str(base), names())}")
    return _over(_table(base), table)


def _over(base: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `table` in their place, tables in tables alike."""
    both = {
        key: _over(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
        for key, value in table.items()
    }
    return {**base, **both}


def convert(table: object, kind: type[T], where: str) -> T:
    """A table as the Struct `kind`. Raises UsageError; an unknown key is told with the nearest known one."""
    for at, key, known in _strangers(table, kind, ""):
        raise UsageError(f"{where}: unknown key {at}{shown(key)!r}{suggest(key, known)} (known: {', '.join(known)})")
    try:
        made = msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None
    if isinstance(made, Config):
        _check(made.model, where)
    return made


def _strangers(table: object, kind: Any, at: str) -> Iterator[tuple[str, str, list[str]]]:
    """Keys that a Struct does not have: where, the key, and those it does have."""
    if not (isinstance(kind, type) and issubclass(kind, Struct) and isinstance(table, dict)):
        return
    hints = get_type_hints(kind)
    for key, value in table.items():
        if key in hints:
            yield from _strangers(value, hints[key], f"{at}{key}.")
        else:
            yield at, str(key), sorted(hints)


def _check(model: ModelConfig, where: str) -> None:
    """Sizes that cannot be built, found before anything is loaded."""
    parts: tuple[tuple[str, Struct], ...] = (
        ("encoder", model.encoder),
        ("adapter", model.adapter),
        ("lm", model.lm),
        ("speech", model.speech),
    )
    for name, part in parts:
        for field in part.__struct_fields__:
            value = getattr(part, field)
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise UsageError(f"{where}: model.{name}.{field} must be at least 1, not {value}")
    for name, width, heads in (
        ("encoder", model.encoder.dim, model.encoder.heads),
        ("adapter", model.adapter.dim, model.adapter.heads),
        ("lm", model.lm.hidden, model.lm.heads),
        ("lm", model.lm.heads, model.lm.kv_heads),
    ):
        if width % heads:
            raise UsageError(f"{where}: model.{name}: {width} cannot be divided among {heads} heads")
    for tap in model.encoder.taps:
        if not 0 <= tap < model.encoder.layers:
            raise UsageError(
                f"{where}: model.encoder.taps: {tap} is not among its layers, 0 to {model.encoder.layers - 1}"
            )
    if not 0 < model.encoder.longest < math.inf:
        raise UsageError(f"{where}: model.encoder.longest must be a number above 0, not {model.encoder.longest}")
    if not 0 <= model.adapter.dropout < 1:
        raise UsageError(f"{where}: model.adapter.dropout must be at least 0 and below 1")


def frames(encoder: EncoderConfig, samples: int) -> int:
    """How many states the encoder makes of a clip of so many samples at 16 kHz."""
    return int(frames_of(encoder.kind, max(samples, SHORTEST)))


HOP = {"small": 320, "whisper": 320, "moonshine": 384}  # samples of one state more: the strides below, multiplied


def frames_of(kind: str, samples: Any) -> Any:
    """The same for an int or a tensor of ints that are not too short."""
    if kind == "moonshine":  # three convolutions without padding: kernels 127, 7, 3; strides 64, 3, 2
        return (((samples - 127) // 64 + 1 - 7) // 3 + 1 - 3) // 2 + 1
    return (samples // 160 - 1) // 2 + 1  # a frame each 10 ms, then one convolution of stride 2


def adapter_length(n: Any) -> Any:
    """How many vectors the adapter makes of n states (int or tensor): its strides are 1, 2, 2."""
    return ((n + 1) // 2 + 1) // 2


def positions(model: ModelConfig, samples: int) -> int:
    """How many positions of the language model a clip takes, without its begin and end marks."""
    return int(adapter_length(frames(model.encoder, samples)))
