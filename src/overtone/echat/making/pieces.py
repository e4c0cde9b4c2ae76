"""The sounds of a set on their way: queries spoken by any number of processes, heard by the gates, spoken once more by
the next speaker where they fail, left out where they still do. What is finished is kept, so a killed build goes on."""

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

from overtone.build.pool import Tell, spread
from overtone.build.recipes import VERSION as RECIPES
from overtone.echat.making.compose import HEARD, PARTS, Exchange
from overtone.echat.making.sound import Heard, Plain, Samples16, as_heard, hear, make
from overtone.echat.making.takes import clip_of
from overtone.embedded import INSTALL, present
from overtone.errors import UsageError
from overtone.paths import write_whole

VERDICTS, FOLDER = "verdicts.jsonl", "pieces"
TAKES = 2  # by how many speakers a query is tried before it is left out
CUE_SHARE = 0.06  # of train queries whose cue is measured against a twin; of the other parts all are
CHUNK = 48  # clips made in one go: what a killed build loses, per process

T = TypeVar("T")


class Verdict(Struct, frozen=True):
    """What the gates said of queries that belong together: which take is in the set, or why none is."""

    id: str
    keys: tuple[str, ...]
    take: int
    kept: bool
    heard: tuple[Heard, ...] = ()


def bundled(exchanges: Iterable[Exchange]) -> list[list[Exchange]]:
    """Queries that must have one speaker together: of the tests the ways of a query, of train an exchange and what
    follows it. Bundles of the same words stand side by side: their speech is taken apart once. Train, by far the
    largest part, comes last: of a build that was stopped the others are whole."""
    found: dict[str, list[Exchange]] = {}
    for x in exchanges:
        name = x.first or x.key if x.part == "train" or x.part in HEARD else f"{x.part}/{x.group}"
        found.setdefault(name, []).append(x)
    order = {part: at for at, part in enumerate(sorted(PARTS, key=lambda part: part == "train"))}
    return sorted(found.values(), key=lambda b: (order[b[0].part], b[0].group, b[0].sex, b[0].key))


class Pieces:
    """Sounds as they were made: files of several clips, each known by its exchanges."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._at: dict[str, tuple[Path, int, int]] = {}

    def add(self, piece: Piece) -> None:
        at = 0
        for key, n in piece.lengths:
            self._at[key] = (self.folder / f"{piece.name}.i16", at, n)
            at += n

    def __contains__(self, key: str) -> bool:
        return key in self._at

    def clip(self, key: str) -> Samples16:
        path, at, n = self._at[key]
        return np.fromfile(path, "<i2", n, offset=2 * at)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Piece(Struct, frozen=True):
    """One file of sounds, and what was said of them."""

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
    out: Path, bundles: Sequence[Sequence[Exchange]], seed: int, gates: bool, jobs: int, tell: Tell
) -> tuple[list[Verdict], Pieces, int]:
    """Every query spoken and, with gates, heard; made are only those that no earlier build made."""
    before = {v.id: v for v in lines(out / VERDICTS, Verdict)}
    ids = [bundle_id(bundle, seed) for bundle in bundles]
    if gates and any(one not in before for one in ids) and not present("moonshine_voice"):
        raise UsageError(
            "the gates need the offline recogniser, and not every query has a verdict yet: "
            f"run '{INSTALL}', or give --no-gates"
        )
    folder = out / FOLDER
    pieces = Pieces(folder)
    verdicts: dict[str, Verdict] = {}
    tasks: list[_Task] = []
    for some in _chunks(list(zip(ids, bundles, strict=True))):
        name = named([one for one, _ in some], before, gates)[:16]
        there = _piece(folder / f"{name}.json")
        if there is not None:
            pieces.add(there)
            verdicts |= {v.id: v for v in there.verdicts}
            continue
        known = tuple(before.get(one) for one, _ in some)
        tasks.append(_Task(name, tuple(tuple(b) for _, b in some), known, str(folder), seed, gates))
    done = sum(len(b) for one, b in zip(ids, bundles, strict=True) if one in verdicts)
    total = sum(map(len, bundles))
    made = 0
    folder.mkdir(exist_ok=True)
    with (out / VERDICTS if gates else Path(os.devnull)).open("ab") as store:
        for piece in spread(_work, tasks, jobs):
            pieces.add(piece)
            for v in piece.verdicts:
                if v.id not in before:
                    store.write(msgspec.json.encode(v) + b"\n")
            store.flush()
            verdicts |= {v.id: v for v in piece.verdicts}
            made += len(piece.lengths)
            done += sum(len(v.keys) for v in piece.verdicts)
            tell("queries spoken" + (" and heard" if gates else ""), done, total)
    return [verdicts[one] for one in ids], pieces, made


def named(ids: Sequence[str], before: Mapping[str, Verdict], gates: bool) -> str:
    """A name for some bundles as they come to sound. With gates they are heard until there is a verdict; without, those
    that have one keep to it, and the others are taken as they are."""
    told = [(one, before[one].take, before[one].kept) if one in before and not gates else one for one in ids]
    return hashlib.sha256(repr((gates, told)).encode()).hexdigest()


def bundle_id(bundle: Sequence[Exchange], seed: int) -> str:
    """A name for queries as they are spoken at first: another text, cue or number is another name."""
    clips = [repr(clip_of(x, seed)) for x in bundle]
    return hashlib.sha256("\n".join((RECIPES, *clips)).encode()).hexdigest()[:16]


def _chunks(items: Sequence[tuple[str, Sequence[Exchange]]]) -> Iterator[list[tuple[str, Sequence[Exchange]]]]:
    some: list[tuple[str, Sequence[Exchange]]] = []
    size = 0
    for item in items:
        if some and item[1][0].part != some[0][1][0].part:  # of a part alone: others may be done when it is resumed
            yield some
            some, size = [], 0
        some.append(item)
        size += len(item[1])
        if size >= CHUNK:
            yield some
            some, size = [], 0
    if some:
        yield some


def _work(task: _Task) -> Piece:
    """Make, hear and write the queries of a few bundles. Runs in a worker process."""
    plain: Plain = {}
    sounds: list[tuple[str, Samples16]] = []
    verdicts = []
    for bundle, known in zip(task.bundles, task.known, strict=True):
        words = {x.question for x in bundle}
        for held in [held for held in plain if held[1] not in words]:
            del plain[held]  # what is taken apart is large
        verdict, made = _bundle(bundle, known, task.seed, task.gates, plain)
        verdicts.append(verdict)
        sounds += [(x.key, sound) for x, sound in zip(bundle, made, strict=True)] if verdict.kept else []
    folder = Path(task.folder)
    piece = Piece(task.name, tuple((key, len(x)) for key, x in sounds), tuple(verdicts))
    write_whole(folder / f"{task.name}.i16", b"".join(x.astype("<i2").tobytes() for _, x in sounds))
    write_whole(folder / f"{task.name}.json", msgspec.json.encode(piece))
    return piece


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


def _piece(path: Path) -> Piece | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Piece)
    except (OSError, msgspec.DecodeError):
        return None


def lines(path: Path, kind: type[T]) -> Iterator[T]:
    """What a file that grows line by line holds; a line that a killed build left unfinished is made again."""
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
