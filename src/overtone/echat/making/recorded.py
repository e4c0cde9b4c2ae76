"""What the gates said of the set we build, kept in the package: the same queries in the same takes are the same sounds,
so nobody has to hear them again. Another text, seed or recipe is another set, and is heard.

    python -m overtone.echat.making.recorded OUT    # keep what the build in OUT has heard
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overtone.echat.making.compose import Exchange
from overtone.echat.making.pieces import VERDICTS, Verdict, bundle_id, bundled, lines
from overtone.paths import write_whole

FILE = Path(__file__).with_name("verdicts.json.gz")


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


_Bundles = list[tuple[str, list[Exchange]]]


def _parts(exchanges: Sequence[Exchange], seed: int) -> Iterator[tuple[str, _Bundles]]:
    found: dict[str, _Bundles] = {}
    for bundle in bundled(exchanges):
        found.setdefault(bundle[0].part, []).append((bundle_id(bundle, seed), bundle))
    yield from found.items()


def _name(bundles: _Bundles) -> str:
    return hashlib.sha256("".join(name for name, _ in bundles).encode()).hexdigest()


if __name__ == "__main__":
    from overtone.echat.making.make import EXCHANGES, read_exchanges

    folder = Path(sys.argv[1])
    head, composed = read_exchanges(folder / EXCHANGES)
    for name, (heard, count) in keep(folder / VERDICTS, composed, head.seed).items():
        print(f"{name:<7} {heard:>6} of {count}")
