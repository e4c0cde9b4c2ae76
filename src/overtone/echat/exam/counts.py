"""The results of runs as sums, without any texts: small enough to store, and sufficient for scoring.

A file is one JSON object, gzipped if its name ends in .gz.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from overtone.echat.exam import tallies
from overtone.echat.exam.answer_file import Head, Prediction, packed, readable, write_packed
from overtone.echat.exam.tallies import Kind, Measure, Tallies, Tally
from overtone.heard import COUNTED, MARKS, ROWS, check_level

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
OWN = "own"  # the kind of reply that an arm was trained to give
_AT_ONCE = 2000  # replies


class Sums(Struct, frozen=True):
    """One measure of a run: the non-zero sums of each cluster, by column."""

    part: str
    name: str
    source: str
    kinds: tuple[Kind, ...]
    width: int
    n: int
    chance: dict[str, float]
    by: dict[str, list[tuple[int, float]]]

    def tally(self) -> Tally:
        """Return the sums as a tally."""
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
    asked: str  # identifies the records
    apart: str = ""  # identifies the records that are kept out of the headline; "" for none
    parts: dict[str, int]  # part → number of records
    embedder: str
    sums: list[Sums]

    def tallies(self) -> Tallies:
        """Return the tallies by measure.

        The kind of reply that the model was trained to give is listed twice: under its own source, and under OWN.
        """
        tallied = {Measure(one.part, one.name, one.source): one.tally() for one in self.sums}
        mine = tallies.own_mode(self.head.modes)
        return tallied | {replace(key, source=OWN): tally for key, tally in tallied.items() if key.source == mine}


def count(
    runs: Sequence[tuple[Head, list[Prediction]]], *, listen: bool = False, embed: Embed | None = None,
    heard: str = "", say: Callable[[str], None] = lambda line: None,
) -> list[Counts]:  # fmt: skip
    """Return the counted results of every run. With `listen`, spoken replies are transcribed and counted too.

    Records that the model heard in training form separate parts, such as `test (speaker heard)`, unless `heard` makes
    them count: see `overtone.heard.COUNTED`.
    """
    check_level(heard)
    identity = "given"
    if embed is None:
        from overtone.embedded import embedder

        embed, identity = embedder.embed, embedder.identity()
    distinct = sorted({text for _, rows in runs for text in tallies.texts(rows)})
    vectors: dict[str, NDArray[np.float32]] = {}
    for at in range(0, len(distinct), _AT_ONCE):
        some = distinct[at : at + _AT_ONCE]
        vectors.update(zip(some, embed(some), strict=True))
        say(f"{len(vectors)} of {len(distinct)} replies embedded")
    out = []
    for head, rows in runs:
        asked = _digest((row.part, row.key) for row in rows)
        kept_out = [row for row in rows if row.mark and row.mark not in COUNTED[heard]]
        apart = _digest((row.part, row.key) for row in kept_out) if kept_out else ""
        rows = [replace(row, part=_part(row, heard)) for row in rows]
        for line in _apart_lines(rows, kept_out, head):
            say(line)
        counted = tallies.count(rows, vectors, _listener(head.tokens) if listen else None)
        parts = dict(Counter(row.part for row in rows))
        sums = [_sums(key, counted[key]) for key in sorted(counted)]
        out.append(Counts(head=head, asked=asked, apart=apart, parts=parts, embedder=identity, sums=sums))
    return out


def _digest(keys: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256(msgspec.json.encode(sorted(keys))).hexdigest()[:16]


def _part(row: Prediction, heard: str) -> str:
    """Return the part in which a record is counted."""
    return row.part if not row.mark or row.mark in COUNTED[heard] else f"{row.part} ({ROWS.get(row.mark, row.mark)})"


def _apart_lines(rows: Sequence[Prediction], kept_out: Sequence[Prediction], head: Head) -> Iterator[str]:
    """Yield a line for each part with records that the model heard in training."""
    if head.states and not any(row.mark for row in rows):
        yield f"{head.arm}, seed {head.seed}: the model heard none of these records in training"
    left = Counter(row.part for row in rows)
    for part in dict.fromkeys(row.part for row in kept_out):
        marks = Counter(row.mark for row in kept_out if row.part == part)
        named = ", ".join(f"the {mark} of {marks[mark]}" for mark in MARKS if marks[mark])
        total = left[part] + marks.total()
        what = "no headline: all" if not left[part] else f"{marks.total()} of"
        yield (
            f"{head.arm}, seed {head.seed}, part {part}: {what} {total} records were heard in training ({named}); they "
            "are scored as separate parts, --heard corpus, speaker or clip counts them in the headline"
        )


def _sums(key: Measure, tally: Tally) -> Sums:
    by = {
        cluster: [(int(at), float(row[at])) for at in np.flatnonzero(row)] for cluster, row in sorted(tally.by.items())
    }
    return Sums(key.part, key.name, key.source, tally.kinds, tally.width, tally.n, tally.chance, by)


@functools.cache
def _listener(tokens: str) -> tallies.Listen:
    """Return a function that decodes a reply's codes and transcribes them with the embedded recogniser."""
    from overtone.echat.data import think
    from overtone.echat.speech import open_tokens
    from overtone.embedded.recogniser import transcribe

    voice = open_tokens(tokens)

    def listen(row: Prediction) -> str:
        emotion = think.parse(row.spoken).reply_emotion or "neutral"
        return transcribe(*voice.decode(np.array(row.codes, np.int64), emotion))

    return listen


def write(path: Path, counts: Counts) -> None:
    """Write a file atomically. The same counts give the same bytes."""
    write_packed(path, msgspec.json.encode(counts))


def read(path: Path) -> Counts:
    """Read the counts in a file. Raises DataError."""
    with readable(path, "counts"):
        return msgspec.json.decode(packed(path), type=Counts)
