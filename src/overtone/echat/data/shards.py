"""EChat-200K's tar shards: per key the members `.txt .wav .task .extra .lang .speaker .emotion .gender .duration`.

Audio is 16-bit WAV at 16 kHz. Writing is deterministic; reading treats the file as untrusted.
"""

from __future__ import annotations

import functools
import io
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from overtone.echat.data.exchange_records import Record, to_raw
from overtone.echat.data.labels import tag
from overtone.errors import DataError
from overtone.paths import shown

TEXTS = ("txt", "task", "lang", "speaker", "emotion", "gender", "duration")
_MEMBER_LIMIT = 100_000_000  # bytes
_BLOCK = 512
_RATE = 16_000
_SOUND = re.compile(r"wav(_[1-9]\d{0,2})?")  # the suffix of an audio member, which is also its key in a record


def write(path: Path, records: Iterable[tuple[Record, list[tuple[str, bytes]]]]) -> None:
    """Write one shard atomically: records with their audio as (suffix, WAV bytes)."""

    def members() -> Iterator[tuple[str, bytes]]:
        used: set[str] = set()
        for record, wavs in records:
            raw = to_raw(record)
            own = dict(wavs).get(".wav", b"")
            known = record.labels.known()
            texts = {
                "txt": record.txt,
                "task": record.task,
                "lang": str(record.rest.get("lang", "")),
                "speaker": record.speaker,
                "emotion": tag(known["emotion"]) if "emotion" in known else "",
                "gender": tag(known["gender"]) if "gender" in known else "",
                "duration": f"{max(len(own) - 44, 0) / 2 / _RATE:.3f}" if own else "",
            }
            # Other fields of a record are stored in its extra, so that nothing is lost.
            rest = {
                k: v for k, v in raw.items() if k not in ("key", "txt", "task", "extra") and not _SOUND.fullmatch(k)
            }
            extra = {**raw["extra"], **({"_rest": rest} if rest else {})}
            key = _safe(record.key, path, used)
            yield f"{key}.txt", texts.pop("txt").encode()
            yield from ((f"{key}{end}", data) for end, data in wavs)
            yield from ((f"{key}.{name}", text.encode()) for name, text in texts.items() if text)
            yield f"{key}.extra", msgspec.json.encode(extra)

    _write(path, members())


def write_sounds(path: Path, sounds: Iterable[tuple[str, list[tuple[str, bytes]]]]) -> None:
    """Write a tar with audio only: keys with (suffix, WAV bytes)."""
    used: set[str] = set()
    named = ((_safe(key, path, used), wavs) for key, wavs in sounds)
    _write(path, ((f"{key}{end}", data) for key, wavs in named for end, data in wavs))


def read(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each key's record as a raw object, with its position. Raises DataError."""
    key, members, begins = "", dict[str, bytes](), 0
    used: set[str] = set()
    for name, data, at in _members(path):
        stem, _, end = name.rpartition(".")
        if not stem:
            raise DataError(f"{shown(str(path))} at byte {at}: member {shown(name)!r} is not KEY.KIND; rename it")
        if stem != key:
            if members:
                yield _raw(path, key, members, begins)
            key, members, begins = stem, {}, at
            if key in used:
                raise DataError(
                    f"{shown(str(path))} at byte {at}: duplicate key {shown(key)!r}, or its members are not "
                    "consecutive; rebuild the shard"
                )
            used.add(key)
        if end in members:
            raise DataError(f"{shown(str(path))} at byte {at}: duplicate member {shown(name)}; rebuild the shard")
        members[end] = data
    if members:
        yield _raw(path, key, members, begins)


def member(path: Path, name: str) -> bytes:
    """Read one member of a shard. Raises DataError."""
    stat = path.stat() if path.is_file() else None
    place = _index(str(path), (stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat else ()).get(name)
    if place is None:
        raise DataError(f"{shown(str(path))}: no member {shown(name)!r}; rebuild the shard")
    if place[1] > _MEMBER_LIMIT:
        raise DataError(f"{shown(str(path))}: {shown(name)} has {place[1]} bytes, above the limit {_MEMBER_LIMIT}")
    with path.open("rb") as file:
        file.seek(place[0])
        return file.read(place[1])


@functools.lru_cache(maxsize=16)
def _index(path: str, state: tuple[int, ...]) -> dict[str, tuple[int, int]]:
    """Return the offset and size of each member. `state` invalidates the cache if the shard changes."""
    members: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(path, "r:") as tar:
            for info in tar:
                if info.name in members:
                    raise DataError(f"{shown(path)}: duplicate member {shown(info.name)}; rebuild the tar")
                if info.isreg():
                    members[info.name] = info.offset_data, info.size
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{shown(path)}: not a tar, or incomplete ({error}); copy it again") from None
    return members


def _members(path: Path) -> Iterator[tuple[str, bytes, int]]:
    """Yield name, bytes and offset of each member. Audio is not read (empty bytes)."""
    at = 0
    try:
        with tarfile.open(path, "r:") as tar:
            for info in tar:
                at = info.offset
                where = f"{shown(str(path))} at byte {at}: member {shown(info.name)!r}"
                if info.isdir():
                    continue
                if not info.isreg():
                    raise DataError(f"{where} is not a regular file; rebuild the shard without links")
                parts = PurePosixPath(info.name)
                if parts.is_absolute() or ".." in parts.parts or "\\" in info.name or "\0" in info.name:
                    raise DataError(f"{where} leaves its folder; do not trust this file")
                if info.size > _MEMBER_LIMIT:
                    raise DataError(f"{where} has {info.size} bytes, above the limit {_MEMBER_LIMIT}")
                if info.offset_data + info.size > os.stat(path).st_size:  # noqa: PTH116
                    raise tarfile.ReadError("unexpected end of data")
                if _SOUND.fullmatch(info.name.rpartition(".")[2]):
                    yield info.name, b"", at
                    continue
                file = tar.extractfile(info)
                yield info.name, file.read() if file else b"", at
            ended = _ended(path, tar.offset)
        if not ended:
            raise tarfile.ReadError("the end marker is missing")
    except FileNotFoundError:
        raise DataError(f"{shown(str(path))}: no such shard; check the list that names it") from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{shown(str(path))}: incomplete or damaged after byte {at} ({error}); copy it again") from None


def _ended(path: Path, offset: int) -> bool:
    """Return whether a tar's final empty blocks exist. A file truncated between two members lacks them."""
    with path.open("rb") as file:
        file.seek(max(offset - _BLOCK, 0))
        return any(file.read(_BLOCK) == bytes(_BLOCK) for _ in range(3))


def _raw(path: Path, key: str, members: dict[str, bytes], at: int) -> tuple[dict[str, Any], str]:
    where = f"{shown(str(path))} at byte {at} ({shown(key)})"
    try:
        text = {end: members[end].decode("utf-8").strip() if end != "txt" else members[end].decode("utf-8")
                for end in TEXTS if end in members}  # fmt: skip
        extra = msgspec.json.decode(members.get("extra", b"{}") or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{where}: unreadable text: {error}; rebuild the shard") from None
    if not isinstance(extra, dict):
        raise DataError(f"{where}: .extra is not an object; rebuild the shard")
    rest = extra.pop("_rest", {})
    if not isinstance(rest, dict):
        raise DataError(f"{where}: `_rest` in .extra is not an object; rebuild the shard")
    for name, mine in (("emotion", "q_emotion"), ("gender", "gender"), ("speaker", "speaker")):
        if text.get(name) and mine not in extra:
            extra[mine] = text[name]
    if text.get("lang"):
        rest.setdefault("lang", text["lang"])
    wavs = {end: f"{key}.{end}" for end in members if _SOUND.fullmatch(end)}
    return {**rest, "key": key, "txt": text.get("txt", ""), **wavs, "task": text.get("task", ""), "extra": extra}, where


def _safe(key: str, path: Path, used: set[str]) -> str:
    """Return the key if it is a valid and unused member name. Raises DataError."""
    if not key or any(c in key for c in "/\\\0\n") or key.startswith(".") or len(key.encode()) > 180:
        raise DataError(f"{shown(str(path))}: {shown(key)!r} is not a valid key; use a short one without slashes")
    if key in used:
        raise DataError(f"{shown(str(path))}: duplicate key {shown(key)!r}; give each record its own")
    used.add(key)
    return key


def _write(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
            for name, data in members:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        part.replace(path)
    except BaseException:  # including interrupts: leave no partial file
        part.unlink(missing_ok=True)
        raise
