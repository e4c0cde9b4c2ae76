"""What the gates said of the set we build and the speech tokens of its replies, kept in the package: the same words
said in the same way are the same sounds, so nobody has to hear or say them again. Another text, seed or recipe is
another set.

    python -m overtone.echat.making.recorded OUT    # keep what the build in OUT has heard and said
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import lzma
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone.build.recipes import VERSION as RECIPES
from overtone.echat.making.compose import Exchange
from overtone.echat.making.pieces import VERDICTS, Verdict, bundle_id, bundled, lines
from overtone.echat.making.spoken import Reply, reply_id
from overtone.paths import write_whole

FILE = Path(__file__).with_name("verdicts.json.gz")
SAID = Path(__file__).with_name("replies.xz")
_COUNTS = struct.Struct("<II")  # of replies, and of all their tokens
_ID = 6  # bytes of a reply's name


class Part(Struct, frozen=True):
    """One part of a set: `of` names its bundles; the verdicts on the first of them, or on all, stand in their order,
    without ids and keys."""

    of: str
    verdicts: tuple[Verdict, ...]


def recall(store: Path, exchanges: Sequence[Exchange], seed: int, file: Path | None = None) -> int:
    """Add to `store` the verdicts that were kept and that it lacks; how many."""
    file = file or FILE
    if not file.is_file():
        return 0
    kept = msgspec.json.decode(gzip.decompress(file.read_bytes()), type=dict[str, Part])
    there = {v.id for v in lines(store, Verdict)}
    found = [
        replace(verdict, id=name, keys=tuple(x.key for x in bundle))
        for part, bundles in _parts(exchanges, seed)
        if part in kept and kept[part].of == _name(bundles)
        for (name, bundle), verdict in zip(bundles, kept[part].verdicts, strict=False)
        if name not in there
    ]
    if found:
        with store.open("ab") as file_of_lines:
            file_of_lines.write(b"".join(msgspec.json.encode(v) + b"\n" for v in found))
    return len(found)


def keep(store: Path, exchanges: Sequence[Exchange], seed: int, file: Path | None = None) -> dict[str, tuple[int, int]]:
    """Keep the verdicts of every part as far as it was heard without a gap: on how many bundles, of how many."""
    said = {v.id: v for v in lines(store, Verdict)}
    kept, told = {}, {}
    for part, bundles in _parts(exchanges, seed):
        heard = itertools.takewhile(lambda v: v is not None, (said.get(name) for name, _ in bundles))
        kept[part] = Part(_name(bundles), tuple(replace(v, id="", keys=()) for v in heard if v))
        told[part] = (len(kept[part].verdicts), len(bundles))
    write_whole(file or FILE, gzip.compress(msgspec.json.encode(kept), 9, mtime=0))
    return told


def keep_said(replies: Sequence[Reply], file: Path | None = None) -> int:
    """Keep the tokens of all these replies, which are of one tokenizer; how many bytes they take."""
    replies = sorted(replies, key=lambda reply: reply.id)
    tokens = np.array([token for reply in replies for token in reply.tokens], "<u2")
    head = f"{RECIPES}\n{replies[0].tokens_of}\n".encode()
    names = b"".join(bytes.fromhex(reply.id) for reply in replies)
    lengths = np.array([len(reply.tokens) for reply in replies], "<u2")
    packed = head + _COUNTS.pack(len(replies), len(tokens)) + names + lengths.tobytes() + tokens.tobytes()
    # two bytes a token: the model of what comes next knows which of the two it is at
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 1, "pb": 1}]
    data = lzma.compress(packed, filters=filters)
    write_whole(file or SAID, data)
    return len(data)


def recall_said(asked: Sequence[tuple[str, str]], tokens_of: str, file: Path | None = None) -> list[Reply]:
    """Of these replies, as (text, emotion), those whose tokens by this tokenizer were kept."""
    file = file or SAID
    if not file.is_file():
        return []
    recipes, of, packed = lzma.decompress(file.read_bytes()).split(b"\n", 2)
    if (recipes.decode(), of.decode()) != (RECIPES, tokens_of):
        return []
    count, total = _COUNTS.unpack_from(packed)
    names = packed[_COUNTS.size : _COUNTS.size + _ID * count]
    lengths = np.frombuffer(packed, "<u2", count, _COUNTS.size + len(names))
    tokens = np.frombuffer(packed, "<u2", total, _COUNTS.size + len(names) + lengths.nbytes)
    ends = np.cumsum(lengths, dtype=np.int64)
    place = {names[_ID * i : _ID * (i + 1)].hex(): i for i in range(count)}
    found = [(one, at) for one in asked if (at := place.get(reply_id(*one))) is not None]
    return [
        Reply(text, emotion, tuple(tokens[ends[at] - lengths[at] : ends[at]].tolist()), tokens_of)
        for (text, emotion), at in found
    ]


_Bundles = list[tuple[str, list[Exchange]]]


def _parts(exchanges: Sequence[Exchange], seed: int) -> Iterator[tuple[str, _Bundles]]:
    found: dict[str, _Bundles] = {}
    for bundle in bundled(exchanges):
        found.setdefault(bundle[0].part, []).append((bundle_id(bundle, seed), bundle))
    yield from found.items()


def _name(bundles: _Bundles) -> str:
    return hashlib.sha256("".join(name for name, _ in bundles).encode()).hexdigest()


if __name__ == "__main__":
    from overtone.echat.making.begin import EXCHANGES, REPLIES, read_exchanges

    folder = Path(sys.argv[1])
    head, composed = read_exchanges(folder / EXCHANGES)
    for name, (heard, count) in keep(folder / VERDICTS, composed, head.seed).items():
        print(f"{name:<7} {heard:>6} of {count}")
    if said := list(lines(folder / REPLIES, Reply)):
        print(f"replies {len(said):>6}: {keep_said(said):,} bytes")
