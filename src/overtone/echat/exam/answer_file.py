"""A file with a checkpoint's answers to all test records, which can be scored on another machine.

It has one JSON object per line and is gzipped if its name ends in .gz. The first line is the head; each further line is
the prediction for one record.
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
LIMIT = 1 << 30  # bytes of an unpacked file: several hundred thousand records
ARMS = {  # ablated parts → name of the arm
    (): "full",
    ("understanding",): "no-understanding",
    ("think",): "no-think",
    ("think", "understanding"): "neither",
    ("people",): "no-people",
    ("tuning",): "frozen",
}
MODES = {
    "labels": "each known label of a record, with one prompt per label",
    "words": "the transcript",
    "plain": "a reply without a thought",
    "label": "a reply after a thought in tags",
    "natural": "a reply after a thought in a sentence",
    "told": "a reply to the clip, given a correct thought: perfect hearing",
    "oracle": "a reply to the words as text, given a correct thought: no clip",
    "deaf": "a reply to the words as text only",
    "speech": "a spoken reply to some records",
}
REPLIES = ("plain", "label", "natural", "told", "oracle", "deaf")


class Head(Struct, frozen=True):
    """The model, and the modes in which it was asked."""

    format: int
    arm: str
    seed: int
    modes: tuple[str, ...]
    notes: dict[str, Any] = {}  # the checkpoint's notes: stage, steps, seed, ablated parts
    overtone: str = ""
    seconds: float = 0.0
    tokens: str = "units"  # the speech tokens of its codes
    states: bool = False  # whether the model states what it heard in training, so that records without a mark are new


class Prediction(Struct, frozen=True, omit_defaults=True):
    """A record's reference values and the model's answers."""

    key: str
    part: str
    group: str  # shared by all deliveries of a query; for recordings of people, the speaker
    speaker: str = ""
    kind: str = ""  # the dimensions the exchange is about, joined by +
    question: str = ""
    reply: str = ""  # the reference
    reply_emotion: str = ""
    heard: dict[str, str] = {}  # dimension → label: all labels of the clip
    named: dict[str, str] = {}  # dimension → the model's answer when asked for it
    scored: dict[str, list[float]] = {}  # dimension → log-likelihood of each label, in the order of its inventory
    words: str | None = None
    said: dict[str, str] = {}  # mode of reply → text with its thought
    spoken: str = ""  # text of the spoken reply
    codes: tuple[int, ...] = ()
    cut: tuple[str, ...] = ()  # modes whose text reached the token limit
    mark: str = ""  # what the model heard of the clip in training: one of `overtone.heard.MARKS`, or ""


def write(path: Path, head: Head, rows: Sequence[Prediction]) -> None:
    """Write a file atomically. The same rows give the same bytes."""
    write_packed(path, b"".join(msgspec.json.encode(row) + b"\n" for row in (head, *rows)))


def write_packed(path: Path, data: bytes) -> None:
    """Write bytes, gzipped if the name ends in .gz."""
    write_whole(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read(path: Path) -> tuple[Head, list[Prediction]]:
    """Read the head and the predictions of a file. Raises DataError."""
    with readable(path, "predictions"):
        lines = packed(path).splitlines()
        head = msgspec.json.decode(lines[0] if lines else b"", type=Head)
        rows = [msgspec.json.decode(line, type=Prediction) for line in lines[1:]]
    if head.format != FORMAT:
        where = shown(str(path))
        raise DataError(f"{where}: format {head.format}, but this version of Overtone reads {FORMAT}; create it again")
    return head, rows


def packed(path: Path) -> bytes:
    """Read a file of `write_packed`. Raises DataError if it is too large."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data: bytes = file.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise DataError(f"{shown(str(path))}: more than {LIMIT >> 20} MB of predictions; ask fewer records (--limit)")
    return data


@contextlib.contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Convert errors while reading such a file to DataError."""
    where = shown(str(path))
    try:
        yield
    except OSError as error:
        raise DataError(f"{where}: unreadable: {error.strerror or error}; check the path") from None
    except (msgspec.MsgspecError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not a complete file of {what}: {error}; create it again") from None


def arm_of(notes: dict[str, Any]) -> str:
    """Return the name of a checkpoint's arm (its variant in an ablation), from the parts that its run left out."""
    left = tuple(sorted(map(str, notes.get("ablate", ()))))
    return ARMS.get(left) or f"no-{'-'.join(left)}"
