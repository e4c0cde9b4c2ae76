"""Speak the queries of a set in parallel processes and send them through the gates.

A query that fails is spoken again by the next speaker; if it fails again, it is left out. Finished chunks are stored,
so a killed build resumes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from overtone.build.recipes import VERSION as RECIPES
from overtone.echat.making.clip_plan import clip_of
from overtone.echat.making.compose import HEARD, PARTS, Exchange
from overtone.echat.making.sound import Heard, Plain, Samples16, as_heard, hear, make
from overtone.embedded import INSTALL, present
from overtone.errors import UsageError
from overtone.paths import write_whole
from overtone.pool import Progress, spread

VERDICTS, FOLDER = "verdicts.jsonl", "pieces"
TAKES = 2  # speakers that try a query before it is left out
CUE_SHARE = 0.06  # share of train queries whose cue is measured against a twin; in other parts all queries are measured
CHUNK = 48  # clips per chunk: at most this many are lost per process if a build is killed

T = TypeVar("T")


class Verdict(Struct, frozen=True):
    """The gates' verdict on a bundle of queries: the take that is in the set, or the reason why none is."""

    id: str
    keys: tuple[str, ...]
    take: int
    kept: bool
    heard: tuple[Heard, ...] = ()


def bundled(exchanges: Iterable[Exchange]) -> list[list[Exchange]]:
    """Group queries that must have the same speaker.

    In the test parts, a bundle has all deliveries of a query; in train, an exchange and its follow-ups. Bundles with
    the same words are adjacent, so their speech is analysed once. Train is by far the largest part and comes last, so
    the other parts of a stopped build are complete.
    """
    bundles: dict[str, list[Exchange]] = {}
    for x in exchanges:
        name = x.first or x.key if x.part == "train" or x.part in HEARD else f"{x.part}/{x.group}"
        bundles.setdefault(name, []).append(x)
    order = {part: at for at, part in enumerate(sorted(PARTS, key=lambda part: part == "train"))}
    return sorted(bundles.values(), key=lambda b: (order[b[0].part], b[0].group, b[0].sex, b[0].key))


class SpokenClips:
    """The spoken clips of a build by exchange key. A file holds the clips of one chunk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._at: dict[str, tuple[Path, int, int]] = {}

    def add(self, chunk: Chunk) -> None:
        """Register the clips of a finished chunk."""
        at = 0
        for key, n in chunk.lengths:
            self._at[key] = (self.folder / f"{chunk.name}.i16", at, n)
            at += n

    def __contains__(self, key: str) -> bool:
        return key in self._at

    def clip(self, key: str) -> Samples16:
        """Read the clip of an exchange."""
        path, at, n = self._at[key]
        return np.fromfile(path, "<i2", n, offset=2 * at)

    def remove(self) -> None:
        """Delete all chunk files."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Chunk(Struct, frozen=True):
    """A file of clips, with their keys and lengths and the gates' verdicts."""

    name: str
    lengths: tuple[tuple[str, int], ...]
    verdicts: tuple[Verdict, ...]


class _Task(Struct, frozen=True):
    name: str
    bundles: tuple[tuple[Exchange, ...], ...]
    known: tuple[Verdict | None, ...]
    folder: str
    seed: int
    gates: bool


def speak(
    out: Path, bundles: Sequence[Sequence[Exchange]], seed: int, gates: bool, jobs: int, tell: Progress
) -> tuple[list[Verdict], SpokenClips, int]:
    """Speak all queries and, with gates, check them. Chunks of an earlier build are reused.

    Return the verdicts, the clips, and the number of new clips.
    """
    before = {v.id: v for v in lines(out / VERDICTS, Verdict)}
    ids = [bundle_id(bundle, seed) for bundle in bundles]
    if gates and any(one not in before for one in ids) and not present("moonshine_voice"):
        raise UsageError(
            "the gates need the offline recogniser, and not every query has a verdict yet: "
            f"run '{INSTALL}', or give --no-gates"
        )
    folder = out / FOLDER
    clips = SpokenClips(folder)
    verdicts: dict[str, Verdict] = {}
    tasks: list[_Task] = []
    for some in _chunks(list(zip(ids, bundles, strict=True))):
        name = chunk_name([one for one, _ in some], before, gates)[:16]
        stored = _stored_chunk(folder / f"{name}.json")
        if stored is not None:
            clips.add(stored)
            verdicts |= {v.id: v for v in stored.verdicts}
            continue
        known = tuple(before.get(one) for one, _ in some)
        tasks.append(_Task(name, tuple(tuple(b) for _, b in some), known, str(folder), seed, gates))
    done = sum(len(b) for one, b in zip(ids, bundles, strict=True) if one in verdicts)
    total = sum(map(len, bundles))
    made = 0
    folder.mkdir(exist_ok=True)
    with (out / VERDICTS if gates else Path(os.devnull)).open("ab") as store:
        for chunk in spread(_work, tasks, jobs):
            clips.add(chunk)
            for v in chunk.verdicts:
                if v.id not in before:
                    store.write(msgspec.json.encode(v) + b"\n")
            store.flush()
            verdicts |= {v.id: v for v in chunk.verdicts}
            made += len(chunk.lengths)
            done += sum(len(v.keys) for v in chunk.verdicts)
            tell("queries spoken" + (" and checked" if gates else ""), done, total)
    return [verdicts[one] for one in ids], clips, made


def chunk_name(ids: Sequence[str], before: Mapping[str, Verdict], gates: bool) -> str:
    """Return a name that identifies the audio of some bundles.

    With gates, the name depends only on the bundles' ids. Without gates, it also depends on the existing verdicts,
    which then apply.
    """
    parts = [(one, before[one].take, before[one].kept) if one in before and not gates else one for one in ids]
    return hashlib.sha256(repr((gates, parts)).encode()).hexdigest()


def bundle_id(bundle: Sequence[Exchange], seed: int) -> str:
    """Return a hash of a bundle's first take. It changes with any text, cue or parameter.

    It depends on the repr of Clip. Renaming that class or its fields invalidates all stored verdicts.
    """
    clips = [repr(clip_of(x, seed)) for x in bundle]
    return hashlib.sha256("\n".join((RECIPES, *clips)).encode()).hexdigest()[:16]


def _chunks(items: Sequence[tuple[str, Sequence[Exchange]]]) -> Iterator[list[tuple[str, Sequence[Exchange]]]]:
    some: list[tuple[str, Sequence[Exchange]]] = []
    size = 0
    for item in items:
        if some and item[1][0].part != some[0][1][0].part:  # one part per chunk: other parts may be finished on resume
            yield some
            some, size = [], 0
        some.append(item)
        size += len(item[1])
        if size >= CHUNK:
            yield some
            some, size = [], 0
    if some:
        yield some


def _work(task: _Task) -> Chunk:
    """Speak, check and write the queries of a few bundles. Runs in a worker process."""
    plain: Plain = {}
    sounds: list[tuple[str, Samples16]] = []
    verdicts = []
    for bundle, known in zip(task.bundles, task.known, strict=True):
        words = {x.question for x in bundle}
        for held in [held for held in plain if held[1] not in words]:
            del plain[held]  # analysed speech is large
        verdict, made = _bundle(bundle, known, task.seed, task.gates, plain)
        verdicts.append(verdict)
        sounds += [(x.key, sound) for x, sound in zip(bundle, made, strict=True)] if verdict.kept else []
    folder = Path(task.folder)
    chunk = Chunk(task.name, tuple((key, len(x)) for key, x in sounds), tuple(verdicts))
    write_whole(folder / f"{task.name}.i16", b"".join(x.astype("<i2").tobytes() for _, x in sounds))
    write_whole(folder / f"{task.name}.json", msgspec.json.encode(chunk))
    return chunk


def _bundle(
    bundle: Sequence[Exchange], known: Verdict | None, seed: int, gates: bool, plain: Plain
) -> tuple[Verdict, list[Samples16]]:
    if known is not None or not gates:
        verdict = known or Verdict(bundle_id(bundle, seed), tuple(x.key for x in bundle), 0, True)
        clips = [clip_of(x, seed, verdict.take) for x in bundle] if verdict.kept else []
        return verdict, [as_heard(make(clip, plain)) for clip in clips]
    name = bundle_id(bundle, seed)
    for take in range(TAKES):
        clips = [clip_of(x, seed, take) for x in bundle]
        made = [make(clip, plain) for clip in clips]
        heard = []
        for clip, x, sound in zip(clips, bundle, made, strict=True):
            measured = clip.cues and (x.part != "train" or _share(x.key) < CUE_SHARE)
            heard.append(hear(clip, sound, make(clip.without_last(), plain) if measured else None))
            if heard[-1].problems:
                break
        kept = not any(h.problems for h in heard)
        if kept:
            break
    verdict = Verdict(name, tuple(x.key for x in bundle), take, kept, tuple(heard))
    return verdict, [as_heard(x) for x in made] if kept else []


def _share(key: str) -> float:
    return int.from_bytes(hashlib.sha256(f"cue/{key}".encode()).digest()[:4], "big") / 2**32


def _stored_chunk(path: Path) -> Chunk | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Chunk)
    except (OSError, msgspec.DecodeError):
        return None


def lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Yield the rows of a file that grows line by line. Incomplete lines of a killed build are skipped."""
    if not path.is_file():
        return
    decoder = msgspec.json.Decoder(kind)
    data = path.read_bytes()
    for line in data.splitlines():
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError:
            continue
    if data and not data.endswith(b"\n"):
        with path.open("ab") as store:
            store.write(b"\n")
