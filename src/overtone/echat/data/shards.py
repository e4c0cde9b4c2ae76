"""Tar shards as EChat-200K has them: for each key the members `.txt .wav .task .extra .lang .speaker .emotion .gender
.duration`, sounds as 16-bit WAV at 16 kHz. Written the same to the byte each time; read with distrust."""

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

from overtone.echat.data.labels import tag
from overtone.echat.data.records import Record, to_raw
from overtone.errors import DataError
from overtone.paths import shown

TEXTS = ("txt", "task", "lang", "speaker", "emotion", "gender", "duration")
_MEMBER_LIMIT = 100_000_000  # bytes
_BLOCK = 512
_RATE = 16_000
_SOUND = re.compile(r"wav(_[1-9]\d{0,2})?")  # how a sound's member ends, and what a record names it by


def write(path: Path, records: Iterable[tuple[Record, list[tuple[str, bytes]]]]) -> None:
    """Write one shard, whole or not at all: records with their sounds as (how the member ends, WAV bytes)."""

    def members() -> Iterator[tuple[str, bytes]]:
        used: set[str] = set()
        for record, wavs in records:
            raw = to_raw(record)
            own = dict(wavs).get(".wav", b"")
            known = record.labels.known()
            told = {
                "txt": record.txt,
                "task": record.task,
                "lang": str(record.rest.get("lang", "")),
                "speaker": record.speaker,
                "emotion": tag(known["emotion"]) if "emotion" in known else "",
                "gender": tag(known["gender"]) if "gender" in known else "",
                "duration": f"{max(len(own) - 44, 0) / 2 / _RATE:.3f}" if own else "",
            }
            # What a record holds beside these goes with its extra, so that nothing is lost.
            rest = {
                k: v for k, v in raw.items() if k not in ("key", "txt", "task", "extra") and not _SOUND.fullmatch(k)
            }
            extra = {**raw["extra"], **({"_rest": rest} if rest else {})}
            key = _safe(record.key, path, used)
            yield f"{key}.txt", told.pop("txt").encode()
            yield from ((f"{key}{end}", data) for end, data in wavs)
            yield from ((f"{key}.{name}", text.encode()) for name, text in told.items() if text)
            yield f"{key}.extra", msgspec.json.encode(extra)

    _write(path, members())


def write_sounds(path: Path, sounds: Iterable[tuple[str, list[tuple[str, bytes]]]]) -> None:
    """Write a tar of sounds alone: keys with (how the member ends, WAV bytes)."""
    used: set[str] = set()
    named = ((_safe(key, path, used), wavs) for key, wavs in sounds)
    _write(path, ((f"{key}{end}", data) for key, wavs in named for end, data in wavs))


def read(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each key's record as a raw object, and where it stands."""
    key, found, begins = "", dict[str, bytes](), 0
    used: set[str] = set()
    for name, data, at in _members(path):
        stem, _, end = name.rpartition(".")
        if not stem:
            raise DataError(f"{shown(str(path))} at byte {at}: member {shown(name)!r} is not KEY.KIND; rename it")
        if stem != key:
            if found:
                yield _raw(path, key, found, begins)
            key, found, begins = stem, {}, at
            if key in used:
                raise DataError(
                    f"{shown(str(path))} at byte {at}: key {shown(key)!r} is there twice, or its members are not one "
                    "after the other; make the shard again"
                )
            used.add(key)
        if end in found:
            raise DataError(f"{shown(str(path))} at byte {at}: {shown(name)} is there twice; make the shard again")
        found[end] = data
    if found:
        yield _raw(path, key, found, begins)


def member(path: Path, name: str) -> bytes:
    """The bytes of one member of a shard."""
    of = path.stat() if path.is_file() else None
    place = _index(str(path), (of.st_ino, of.st_size, of.st_mtime_ns) if of else ()).get(name)
    if place is None:
        raise DataError(f"{shown(str(path))}: no member {shown(name)!r}; make the shard again")
    if place[1] > _MEMBER_LIMIT:
        told = f"{shown(name)} has {place[1]} bytes, at most {_MEMBER_LIMIT} are read; cut it"
        raise DataError(f"{shown(str(path))}: {told}")
    with path.open("rb") as file:
        file.seek(place[0])
        return file.read(place[1])


@functools.lru_cache(maxsize=16)
def _index(path: str, state: tuple[int, ...]) -> dict[str, tuple[int, int]]:
    """Where each member lies; `state` makes a shard that has changed another one."""
    found: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(path, "r:") as tar:
            for info in tar:
                if info.name in found:
                    raise DataError(f"{shown(path)}: {shown(info.name)} is there twice; make the tar again")
                if info.isreg():
                    found[info.name] = info.offset_data, info.size
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{shown(path)}: not a tar, or cut ({error}); copy it again") from None
    return found


def _members(path: Path) -> Iterator[tuple[str, bytes, int]]:
    """Name, bytes and place of each member; sounds are left where they are (empty bytes)."""
    at = 0
    try:
        with tarfile.open(path, "r:") as tar:
            for info in tar:
                at = info.offset
                where = f"{shown(str(path))} at byte {at}: member {shown(info.name)!r}"
                if info.isdir():
                    continue
                if not info.isreg():
                    raise DataError(f"{where} is no plain file; make the shard again without links")
                parts = PurePosixPath(info.name)
                if parts.is_absolute() or ".." in parts.parts or "\\" in info.name or "\0" in info.name:
                    raise DataError(f"{where} leaves its folder; do not trust this file")
                if info.size > _MEMBER_LIMIT:
                    raise DataError(f"{where} has {info.size} bytes, at most {_MEMBER_LIMIT} are read; cut it")
                if info.offset_data + info.size > os.stat(path).st_size:  # noqa: PTH116
                    raise tarfile.ReadError("unexpected end of data")
                if _SOUND.fullmatch(info.name.rpartition(".")[2]):
                    yield info.name, b"", at
                    continue
                file = tar.extractfile(info)
                yield info.name, file.read() if file else b"", at
            ended = _ended(path, tar.offset)
        if not ended:
            raise tarfile.ReadError("it has no end mark")
    except FileNotFoundError:
        raise DataError(f"{shown(str(path))}: there is no such shard; check the list that names it") from None
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{shown(str(path))}: cut or damaged after byte {at} ({error}); copy it again") from None


def _ended(path: Path, offset: int) -> bool:
    """Whether the two empty blocks that end a tar are there: a file cut between two members has none."""
    with path.open("rb") as file:
        file.seek(max(offset - _BLOCK, 0))
        return any(file.read(_BLOCK) == bytes(_BLOCK) for _ in range(3))


def _raw(path: Path, key: str, found: dict[str, bytes], at: int) -> tuple[dict[str, Any], str]:
    where = f"{shown(str(path))} at byte {at} ({shown(key)})"
    try:
        text = {end: found[end].decode("utf-8").strip() if end != "txt" else found[end].decode("utf-8")
                for end in TEXTS if end in found}  # fmt: skip
        extra = msgspec.json.decode(found.get("extra", b"{}") or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{where}: a text of it cannot be read: {error}; make the shard again") from None
    if not isinstance(extra, dict):
        raise DataError(f"{where}: its .extra is not an object; make the shard again")
    rest = extra.pop("_rest", {})
    if not isinstance(rest, dict):
        raise DataError(f"{where}: `_rest` in its .extra is not an object; make the shard again")
    for name, mine in (("emotion", "q_emotion"), ("gender", "gender"), ("speaker", "speaker")):
        if text.get(name) and mine not in extra:
            extra[mine] = text[name]
    if text.get("lang"):
        rest.setdefault("lang", text["lang"])
    wavs = {end: f"{key}.{end}" for end in found if _SOUND.fullmatch(end)}
    return {**rest, "key": key, "txt": text.get("txt", ""), **wavs, "task": text.get("task", ""), "extra": extra}, where


def _safe(key: str, path: Path, used: set[str]) -> str:
    """A key that can name members, and is not among those `used`."""
    if not key or any(c in key for c in "/\\\0\n") or key.startswith(".") or len(key.encode()) > 180:
        raise DataError(f"{shown(str(path))}: {shown(key)!r} cannot name a member; use a short key without slashes")
    if key in used:
        raise DataError(f"{shown(str(path))}: key {shown(key)!r} is there twice; give each record its own")
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
    except BaseException:  # also when interrupted: nothing half is left behind
        part.unlink(missing_ok=True)
        raise
