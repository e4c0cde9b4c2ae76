"""Rewrite a GGUF model file from 4-bit to 8-bit weights, because llama.cpp has no fast kernels for the Q4_1 format.

The values stay those of the 4-bit file up to the rounding of 8 bits. Everything else in the file, such as the
tokenizer, is copied. A library could read GGUF, but only llama.cpp's own tools quantise, and they are not in the wheel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from overtone.errors import DataError

_F32, _Q4_1, _Q8_0 = 0, 3, 8
_BYTES = {_F32: (4, 1), _Q4_1: (20, 32), _Q8_0: (34, 32)}  # bytes of a block and how many values it holds
_SCALAR = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a header value by its type
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32  # of tensors; the value when the header gives none
_ENTRIES = 24  # where the header's entries begin
_FILE_TYPE, _MOSTLY_Q8_0 = b"general.file_type", 7


class _Tensor(NamedTuple):
    name: bytes
    shape: tuple[int, ...]
    kind: int
    start: int  # in the file

    def size(self, kind: int) -> int:
        """Return the number of bytes of this tensor in a format."""
        size, values = _BYTES[kind]
        return int(np.prod(self.shape)) // values * size


def in_8_bits(source: Path) -> Iterator[bytes]:
    """Yield the bytes of a model's file with its Q4_1 tensors as Q8_0. Raises DataError if the file cannot be read."""
    data = source.read_bytes()
    try:
        header, tensors = _read(data)
    except (KeyError, struct.error) as error:
        raise DataError(f"{source}: not a GGUF file that can be rewritten ({error!r})") from error
    described, position = [header], 0
    for tensor in tensors:
        kind = _Q8_0 if tensor.kind == _Q4_1 else tensor.kind
        described.append(struct.pack("<Q", len(tensor.name)) + tensor.name)
        described.append(struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape))
        described.append(struct.pack("<IQ", kind, position))
        position += _aligned(tensor.size(kind))
    yield _padded(b"".join(described))
    for tensor in tensors:
        stored = data[tensor.start : tensor.start + tensor.size(tensor.kind)]
        if tensor.kind == _Q4_1:
            stored = _as_q8_0(_from_q4_1(np.frombuffer(stored, np.uint8).reshape(-1, 20))).tobytes()
        yield _padded(stored)


def read_strings(source: Path, names: Sequence[str]) -> list[list[str]]:
    """Return the lists of strings with these names in a file's header, empty where it has none. Raises DataError."""
    data = source.read_bytes()
    found: dict[str, list[str]] = {}
    try:
        at = _ENTRIES
        for _ in range(_entries(data)):
            name, at = _string(data, at)
            (kind,) = struct.unpack_from("<I", data, at)
            end = _after(data, at + 4, kind)
            if kind == _ARRAY and name.decode() in names:
                found[name.decode()] = _strings(data, at + 4)
            at = end
    except (KeyError, struct.error, UnicodeDecodeError) as error:
        raise DataError(f"{source}: not a GGUF file that can be read ({error!r})") from error
    return [found.get(name, []) for name in names]


def _strings(data: bytes, at: int) -> list[str]:
    of, count = struct.unpack_from("<IQ", data, at)
    at += 12
    values = []
    for _ in range(count if of == _STRING else 0):
        value, at = _string(data, at)
        values.append(value.decode())
    return values


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _padded(data: bytes) -> bytes:
    return data.ljust(_aligned(len(data)), b"\0")


def _read(data: bytes) -> tuple[bytes, list[_Tensor]]:
    """Return the header up to the tensors' descriptions, with the new file type, and the tensors."""
    entries = _entries(data)
    (tensors,) = struct.unpack_from("<Q", data, 8)
    at, file_type = _ENTRIES, 0
    for _ in range(entries):
        name, at = _string(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        if name == _FILE_TYPE:
            file_type = at + 4
        at = _after(data, at + 4, kind)
    header = bytearray(data[:at])
    if file_type:
        struct.pack_into("<I", header, file_type, _MOSTLY_Q8_0)
    described: list[tuple[bytes, tuple[int, ...], int, int]] = []
    for _ in range(tensors):
        name, at = _string(data, at)
        (dimensions,) = struct.unpack_from("<I", data, at)
        *shape, kind, offset = struct.unpack_from(f"<{dimensions}QIQ", data, at + 4)
        described.append((name, tuple(shape), kind, offset))
        at += 4 + 8 * dimensions + 12
    start = _aligned(at)
    return bytes(header), [_Tensor(name, shape, kind, start + offset) for name, shape, kind, offset in described]


def _entries(data: bytes) -> int:
    """Return the number of entries in the header."""
    magic, version, _, entries = struct.unpack_from("<4sIQQ", data)
    if magic != b"GGUF" or version != 3:
        raise KeyError("no GGUF of version 3")
    return int(entries)


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    return data[at + 8 : at + 8 + length], at + 8 + length


def _after(data: bytes, at: int, kind: int) -> int:
    """Return the position after the value of type `kind` that begins at `at`."""
    if kind == _STRING:
        return _string(data, at)[1]
    if kind != _ARRAY:
        return at + _SCALAR[kind]
    of, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if of in _SCALAR:
        return int(at + count * _SCALAR[of])
    for _ in range(count):
        at = _after(data, at, of)
    return at


def _from_q4_1(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the values (n, 32) of blocks (n, 20): a scale, a minimum, and 32 numbers of 4 bits."""
    scale, least = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32).T
    numbers = np.concatenate((blocks[:, 4:] & 15, blocks[:, 4:] >> 4), axis=1)
    values: NDArray[np.float32] = numbers * scale[:, None] + least[:, None]
    return values


def _as_q8_0(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return blocks (n, 34): a scale and 32 numbers of 8 bits."""
    scale = np.abs(values).max(axis=1) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    numbers = np.rint(values * inverse[:, None]).astype(np.int8)
    return np.concatenate((scale.astype("<f2")[:, None].view(np.uint8), numbers.view(np.uint8)), axis=1)
