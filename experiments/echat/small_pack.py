"""Packs made small for the way to another machine: their clips as Ogg Vorbis in slices of a size that can be carried.

    python -m experiments.echat.small_pack pack out/echat/pack/* small  # → small/slice-000.zip …, train.jsonl.gz …
    python -m experiments.echat.small_pack unpack carried/a carried/b data/pack  # there: the same packs again
    python -m experiments.echat.small_pack measure out/echat/pack/seen  # bytes, speed, and what is lost

A slice is a zip file of clips (PART/NUMBER.ogg) with `index.json`. Packing that was stopped goes on where it stood.
Records, and the number of samples of every clip, stay as they are. Needs NumPy, msgspec and soundfile.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import math
import os
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import soundfile
from msgspec import Struct
from numpy.typing import NDArray

from overtone.echat.data.containers import PACK, RATE, Pack, clip_index
from overtone.errors import DataError, OvertoneError, UsageError
from overtone.paths import inside, shown, write_whole
from overtone.pool import spread, workers

INDEX, MANIFEST = "index.json", "small.json"
FORMAT = 1
LEVEL = 0.9  # of soundfile's 0 to 1: about 30 kbit/s. Opus would take a fifth less, and fourteen times as long to write
SLICE_MB = 50.0
_CHUNK = 64  # clips a process takes at once
_OVERHEAD = 256  # bytes of a zip file for a clip, at most
_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


class Clip(Struct, frozen=True, array_like=True):
    """A clip in a slice; `crc` is of the samples it was made from."""

    part: str
    number: int
    samples: int
    crc: int


class Part(Struct, frozen=True):
    """A pack as it was."""

    clips: int
    samples: int
    records: str  # SHA-256 of records.jsonl


class Slice(Struct, frozen=True):
    """A slice as it was written."""

    name: str
    bytes: int
    sha256: str
    clips: int


class Manifest(Struct, frozen=True):
    """All that belongs together; written last."""

    format: int
    parts: dict[str, Part]
    slices: list[Slice]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    pack = verbs.add_parser("pack", help="packs → slices")
    pack.add_argument(
        "packs", metavar="PACK", nargs="+", type=Path, help="folders of packs; a folder's name is its part's"
    )
    pack.add_argument("out", metavar="OUT", type=_folder)
    pack.add_argument(
        "--slice-mb", metavar="MB", type=_size, default=SLICE_MB, help=f"of a slice at most ({SLICE_MB:g})"
    )
    unpack = verbs.add_parser("unpack", help="slices → packs")
    unpack.add_argument("folders", metavar="DIR", nargs="+", type=Path, help="where slices lie, and small.json")
    unpack.add_argument("out", metavar="OUT", type=_folder)
    measured = verbs.add_parser("measure", help="what it costs, on some clips of packs")
    measured.add_argument("packs", metavar="PACK", nargs="+", type=Path)
    measured.add_argument("--count", metavar="N", type=_count, default=100)
    for verb in (pack, unpack):
        verb.add_argument(
            "--jobs", metavar="N", type=_count, default=os.cpu_count() or 1, help="processes (one a core)"
        )
    args = parser.parse_args(argv)
    try:
        if args.verb == "measure":
            measure(args.packs, args.count)
        elif args.verb == "pack":
            made = write(args.packs, args.out, megabytes=args.slice_mb, jobs=args.jobs)
            size, seconds = sum(s.bytes for s in made.slices), sum(p.samples for p in made.parts.values()) / RATE
            print(
                f"{len(made.slices)} slices, {size / 1e6:.1f} MB: {size / max(seconds, 1):.0f} bytes a second of sound"
            )
        else:
            made = read(args.folders, args.out, jobs=args.jobs)
            for name, part in made.parts.items():
                print(f"{args.out / name}: {part.clips} clips, {part.samples / RATE:.0f} s")
    except OvertoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _count(told: str) -> int:
    if not told.isdecimal() or int(told) < 1:
        raise argparse.ArgumentTypeError(f"{told!r} is not a whole number of at least 1")
    return int(told)


def _size(told: str) -> float:
    try:
        size = float(told)
    except ValueError:
        size = 0.0
    if not (math.isfinite(size) and size > 0):
        raise argparse.ArgumentTypeError(f"{told!r} is not a number of megabytes above 0")
    return size


def _folder(told: str) -> Path:
    path = Path(told)
    there = next(one for one in (path, *path.absolute().parents) if one.exists())
    if not there.is_dir():
        raise argparse.ArgumentTypeError(f"{str(there)!r} is a file; give a folder")
    return path


# ── there ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write(packs: Sequence[Path], out: Path, *, megabytes: float = SLICE_MB, jobs: int = 1) -> Manifest:
    """Packs as slices. Slices that a stopped call left are kept when they hold the first of these clips."""
    limit = int(megabytes * 1e6)
    parts = {path.name: Pack(path) for path in packs}
    if len(parts) < len(packs):
        raise UsageError("two packs have the same folder name; rename one, or give them one OUT each")
    for name in parts:
        inside(out, f"{name}.jsonl.gz")
    todo = [(name, number) for name, pack in parts.items() for number in range(len(pack))]
    (out / MANIFEST).unlink(missing_ok=True)
    slices = _begun(out, parts, todo, limit)
    todo = todo[sum(s.clips for s in slices) :]
    tasks = [(str(parts[n].folder), n, [i for _, i in some]) for some in _by(todo) for n in [some[0][0]]]
    some: list[tuple[Clip, bytes]] = []
    size = 0
    with workers(jobs) as pool:
        for rows in pool.map(_encode, tasks) if jobs > 1 else map(_encode, tasks):
            for clip, data in rows:
                if len(data) + 2 * _OVERHEAD > limit:
                    raise UsageError(
                        f"clip {clip.part}/{clip.number} alone has {len(data)} bytes; give a larger --slice-mb"
                    )
                if size + len(data) + 2 * _OVERHEAD > limit:
                    slices.append(_write_slice(out, len(slices), some))
                    some, size = [], 0
                some.append((clip, data))
                size += len(data) + _OVERHEAD
    if some:
        slices.append(_write_slice(out, len(slices), some))
    for old in out.glob("slice-*.zip"):
        if old.name not in {s.name for s in slices}:
            old.unlink()
    told = {}
    for name, pack in parts.items():
        lines = (pack.folder / PACK[0]).read_bytes()
        small = gzip.compress(lines, 9, mtime=0)
        if len(small) > limit:
            raise UsageError(f"{name}: its records alone have {len(small)} bytes; give a larger --slice-mb")
        write_whole(out / f"{name}.jsonl.gz", small)
        told[name] = Part(len(pack), int(pack.offsets[-1]), hashlib.sha256(lines).hexdigest())
    made = Manifest(FORMAT, told, slices)
    write_whole(out / MANIFEST, msgspec.json.format(msgspec.json.encode(made)))
    return made


def _by(todo: Sequence[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """In order, at most so many at once, none of two parts."""
    some: list[tuple[str, int]] = []
    for one in todo:
        if some and (len(some) == _CHUNK or some[0][0] != one[0]):
            yield some
            some = []
        some.append(one)
    if some:
        yield some


def _encode(task: tuple[str, str, list[int]]) -> list[tuple[Clip, bytes]]:
    folder, part, numbers = task
    pack = Pack(Path(folder))
    return [(_clip(part, i, pack.clip(i)), encode(pack.clip(i))) for i in numbers]


def _clip(part: str, number: int, samples: NDArray[np.int16]) -> Clip:
    return Clip(part, number, len(samples), zlib.crc32(samples.astype("<i2").tobytes()))


def encode(samples: NDArray[np.int16]) -> bytes:
    """Samples at 16 kHz as Ogg Vorbis; the same samples give the same bytes."""
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="OGG", subtype="VORBIS", compression_level=LEVEL)
    return _numbered(file.getvalue())


def _numbered(ogg: bytes) -> bytes:
    """Its pages with stream number 0 in place of a random one, and the check sums of that."""
    out, at = bytearray(ogg), 0
    while at < len(out):
        end = at + 27 + out[at + 26] + sum(out[at + 27 : at + 27 + out[at + 26]])
        out[at + 14 : at + 18] = out[at + 22 : at + 26] = bytes(4)
        # Ogg's CRC-32 is zlib's with the bits of every byte, and of the sum, the other way round.
        turned = zlib.crc32(bytes(out[at:end]).translate(_BITS), 0xFFFFFFFF) ^ 0xFFFFFFFF
        out[at + 22 : at + 26] = struct.pack(">I", turned).translate(_BITS)
        at = end
    return bytes(out)


def _write_slice(out: Path, number: int, clips: Sequence[tuple[Clip, bytes]]) -> Slice:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for clip, data in clips:
            archive.writestr(zipfile.ZipInfo(_member(clip)), data)
        index = zipfile.ZipInfo(INDEX)
        archive.writestr(index, msgspec.json.encode([clip for clip, _ in clips]), zipfile.ZIP_DEFLATED)
    path = out / f"slice-{number:03d}.zip"
    write_whole(path, file.getvalue())
    print(f"{path}: {len(clips)} clips, {path.stat().st_size / 1e6:.1f} MB", flush=True)
    return _slice(path, len(clips))


def _slice(path: Path, clips: int) -> Slice:
    with path.open("rb") as file:
        return Slice(path.name, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest(), clips)


def _member(clip: Clip) -> str:
    return f"{clip.part}/{clip.number:06d}.ogg"


def _begun(out: Path, parts: dict[str, Pack], todo: Sequence[tuple[str, int]], limit: int) -> list[Slice]:
    """Slices that hold the first clips of these packs as they are now."""
    found: list[Slice] = []
    at = 0
    while (path := out / f"slice-{len(found):03d}.zip").is_file() and path.stat().st_size <= limit:
        clips = _index(path)
        wanted = [_clip(name, i, parts[name].clip(i)) for name, i in todo[at : at + len(clips)]]
        if clips != wanted or at + len(clips) == len(todo):  # the last may be shorter than it could be
            break
        found.append(_slice(path, len(clips)))
        at += len(clips)
    return found


# ── and back ────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(folders: Sequence[Path], out: Path, *, jobs: int = 1) -> Manifest:
    """The packs of the slices in these folders. Raises DataError with what is missing, cut or foreign; packs in `out`
    stay as they are until the new ones are whole."""
    made = _manifest(folders)
    records = {name: _records(folders, name, part) for name, part in made.parts.items()}
    homes = {name: inside(out, name) for name in made.parts}
    where = {one.name: _found(folders, one.name) for one in made.slices}
    held: dict[str, dict[int, Clip]] = {name: {} for name in made.parts}
    tasks: list[tuple[str, str, list[tuple[Clip, int]]]] = []
    indices = {}
    for one in made.slices:
        path = where[one.name]
        if _slice(path, one.clips) != one:
            raise DataError(f"{shown(str(path))}: cut or changed on its way (another SHA-256); carry it again")
        indices[one.name] = _index(path)
        for clip in indices[one.name]:
            if clip.part not in held or clip.number in held[clip.part]:
                raise DataError(f"{shown(str(path))}: holds {shown(_member(clip))}, which is not of this set, or twice")
            held[clip.part][clip.number] = clip
    starts: dict[str, NDArray[np.int64]] = {}
    for name, part in made.parts.items():
        clips = held[name]
        if sorted(clips) != list(range(part.clips)) or sum(c.samples for c in clips.values()) != part.samples:
            raise DataError(f"{shown(name)}: {len(clips)} clips instead of {part.clips}; pack it again")
        starts[name] = np.cumsum([0, *(clips[i].samples for i in range(part.clips))], dtype=np.int64)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=out) as fresh:
        for name, part in made.parts.items():
            folder = inside(Path(fresh), name)
            folder.mkdir()
            with (folder / PACK[1]).open("wb") as file:
                file.truncate(part.samples * 2)
            np.save(folder / PACK[2], starts[name])
        for one in made.slices:
            rows = [(clip, int(starts[clip.part][clip.number])) for clip in indices[one.name]]
            tasks += [(str(where[one.name]), fresh, rows[i : i + _CHUNK]) for i in range(0, len(rows), _CHUNK)]
        for _ in spread(_decode, tasks, jobs):
            pass
        for name, home in homes.items():
            home.mkdir(exist_ok=True)
            (home / PACK[0]).unlink(missing_ok=True)  # without it a folder is no pack
            for file_name in PACK[1:]:
                (Path(fresh) / name / file_name).replace(home / file_name)
            write_whole(home / PACK[0], records[name])
    return made


def _records(folders: Sequence[Path], name: str, part: Part) -> bytes:
    path = _found(folders, f"{name}.jsonl.gz")
    try:
        lines = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{shown(str(path))}: cannot be read ({error}); carry it again") from None
    if hashlib.sha256(lines).hexdigest() != part.records:
        raise DataError(f"{shown(str(path))}: of another set than {MANIFEST}; carry both again")
    return lines


def _decode(task: tuple[str, str, list[tuple[Clip, int]]]) -> None:
    path, out, rows = task
    with zipfile.ZipFile(path) as archive:
        for clip, start in rows:
            samples, rate = soundfile.read(io.BytesIO(archive.read(_member(clip))), dtype="int16")
            if rate != RATE or samples.shape != (clip.samples,):
                raise DataError(
                    f"{shown(path)}: {shown(_member(clip))} has {samples.shape} samples at {rate} Hz instead of "
                    f"{clip.samples} at {RATE}; use a libsndfile like the one that wrote it"
                )
            with (Path(out) / clip.part / PACK[1]).open("r+b") as file:
                file.seek(2 * start)
                file.write(samples.astype("<i2").tobytes())


def _manifest(folders: Sequence[Path]) -> Manifest:
    path = _found(folders, MANIFEST)
    try:
        made = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.MsgspecError as error:
        raise DataError(f"{shown(str(path))}: cannot be read: {error}; carry it again") from None
    if made.format != FORMAT:
        raise DataError(f"{shown(str(path))}: format {made.format}, but this version reads {FORMAT}; pack it again")
    return made


def _found(folders: Sequence[Path], name: str) -> Path:
    for folder in folders:
        if (folder / name).is_file() and Path(name).name == name:
            return folder / name
    raise DataError(
        f"{shown(name)} is missing: it is in none of {', '.join(shown(str(f)) for f in folders)}; carry it there"
    )


def _index(path: Path) -> list[Clip]:
    try:
        with zipfile.ZipFile(path) as archive:
            return msgspec.json.decode(archive.read(INDEX), type=list[Clip])
    except (zipfile.BadZipFile, KeyError, msgspec.MsgspecError) as error:
        raise DataError(f"{shown(str(path))}: not a slice ({error}); remove it, or carry it again") from None


# ── what it costs ───────────────────────────────────────────────────────────────────────────────────────────────────


def measure(folders: Sequence[Path], count: int) -> None:
    """Bytes and speed on one core, the error in the waves, and word errors of the embedded recogniser."""
    from overtone.embedded.recogniser import transcribe
    from overtone.metrics.normalise import english
    from overtone.metrics.wer import align

    spoken = []
    for folder in folders:
        pack = Pack(folder)
        spoken += [(r.question, np.array(pack.clip(clip_index(r.wav)))) for r in pack.records if r.wav and r.question]
    if not spoken:
        raise DataError("no record of these packs has both a sound and its words; give others")
    spoken = spoken[:: max(1, len(spoken) // count)][:count]
    before = [samples for _, samples in spoken]
    seconds = sum(map(len, before)) / RATE
    began = time.process_time()
    small = [encode(samples) for samples in before]
    encoded = time.process_time()
    after = [soundfile.read(io.BytesIO(data), dtype="int16")[0] for data in small]
    decoded = time.process_time()
    power = [
        (x.astype(float) ** 2).sum() / max(((x.astype(float) - y) ** 2).sum(), 1)
        for x, y in zip(before, after, strict=True)
    ]
    decibels = 10 * np.log10(power)
    print(f"{len(before)} clips, {seconds:.0f} s: {sum(map(len, small)) / seconds:.0f} bytes a second of sound")
    written, read_back = seconds / (encoded - began), seconds / (decoded - encoded)
    print(f"written at {written:.0f} times real time a core, read at {read_back:.0f}")
    print(f"signal to noise: median {np.median(decibels):.1f} dB, least {min(decibels):.1f} dB")
    wrong: dict[str, list[int]] = {}
    for name, sounds in (("before", before), ("after", after)):
        total, wrong[name] = 0, []
        for (question, _), samples in zip(spoken, sounds, strict=True):
            said = transcribe(samples.astype(np.float32) / 32768, RATE)
            found = align(english(question).split(), english(said).split())
            wrong[name].append(found.errors)
            total += found.reference_words
        print(f"word error rate {name}: {sum(wrong[name]) / total:.3f} ({sum(wrong[name])} of {total})")
    change = np.subtract(wrong["after"], wrong["before"])
    print(f"clips with fewer errors after it: {(change < 0).sum()}, with more: {(change > 0).sum()}")


if __name__ == "__main__":
    raise SystemExit(main())
