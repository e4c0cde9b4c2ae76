"""The storage formats of records: raw JSON Lines, tar shards, audio tars with separate lists ("combine"), and packs.

`read` accepts all four. A pack is the format that training reads fast: `records.jsonl`, all clips concatenated as
16-bit samples at 16 kHz in `clips.i16`, and their offsets in `clips.npy`. Reading it needs only NumPy and msgspec.
"""

from __future__ import annotations

import codecs
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.echat.data import shards
from overtone.echat.data.exchange_records import Record, TextRecord, from_raw, text_from_raw, to_raw
from overtone.errors import DataError
from overtone.paths import inside, sha256, shown, write_whole

RATE = 16_000
SHORTEST, LONGEST = 0.2, 200.0  # seconds of a clip that training accepts
COMBINES, COMBINES_ROOT = "combines_list.txt", "combines_tar_root.txt"
PACK = ("records.jsonl", "clips.i16", "clips.npy")
LONGEST_LINE = 16_000_000  # bytes of one record
_LIST_LIMIT = 50_000_000
_LONGEST_NAME = 1000  # characters of a file's path in a list

Sound = NDArray[np.float32]


def read(path: Path) -> Iterator[Record]:
    """Read the records of a raw list, a shard, a list of shards, a combine or a pack, or of a folder with one of them.

    Raises DataError with the file, the position and a remedy.
    """
    path = _entry_file(Path(path))
    if path.name == PACK[0] and (path.parent / PACK[2]).is_file():
        yield from _read_pack(path.parent, len(Pack(path.parent)))
    elif path.suffix == ".tar":
        yield from _read_shard(path)
    elif path.name == COMBINES:
        yield from _read_combine(path)
    elif path.suffix in (".list", ".txt") and not _first(path).startswith(b"{"):
        for name in _lines(path):
            yield from _read_shard(_beside(path, name))
    else:
        yield from _read_raw(path)


def read_text(path: Path) -> Iterator[TextRecord]:
    """Read the text-only rows of a JSON Lines file: `messages`, or `text` with `targets`."""
    return (text_from_raw(raw, where) for raw, where in _objects(path))


def open_audio(record: Record, wav: str = "") -> Sound:
    """Read the query's audio, mono at 16 kHz. `wav` selects other audio of the record, such as an earlier turn."""
    name = wav or record.wav
    if not name:
        raise DataError(f"{shown(record.key)}: the record has no audio; set its `wav`")
    home = Path(record.home)
    if name.startswith("clips.i16#"):
        return _pack(record.home).clip(clip_index(name)).astype(np.float32) * np.float32(2**-15)
    where = f"{shown(record.key)} ({shown(str(home / name))})"
    if home.suffix == ".tar":
        samples, _ = audio.decode(shards.member(home, name), rate=RATE, name=where)
    else:
        samples, _ = audio.read(inside(home, name), rate=RATE, name=where)
    return samples


def write_raw(path: Path, records: Iterable[Record]) -> int:
    """Write a raw list atomically, without audio. Return the number of records."""
    lines = [msgspec.json.encode(to_raw(record)) + b"\n" for record in records]
    write_whole(path, b"".join(lines))
    return len(lines)


def write_shards(folder: Path, records: Iterable[Record], *, per_shard: int = 1000) -> list[Path]:
    """Write tar shards and `shards.list`, which names them. `read` accepts that list or the folder."""
    paths = []
    for number, some in enumerate(_batches(records, per_shard)):
        path = folder / f"shard_{number:06d}.tar"
        shards.write(path, ((record, _wavs(record)) for record in some))
        paths.append(path)
    write_whole(folder / "shards.list", "".join(f"{path.name}\n" for path in paths).encode())
    return paths


def write_combine(folder: Path, records: Iterable[Record], *, per_shard: int = 1000) -> list[Path]:
    """Write a combine: audio as tars, records as lists, and two index files."""
    lists = []
    for number, some in enumerate(_batches(records, per_shard)):
        name = f"combine_{number:06d}"
        changed = [_with_wavs(record, [f"{record.key}{end}" for end, _ in _turn_wavs(record)]) for record in some]
        shards.write_sounds(folder / "tar" / f"{name}.tar", ((record.key, _wavs(record)) for record in some))
        write_raw(folder / "list" / f"{name}.jsonl", changed)
        lists.append(folder / "list" / f"{name}.jsonl")
    write_whole(folder / COMBINES_ROOT, b"tar\n")
    write_whole(folder / COMBINES, "".join(f"list/{path.name}\n" for path in lists).encode())
    return lists


def pack(
    records: Iterable[Record], out: Path, sound: Callable[[Record, str], Sound | NDArray[np.int16]] = open_audio
) -> int:
    """Write a pack. Return the number of records. `sound` returns a record's clip by its `wav`."""
    with PackWriter(out) as writer:
        for record in records:
            writer.add(record, [sound(record, wav) for _, wav in _turn_wavs(record)])
        return writer.count


class ClipWriter:
    """Writes the clips of a pack. An existing pack stays complete until `close` replaces its clips.

    After `close`, the folder has no records, so it is not a pack until the records are written.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._offsets = [0]
        self._made = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        self._part = out / f".{PACK[1]}.part"
        self._clips = self._part.open("wb")

    def add(self, sound: Sound | NDArray[np.int16]) -> str:
        """Append a clip at 16 kHz. Return the name by which its record refers to it."""
        if sound.dtype != np.int16:
            sound = np.clip(np.rint(sound.astype(np.float32) * 32768), -32768, 32767)
        self._clips.write(sound.astype("<i2").tobytes())
        self._offsets.append(self._offsets[-1] + len(sound))
        return f"{PACK[1]}#{len(self._offsets) - 2}"

    def close(self) -> None:
        """Replace the clips of an existing pack."""
        self._clips.close()
        (self.out / PACK[0]).unlink(missing_ok=True)
        self._part.replace(self.out / PACK[1])
        np.save(self.out / PACK[2], np.array(self._offsets, np.int64))

    def drop(self) -> None:
        """Delete an unfinished pack, and the folder if this writer created it."""
        self._clips.close()
        self._part.unlink(missing_ok=True)
        if self._made:
            with suppress(OSError):  # the folder has other files
                self.out.rmdir()


class PackWriter:
    """Writes a pack record by record. `records.jsonl` is written last; without it, a folder is not a pack."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.count = 0
        self._clips = ClipWriter(out)
        self._records = (out / f".{PACK[0]}.part").open("wb")

    def add(self, record: Record, sounds: Iterable[Sound | NDArray[np.int16]]) -> None:
        """Add a record and its clips at 16 kHz: the clips of its earlier turns, oldest first, then the query's clip."""
        names = [self._clips.add(sound) for sound in sounds]
        self._records.write(msgspec.json.encode(to_raw(_with_wavs(record, names))) + b"\n")
        self.count += 1

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._records.close()
        part = self.out / f".{PACK[0]}.part"
        if kind is not None:
            part.unlink(missing_ok=True)
            self._clips.drop()
            return
        self._clips.close()
        part.replace(self.out / PACK[0])
        _pack.cache_clear()


class Pack:
    """An open pack, with its records in memory and its clips memory-mapped."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        for name in PACK:
            if not (self.folder / name).is_file():
                raise DataError(
                    f"{shown(str(folder))}: not a pack: {name} is missing; rebuild it (overtone build echat)"
                )
        try:
            self.offsets: NDArray[np.int64] = np.load(self.folder / PACK[2], allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise DataError(f"{shown(str(self.folder / PACK[2]))}: unreadable: {error}; rebuild the pack") from None
        size = (self.folder / PACK[1]).stat().st_size
        offsets = self.offsets
        if (
            offsets.ndim != 1
            or not len(offsets)
            or offsets[0]
            or (np.diff(offsets) < 0).any()
            or offsets[-1] * 2 != size
        ):
            raise DataError(
                f"{shown(str(self.folder / PACK[1]))}: {size} bytes, but clips.npy expects "
                f"{int(offsets.flat[-1]) * 2 if offsets.size else 0}; copy the pack again"
            )
        # An empty file cannot be mapped.
        self.samples: NDArray[np.int16] = (
            np.memmap(self.folder / PACK[1], "<i2", "r") if size else np.zeros(0, np.int16)
        )

    @functools.cached_property
    def records(self) -> list[Record]:
        """The records, read on first use."""
        return list(_read_pack(self.folder, len(self)))

    def __len__(self) -> int:
        """Return the number of clips."""
        return len(self.offsets) - 1

    def clip(self, index: int) -> NDArray[np.int16]:
        """Return the samples of a clip. Raises DataError."""
        if not 0 <= index < len(self):
            raise DataError(f"{shown(str(self.folder))}: no clip {index}: the pack has {len(self)}; rebuild it")
        return self.samples[self.offsets[index] : self.offsets[index + 1]]

    def seconds(self, index: int) -> float:
        """Return the length of a clip."""
        return float(self.offsets[index + 1] - self.offsets[index]) / RATE


def digests(paths: Iterable[Path]) -> list[str]:
    """Return the SHA-256 of each training file, sorted. For a pack, the hash is that of its `records.jsonl`."""
    lists = [path if path.is_file() else path / PACK[0] for path in paths]
    return sorted(sha256(path) for path in lists if path.is_file())


def clip_index(wav: str) -> int:
    """Return the index of a pack's clip from a record's `wav`. Raises DataError."""
    name, _, number = wav.partition("#")
    if name != PACK[1] or not number.isdecimal():
        raise DataError(f"{shown(wav)!r} is not a clip of a pack; pack the records first (containers.pack)")
    return int(number)


@functools.lru_cache(maxsize=8)
def _pack(folder: str) -> Pack:
    return Pack(Path(folder))


def _entry_file(path: Path) -> Path:
    """Return the file to start reading from, given a file or folder."""
    if not path.is_dir():
        return path
    for name in (PACK[0], COMBINES, "shards.list", "data.list", "train.list"):
        if (path / name).is_file():
            return path / name
    raise DataError(
        f"{shown(str(path))}: no records.jsonl, {COMBINES}, shards.list, data.list or train.list; give the list itself"
    )


def _read_raw(path: Path, home: Path | None = None) -> Iterator[Record]:
    return (from_raw(raw, where, str(home or path.parent)) for raw, where in _objects(path))


def _read_shard(path: Path) -> Iterator[Record]:
    return (from_raw(raw, where, str(path)) for raw, where in shards.read(path))


def _read_combine(path: Path) -> Iterator[Record]:
    roots = _lines(path.parent / COMBINES_ROOT)
    if len(roots) != 1:
        raise DataError(f"{shown(str(path.parent / COMBINES_ROOT))}: {len(roots)} lines; write one: the tars' folder")
    for name in _lines(path):
        listed = _beside(path, name)
        tar = _beside(path, f"{roots[0]}/{listed.stem}.tar")
        if not tar.is_file():
            raise DataError(f"{shown(str(tar))}: missing, although {shown(name)} is listed; copy it there")
        for record in _read_raw(listed, tar):
            # Lists from other sources may have a path in the original folder; in a tar the audio is KEY.wav.
            yield record if "/" not in record.wav else msgspec.structs.replace(record, wav=f"{record.key}.wav")


def _read_pack(folder: Path, clips: int) -> Iterator[Record]:
    for record in _read_raw(folder / PACK[0]):
        try:
            for wav in (record.wav, *(turn.wav for turn in record.history)):
                if wav and clip_index(wav) >= clips:
                    raise DataError(f"{shown(record.key)}: {wav} is outside the {clips} clips; rebuild the pack")
        except DataError as error:
            raise DataError(f"{shown(str(folder / PACK[0]))}: {error}") from None
        yield record


def _objects(path: Path) -> Iterator[tuple[Any, str]]:
    """Yield each line's JSON value and its position."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), b""), start=1):
                where = f"{shown(str(path))} line {number}"
                if len(line) == LONGEST_LINE:
                    raise DataError(f"{where}: longer than {LONGEST_LINE:,} bytes; write one record per line")
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if not line.strip():
                    continue
                try:
                    raw = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    cut = "" if line.endswith(b"\n") else "; the last line may be incomplete: copy the file again"
                    raise DataError(f"{where}: not JSON: {error}{cut or '; correct or remove the line'}") from None
                yield raw, where
    except OSError as error:
        raise DataError(f"{shown(str(path))}: unreadable: {error.strerror}; check the path") from None


def _first(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(200).removeprefix(codecs.BOM_UTF8).lstrip()
    except OSError as error:
        raise DataError(f"{shown(str(path))}: unreadable: {error.strerror}; check the path") from None


def _lines(path: Path) -> list[str]:
    try:
        if path.stat().st_size > _LIST_LIMIT:
            raise DataError(f"{shown(str(path))}: too long for a list of files; give the list itself")
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{shown(str(path))}: unreadable: {error}; check the file") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _beside(path: Path, name: str) -> Path:
    """Return the path of a file named in a list: relative to the list, or absolute for tars on other disks."""
    if name.startswith("{") or len(name) > _LONGEST_NAME:
        raise DataError(f"{shown(str(path))}: {shown(name[:60])}… is not a file name; write one name per line")
    return Path(name) if Path(name).is_absolute() else inside(path.parent, name)


def _batches(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    some: list[Record] = []
    for record in records:
        some.append(record)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _turn_wavs(record: Record) -> list[tuple[str, str]]:
    """Return a (suffix, path) pair for each clip of a record: the clips of earlier turns, then the query's clip.

    The suffix is `.wav_1`, `.wav_2` … for earlier turns and `.wav` for the query.
    """
    turns = [(f".wav_{number}", turn.wav) for number, turn in enumerate(record.history, start=1) if turn.wav]
    return [*turns, (".wav", record.wav)] if record.wav else turns


def _wavs(record: Record) -> list[tuple[str, bytes]]:
    return [(end, audio.encode_wav(open_audio(record, wav), RATE)) for end, wav in _turn_wavs(record)]


def _with_wavs(record: Record, names: list[str]) -> Record:
    """Return the record with new names for its clips, given in the order of `_turn_wavs`. Raises DataError."""
    left = iter(names)
    try:
        turns = tuple(msgspec.structs.replace(t, wav=next(left) if t.wav else "") for t in record.history)
        changed = msgspec.structs.replace(record, history=turns, wav=next(left) if record.wav else "")
    except StopIteration:
        raise DataError(f"{shown(record.key)}: fewer clips than turns with audio; give one for each `wav`") from None
    if next(left, None) is not None:
        raise DataError(f"{shown(record.key)}: more clips than turns with audio; give one for each `wav`")
    return changed
