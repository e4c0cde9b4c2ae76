"""Verdicts of the default set, stored in the package.

The same words with the same parameters give the same audio, so a user's build can reuse these results. Another text,
seed or recipe gives another set, for which they are ignored.

    python -m overtone.echat.making.packaged_results OUT    # store the results of the build in OUT
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
from overtone.echat.making.spoken_queries import VERDICTS, Verdict, bundle_id, bundled, lines
from overtone.paths import write_whole

PACKAGED_VERDICTS = Path(__file__).with_name("verdicts.json.gz")


class Part(Struct, frozen=True):
    """The verdicts of one part of a set.

    `of` is a hash of the part's bundles. The verdicts are in the bundles' order, without ids and keys, and may cover
    only the first bundles.
    """

    of: str
    verdicts: tuple[Verdict, ...]


def recall(store: Path, exchanges: Sequence[Exchange], seed: int, file: Path | None = None) -> int:
    """Add the packaged verdicts that `store` lacks. Return the number added."""
    file = file or PACKAGED_VERDICTS
    if not file.is_file():
        return 0
    kept = msgspec.json.decode(gzip.decompress(file.read_bytes()), type=dict[str, Part])
    existing = {v.id for v in lines(store, Verdict)}
    added = [
        replace(verdict, id=name, keys=tuple(x.key for x in bundle))
        for part, bundles in _parts(exchanges, seed)
        if part in kept and kept[part].of == _name(bundles)
        for (name, bundle), verdict in zip(bundles, kept[part].verdicts, strict=False)
        if name not in existing
    ]
    if added:
        with store.open("ab") as file_of_lines:
            file_of_lines.write(b"".join(msgspec.json.encode(v) + b"\n" for v in added))
    return len(added)


def keep(store: Path, exchanges: Sequence[Exchange], seed: int, file: Path | None = None) -> dict[str, tuple[int, int]]:
    """Store the verdicts of every part up to the first missing one.

    Return the number of stored verdicts and of bundles, by part.
    """
    verdicts = {v.id: v for v in lines(store, Verdict)}
    kept, counts = {}, {}
    for part, bundles in _parts(exchanges, seed):
        heard = itertools.takewhile(lambda v: v is not None, (verdicts.get(name) for name, _ in bundles))
        kept[part] = Part(_name(bundles), tuple(replace(v, id="", keys=()) for v in heard if v))
        counts[part] = (len(kept[part].verdicts), len(bundles))
    write_whole(file or PACKAGED_VERDICTS, gzip.compress(msgspec.json.encode(kept), 9, mtime=0))
    return counts


_Bundles = list[tuple[str, list[Exchange]]]


def _parts(exchanges: Sequence[Exchange], seed: int) -> Iterator[tuple[str, _Bundles]]:
    parts: dict[str, _Bundles] = {}
    for bundle in bundled(exchanges):
        parts.setdefault(bundle[0].part, []).append((bundle_id(bundle, seed), bundle))
    yield from parts.items()


def _name(bundles: _Bundles) -> str:
    return hashlib.sha256("".join(name for name, _ in bundles).encode()).hexdigest()


if __name__ == "__main__":
    from overtone.echat.making.set_identity import EXCHANGES, read_exchanges

    folder = Path(sys.argv[1])
    head, composed = read_exchanges(folder / EXCHANGES)
    for name, (heard, count) in keep(folder / VERDICTS, composed, head.seed).items():
        print(f"{name:<7} {heard:>6} of {count}")
