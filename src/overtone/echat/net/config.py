"""The configuration of a model and its training, read from a preset or a TOML file.

Sizes that follow from it, such as the positions of a clip in the language model, are computed here too, without torch.
"""

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

PARTS = ("encoder", "adapter", "speech", "lm")  # the parts of a model and of its checkpoint
PRESETS = Path(__file__).parent / "presets"
RATE = 16_000  # sample rate of all clips
SHORTEST = 3_200  # samples (0.2 s); shorter clips are padded with silence
LIMIT = 1 << 20  # maximum bytes of a configuration file


class EncoderConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The speech encoder.

    `source` is `random`, `package` (Moonshine tiny from moonshine-voice), `moonshine-base` (no Python package has it:
    give `weights`), or a Hugging Face folder or name. `weights` is a safetensors file with the same state or, for
    Moonshine, the folder with its `encoder_model.onnx`.
    """

    kind: Literal["whisper", "moonshine", "small"]
    dim: int
    layers: int
    heads: int
    ffn: int
    source: str = "random"
    weights: str = ""
    mels: int = 80  # whisper and small
    longest: float = 30.0  # seconds; Whisper's maximum
    taps: tuple[int, ...] = ()  # the adapter also gets a clip's mean and spread after these numbers of layers

    @property
    def beside(self) -> int:
        """The number of additional channels that the adapter gets: a clip's mean and spread after each layer in
        `taps`."""
        return 2 * self.dim * len(self.taps)


class AdapterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Three causal convolutions (strides 1, 2, 2), then transformer layers, then a linear map to the LM's width."""

    dim: int
    ffn: int
    layers: int = 4
    heads: int = 4
    dropout: float = 0.1
    level: bool = False  # scale its outputs to the magnitude of the LM's embeddings
    voice: int = 0  # additional outputs before the others that describe the whole clip; needs the encoder's taps


class LoraConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Small matrices that are trained beside the frozen layers of a language model, scaled by alpha / rank."""

    rank: int
    alpha: float


class LMConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The language model.

    `source` is `smollm2` (its package), `random` (with the sizes below), or a Hugging Face folder or name. For the
    latter, `hidden` and `vocab` must match the model and `context` must not exceed its own; everything else comes from
    the model, including whether input and output share a table. `weights` is a GGUF file or a folder that contains it.
    With `lora`, the model of the source stays frozen, and a checkpoint stores only what is trained beside it.
    """

    source: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int  # rows of its embedding table; text ids are below it
    family: Literal["llama", "qwen2"] = "llama"
    theta: float = 10_000.0  # of its rotary positions
    context: int = 8_192
    tied: bool = True  # one table for input and output
    weights: str = ""
    tokenizer: str = ""  # `bytes`, or if `source` has none: `smollm2`, a folder or name
    lora: LoraConfig | None = None


class SpeechConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The speech tokens: their source, the number of codes, and how many follow six text tokens in streaming."""

    codes: int
    tokens: str = "units2"
    block: int = 18  # as published for 25 tokens per second; longer tokens need fewer


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The four parts of the model."""

    encoder: EncoderConfig
    adapter: AdapterConfig
    lm: LMConfig
    speech: SpeechConfig


class Share(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of speech in the understanding tasks of all stages.

    `datasets` are file-name patterns of its datasets; () stands for all that no other share names. `stand_in` names the
    synthetic datasets that replace recordings of people in the arm without people.
    """

    name: str
    share: float
    datasets: tuple[str, ...] = ()
    stand_in: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"shares: {self.name} must be above 0 and at most 1, not {self.share:g}")
        if self.stand_in and not self.datasets:
            raise ValueError(f"shares: {self.name} has stand_in, but no datasets that they replace")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A complete configuration. `stage` has the raw `[stage.N]` tables, which `stages.stages` reads."""

    name: str
    model: ModelConfig
    about: str = ""
    save_minutes: float = 5.0  # between intermediate checkpoints
    dtype: Literal["float32", "float16"] = "float32"  # number type of a finished stage's weights
    shares: tuple[Share, ...] = ()  # of the speech in understanding tasks; a share without data goes to the others
    stage: dict[str, Any] = {}


T = TypeVar("T")


def names() -> list[str]:
    """Return the names of the presets."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def read(name: str) -> Config:
    """Read a preset by name, or a TOML file by path. `like = "mini"` in a file inherits that preset's keys.

    Raises UsageError with the invalid key.
    """
    path = _path(name)
    return convert({"name": path.stem, **_table(name)}, Config, shown(str(path)))


def _path(name: str) -> Path:
    return user_path(name) if "/" in name or name.endswith(".toml") else PRESETS / f"{name}.toml"


def _table(name: str) -> dict[str, Any]:
    """Return a file's table, merged over the table of the preset that it inherits from."""
    path = _path(name)
    if not path.is_file():
        known = names()
        raise UsageError(
            f"unknown preset {shown(name)!r}{suggest(name, known)}; known: {', '.join(known)}, "
            "or your own file that ends in .toml"
        )
    try:
        table = tomllib.loads(read_plain(path, LIMIT).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{shown(str(path))}: not a TOML file: {error}") from None
    base = table.pop("like", None)
    if base is None:
        return table
    if base not in names():
        raise UsageError(
            f"{shown(str(path))}: like = {shown(str(base))!r} is not a preset{suggest(str(base), names())}"
        )
    return _over(_table(base), table)


def _over(base: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """Merge `table` over `base`, recursively."""
    both = {
        key: _over(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
        for key, value in table.items()
    }
    return {**base, **both}


def convert(table: object, kind: type[T], where: str) -> T:
    """Convert a table to the Struct `kind`.

    Raises UsageError; for an unknown key, it suggests the nearest known one.
    """
    for at, key, known in _unknown_keys(table, kind, ""):
        raise UsageError(f"{where}: unknown key {at}{shown(key)!r}{suggest(key, known)}; known: {', '.join(known)}")
    try:
        made = msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from None
    if isinstance(made, Config):
        _check(made.model, where)
    return made


def _unknown_keys(table: object, kind: Any, at: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each unknown key of a Struct with its path and the known keys."""
    if not (isinstance(kind, type) and issubclass(kind, Struct) and isinstance(table, dict)):
        return
    hints = get_type_hints(kind)
    for key, value in table.items():
        if key in hints:
            yield from _unknown_keys(value, hints[key], f"{at}{key}.")
        else:
            yield at, str(key), sorted(hints)


def _check(model: ModelConfig, where: str) -> None:
    """Raise UsageError for impossible sizes, before anything is loaded."""
    parts: tuple[tuple[str, Struct], ...] = (
        ("encoder", model.encoder),
        ("adapter", model.adapter),
        ("lm", model.lm),
        ("speech", model.speech),
    )
    for name, part in parts:
        for field in part.__struct_fields__:
            value = getattr(part, field)
            least = 0 if field == "voice" else 1
            if isinstance(value, int) and not isinstance(value, bool) and value < least:
                raise UsageError(f"{where}: model.{name}.{field} must be at least {least}, not {value}")
    for name, width, heads in (
        ("encoder", model.encoder.dim, model.encoder.heads),
        ("adapter", model.adapter.dim, model.adapter.heads),
        ("lm", model.lm.hidden, model.lm.heads),
        ("lm", model.lm.heads, model.lm.kv_heads),
    ):
        if width % heads:
            raise UsageError(f"{where}: model.{name}: {width} is not divisible by {heads} heads")
    for tap in model.encoder.taps:
        if not 0 <= tap < model.encoder.layers:
            raise UsageError(f"{where}: model.encoder.taps: {tap} is outside 0 to {model.encoder.layers - 1}")
    if model.adapter.voice and not model.encoder.taps:
        raise UsageError(f"{where}: model.adapter.voice describes a clip by model.encoder.taps; give both or neither")
    if not 0 < model.encoder.longest < math.inf:
        raise UsageError(f"{where}: model.encoder.longest must be a number above 0, not {model.encoder.longest}")
    if (lora := model.lm.lora) is not None:
        if lora.rank < 1 or not 0 < lora.alpha < math.inf:
            raise UsageError(f"{where}: model.lm.lora: rank must be at least 1, and alpha above 0")
        if model.lm.source == "random":
            raise UsageError(
                f"{where}: model.lm.lora: a random language model cannot be opened again; set model.lm.source to "
                "smollm2 or a folder, or remove lora"
            )
    if not 0 <= model.adapter.dropout < 1:
        raise UsageError(f"{where}: model.adapter.dropout must be at least 0 and below 1")


def frames(encoder: EncoderConfig, samples: int) -> int:
    """Return the number of encoder states of a clip, given its samples at 16 kHz."""
    return int(frames_of(encoder.kind, max(samples, SHORTEST)))


HOP = {"small": 320, "whisper": 320, "moonshine": 384}  # samples per state: the product of the strides below


def frames_of(kind: str, samples: Any) -> Any:
    """Return the number of encoder states of clips, given an int or a tensor of at least SHORTEST samples."""
    if kind == "moonshine":  # three convolutions without padding: kernels 127, 7, 3; strides 64, 3, 2
        return (((samples - 127) // 64 + 1 - 7) // 3 + 1 - 3) // 2 + 1
    return (samples // 160 - 1) // 2 + 1  # a frame every 10 ms, then one convolution of stride 2


def adapter_length(n: Any) -> Any:
    """Return the number of adapter outputs for n states (int or tensor). The adapter's strides are 1, 2, 2."""
    return ((n + 1) // 2 + 1) // 2


def positions(model: ModelConfig, samples: int) -> int:
    """Return the number of language model positions of a clip, without its begin and end marks."""
    return int(adapter_length(frames(model.encoder, samples))) + model.adapter.voice
