"""What a checkpoint said to every record of a test, unscored: decoded where a GPU is, scored where there is none.

A file holds one JSON object a line, gzipped where its name ends in .gz: the head first, then a prediction for each
record.
"""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import shown, write_whole

FORMAT = 1
LIMIT = 1 << 30  # bytes of a file, unpacked: some hundred thousand records
ARMS = {  # what an ablated run leaves out → its name
    (): "full",
    ("understanding",): "no-understanding",
    ("think",): "no-think",
    ("think", "understanding"): "neither",
}
MODES = {
    "labels": "each label that is known of a record, asked for by itself",
    "words": "the transcript",
    "plain": "a reply without a thought",
    "label": "a reply after a thought in tags",
    "natural": "a reply after a thought in a sentence",
    "told": "a reply to the clip, the words and labels of the thought given: perfect hearing",
    "oracle": "a reply to the words in writing, the same thought given: no clip at all",
    "deaf": "a reply to the words in writing, and nothing else",
    "speech": "a spoken reply, of some records",
}
REPLIES = ("plain", "label", "natural", "told", "oracle", "deaf")


class Head(Struct, frozen=True):
    """What was asked of which model."""

    format: int
    arm: str
    seed: int
    modes: tuple[str, ...]
    notes: dict[str, Any] = {}  # of the checkpoint: stage, steps, seed, what was left out
    overtone: str = ""
    seconds: float = 0.0
    tokens: str = "units"  # what speaks its codes


class Prediction(Struct, frozen=True, omit_defaults=True):
    """A record's truth, and what the model said of it."""

    key: str
    part: str
    group: str  # the same query in other deliveries; of recordings of people the speaker
    speaker: str = ""
    kind: str = ""  # the dimensions the exchange is about, joined by +
    question: str = ""
    reply: str = ""  # the reference
    reply_emotion: str = ""
    heard: dict[str, str] = {}  # dimension → label: all that is true of the clip
    named: dict[str, str] = {}  # dimension → what was said when asked for it
    scored: dict[str, list[float]] = {}  # dimension → log-likelihood of each label, in the order of its inventory
    words: str | None = None
    said: dict[str, str] = {}  # mode of reply → text with its thought
    spoken: str = ""  # text of the spoken reply
    codes: tuple[int, ...] = ()
    cut: tuple[str, ...] = ()  # modes whose text did not end by itself


def write(path: Path, head: Head, rows: Sequence[Prediction]) -> None:
    """Write a file, whole or not at all; the same rows give the same bytes."""
    write_packed(path, b"".join(msgspec.json.encode(row) + b"\n" for row in (head, *rows)))


def write_packed(path: Path, data: bytes) -> None:
    """Write bytes, gzipped where the name ends in .gz."""
    write_whole(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read(path: Path) -> tuple[Head, list[Prediction]]:
    """The head and the predictions of a file. Raises DataError."""
    with readable(path, "predictions"):
        lines = packed(path).splitlines()
        head = msgspec.json.decode(lines[0] if lines else b"", type=Head)
        rows = [msgspec.json.decode(line, type=Prediction) for line in lines[1:]]
    if head.format != FORMAT:
        where = shown(str(path))
        raise DataError(f"{where}: format {head.format}, but this version of overtone reads {FORMAT}; make it again")
    return head, rows


def packed(path: Path) -> bytes:
    """What `write_packed` wrote. Raises DataError for what is too much to be that."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data: bytes = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        told = f"{shown(str(path))}: more than {LIMIT >> 20} MB of predictions; ask fewer records at once (--limit)"
        raise DataError(told)
    return data


@contextlib.contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Whatever goes wrong in reading such a file, as a DataError that says so."""
    where = shown(str(path))
    try:
        yield
    except OSError as error:
        raise DataError(f"{where}: cannot be read: {error.strerror or error}; check the path") from None
    except (msgspec.MsgspecError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not a whole file of {what}: {error}; make it again") from None


def arm_of(notes: dict[str, Any]) -> str:
    """The name of a checkpoint's arm, from what its run left out."""
    left = tuple(sorted(map(str, notes.get("ablate", ()))))
    return ARMS.get(left) or f"no-{'-'.join(left)}"
