"""Read the weights of Moonshine's speech encoder from its package, de-quantised and with transformers' names.

This module reads ONNX Runtime's own format and ONNX, using only NumPy.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overtone.errors import DataError
from overtone.paths import read_plain, shown

Array = NDArray[np.float32]
Tensors = dict[str, NDArray[Any]]  # of any type
LIMIT = 1 << 28  # maximum bytes of an encoder's file
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 10: np.float16}  # of ONNX tensors


class Node(NamedTuple):
    """One operation of the network."""

    name: str
    inputs: list[str]


def moonshine_state(path: Path) -> dict[str, Array]:
    """Read the encoder's weights from `encoder_model.ort`, `encoder_model.onnx` or their folder.

    Linear layers are stored as 8-bit integers with one scale and zero point each, and are returned as floats. Raises
    DataError for any other file.
    """
    if path.is_dir():
        files = [path / name for name in ("encoder_model.ort", "encoder_model.onnx") if (path / name).is_file()]
        if not files:
            raise DataError(f"{shown(str(path))}: no encoder_model.ort or encoder_model.onnx")
        path = files[0]
    data = read_plain(path, LIMIT)
    try:
        tensors, nodes = _read_ort(data) if data[4:8] == b"ORTM" else _read_onnx(data)
        state = dict(_named(tensors, nodes))
    except (struct.error, KeyError, ValueError, IndexError, StopIteration) as error:
        raise DataError(f"{shown(str(path))}: not a Moonshine encoder ({type(error).__name__}: {error})") from None
    missing = [name for name in ("conv1.weight", "groupnorm.weight", "layer_norm.weight") if name not in state]
    if missing:
        raise DataError(f"{shown(str(path))}: not a Moonshine encoder: {missing[0]} is missing")
    return state


def _named(tensors: Tensors, nodes: list[Node]) -> Iterator[tuple[str, Array]]:
    """Yield weights by name. A matrix without a name in the export is named after the operation that uses it."""
    for name, value in tensors.items():
        if re.fullmatch(r"(conv\d|groupnorm|layer_norm|layers\.\d+\..*)\.(weight|bias)(_add_tensor)?", name):
            yield name.removesuffix("_add_tensor"), value.astype(np.float32)
        elif re.fullmatch(r"conv\d\.weight_quantized", name):
            base = name.removesuffix("_quantized")
            yield base, value.astype(np.float32) * tensors[f"{base}_scale"] + tensors[f"{base}_zero_point"]
    for node in nodes:
        if product := re.fullmatch(r"/(layers\.\d+)/(self_attn|mlp)/(\w+)/MatMul(_quant)?", node.name):
            matrix = next(name for name in node.inputs if name in tensors and tensors[name].ndim == 2)
            base = matrix.removesuffix("_quantized")
            weight: Array = tensors[matrix].astype(np.float32)
            if base != matrix:
                zero: Array = tensors[f"{base}_zero_point"].astype(np.float32)
                scale: Array = tensors[f"{base}_scale"].astype(np.float32)
                weight = (weight - zero) * scale
            layer = "o_proj" if product[3] == "dense" else product[3]
            yield f"{product[1]}.{product[2]}.{layer}.weight", np.ascontiguousarray(weight.T)  # x·W → W·x
        elif node.name in ("/groupnorm/Mul", "/groupnorm/Add"):
            kind = "weight" if node.name.endswith("Mul") else "bias"
            value = next(tensors[name] for name in node.inputs if name in tensors)
            yield f"groupnorm.{kind}", value.astype(np.float32).reshape(-1)


def _array(kind: int, dims: list[int], raw: bytes) -> NDArray[Any]:
    return np.frombuffer(raw, TYPES[kind]).reshape(dims)


# ONNX Runtime's format: FlatBuffers. A table starts with the offset back to the list of its fields' offsets.


class _Table:
    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.fields = at - struct.unpack_from("<i", data, at)[0]

    def _field(self, number: int) -> int:
        """Return the offset of a field's value, or 0 if the table omits it."""
        if 4 + 2 * number >= struct.unpack_from("<H", self.data, self.fields)[0]:
            return 0
        offset = struct.unpack_from("<H", self.data, self.fields + 4 + 2 * number)[0]
        return self.at + offset if offset else 0

    def number(self, field: int) -> int:
        at = self._field(field)
        return int(struct.unpack_from("<i", self.data, at)[0]) if at else 0

    def table(self, field: int) -> _Table:
        return _Table(self.data, _follow(self.data, self._field(field)))

    def raw(self, field: int, width: int = 1) -> bytes:
        """Return a vector of scalars or a string, as bytes."""
        at = self._field(field)
        return _vector(self.data, _follow(self.data, at), width) if at else b""

    def _items(self, field: int) -> list[int]:
        at = self._field(field)
        if not at:
            return []
        start = _follow(self.data, at)
        count = struct.unpack_from("<I", self.data, start)[0]
        return [_follow(self.data, start + 4 + 4 * i) for i in range(count)]

    def tables(self, field: int) -> list[_Table]:
        return [_Table(self.data, at) for at in self._items(field)]

    def texts(self, field: int) -> list[str]:
        return [_vector(self.data, at).decode() for at in self._items(field)]


def _follow(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


def _vector(data: bytes, at: int, width: int = 1) -> bytes:
    count = struct.unpack_from("<I", data, at)[0]
    return data[at + 4 : at + 4 + count * width]


def _read_ort(data: bytes) -> tuple[Tensors, list[Node]]:
    graph = _Table(data, _follow(data, 0)).table(1).table(7)  # session → model → graph
    tensors = {}
    for tensor in graph.tables(0):
        raw, dims = tensor.raw(4), tensor.raw(2, 8)
        if raw and tensor.number(3) in TYPES:
            tensors[tensor.raw(0).decode()] = _array(tensor.number(3), np.frombuffer(dims, np.int64).tolist(), raw)
    return tensors, [Node(node.raw(0).decode(), node.texts(8)) for node in graph.tables(2)]


# ONNX: protocol buffers. A message is a sequence of fields: number and wire type, then the value.


def _message(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield each field's number, its value as an integer, and its value as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
            yield key >> 3, value, b""
            continue
        size, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else _varint(data, at)
        if key & 7 not in (1, 2, 5) or at + size > len(data):
            raise ValueError("invalid message")
        yield key >> 3, 0, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def _read_onnx(data: bytes) -> tuple[Tensors, list[Node]]:
    graph = next(value for number, _, value in _message(data) if number == 7)
    tensors: Tensors = {}
    nodes = []
    for number, _, value in _message(graph):
        if number == 1:
            fields = list(_message(value))
            name = next((text.decode() for n, _, text in fields if n == 3), "")
            nodes.append(Node(name, [text.decode() for n, _, text in fields if n == 1]))
        elif number == 5:
            dims: list[int] = []
            kind, name, raw = 0, "", b""
            for n, integer, text in _message(value):
                if n == 1:
                    dims += _packed(text) if text else [integer]
                elif n == 2:
                    kind = integer
                elif n == 8:
                    name = text.decode()
                elif n in (4, 9):  # floats, or anything as bytes
                    raw = text
                elif n == 5:  # small integers, stored individually
                    raw = np.array(_packed(text) if text else [integer], TYPES[kind]).tobytes()
            if raw and kind in TYPES:
                tensors[name] = _array(kind, dims, raw)
    return tensors, nodes


def _packed(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values
