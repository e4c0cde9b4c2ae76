"""What runs got right as sums, without a word of what they said: small enough to be kept, enough to be scored from.

A file is one JSON object, gzipped where its name ends in .gz.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from overtone.echat.exam import tallies
from overtone.echat.exam.predictions import Head, Prediction, packed, readable, write_packed
from overtone.echat.exam.tallies import Kind, Measure, Tallies, Tally

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
OWN = "own"  # the reply an arm was trained to give
_AT_ONCE = 2000  # replies


class Sums(Struct, frozen=True):
    """One measure of a run. Of each cluster the sums that are not 0, by their place in its row."""

    part: str
    name: str
    source: str
    kinds: tuple[Kind, ...]
    width: int
    n: int
    chance: dict[str, float]
    by: dict[str, list[tuple[int, float]]]

    def tally(self) -> Tally:
        out = Tally(self.kinds, self.width, self.chance)
        out.n = self.n
        for cluster, cells in self.by.items():
            out.by[cluster] = np.zeros(self.width)
            for at, value in cells:
                out.by[cluster][at] = value
        return out


class Counts(Struct, frozen=True, kw_only=True, tag_field="what", tag="counts"):
    """All measures of one run."""

    format: Literal[1] = 1
    head: Head
    asked: str  # names the records
    parts: dict[str, int]  # part → its records
    embedder: str
    sums: list[Sums]

    def tallies(self) -> Tallies:
        """By measure; those of the reply that the model was trained to give also under OWN."""
        found = {Measure(one.part, one.name, one.source): one.tally() for one in self.sums}
        mine = tallies.own(self.head.modes)
        return found | {replace(key, source=OWN): tally for key, tally in found.items() if key.source == mine}


def count(
    runs: Sequence[tuple[Head, list[Prediction]]], *, listen: bool = False, embed: Embed | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[Counts]:  # fmt: skip
    """Count what every run got right; with `listen` also what is heard in its spoken replies."""
    identity = "given"
    if embed is None:
        from overtone.embedded import embedder

        embed, identity = embedder.embed, embedder.identity()
    meant = sorted({text for _, rows in runs for text in tallies.texts(rows)})
    vectors: dict[str, NDArray[np.float32]] = {}
    for at in range(0, len(meant), _AT_ONCE):
        some = meant[at : at + _AT_ONCE]
        vectors.update(zip(some, embed(some), strict=True))
        say(f"the meaning of {len(vectors)} of {len(meant)} replies")
    out = []
    for head, rows in runs:
        found = tallies.count(rows, vectors, _listener(head.tokens) if listen else None)
        keys = sorted((row.part, row.key) for row in rows)
        asked = hashlib.sha256(msgspec.json.encode(keys)).hexdigest()[:16]
        parts = dict(Counter(row.part for row in rows))
        sums = [_sums(key, found[key]) for key in sorted(found)]
        out.append(Counts(head=head, asked=asked, parts=parts, embedder=identity, sums=sums))
    return out


def _sums(key: Measure, tally: Tally) -> Sums:
    by = {
        cluster: [(int(at), float(row[at])) for at in np.flatnonzero(row)] for cluster, row in sorted(tally.by.items())
    }
    return Sums(key.part, key.name, key.source, tally.kinds, tally.width, tally.n, tally.chance, by)


@functools.cache
def _listener(tokens: str) -> tallies.Listen:
    """Speaks a reply's codes and writes down what the embedded recogniser hears."""
    from overtone.echat.data import think
    from overtone.echat.speech import open_tokens
    from overtone.embedded.recogniser import transcribe

    voice = open_tokens(tokens)

    def listen(row: Prediction) -> str:
        emotion = think.parse(row.spoken).reply_emotion or "neutral"
        return transcribe(*voice.decode(np.array(row.codes, np.int64), emotion))

    return listen


def write(path: Path, counts: Counts) -> None:
    """Write a file, whole or not at all; the same counts give the same bytes."""
    write_packed(path, msgspec.json.encode(counts))


def read(path: Path) -> Counts:
    """The counts in a file. Raises DataError."""
    with readable(path, "counts"):
        return msgspec.json.decode(packed(path), type=Counts)
