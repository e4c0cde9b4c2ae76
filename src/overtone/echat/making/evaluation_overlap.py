"""Keep sentences of the evaluation sets out of the training data.

A text is dropped and reported if it shares six consecutive words with an evaluation text or has nearly the same
meaning. The similarities are stored with the set, so each text is embedded once.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.build import aeq_texts, echat_texts
from overtone.build.script import read_collection
from overtone.paths import write_whole

NEAR = 0.9  # cosine similarity at which two sentences count as the same
RUN = 6  # words in a row that no text shares with another set's
LEAST = RUN  # minimum words of a compared sentence; short ones such as "Take your time." are common
KEPT = "nearness.jsonl"

Embed = Callable[[Sequence[str]], NDArray[Any]]


class Shared(Struct, frozen=True):
    """A training text that overlaps with an evaluation text."""

    text: str
    theirs: str
    why: str


class _Near(Struct, frozen=True, array_like=True):
    """The evaluation sentence that is most similar to a training sentence."""

    sentence: str
    cosine: float
    theirs: str


@functools.cache
def theirs() -> tuple[str, ...]:
    """Return all texts of the evaluation sets: those that a model hears or reads, and the reference replies."""
    evaluation: list[str] = []
    whole = read_collection("open")
    for script in (*whole.scripts, *whole.conflicts):
        evaluation += [script.words, *script.reply.values()]
    for dialogue in whole.dialogues:
        evaluation += [*(t.words for t in dialogue.turn), *(t.reply for t in dialogue.turn), dialogue.steady_reply]
    for group in aeq_texts.read():
        evaluation += [group.words, *(v.reply for v in group.variant)]
    for query in echat_texts.read():
        evaluation += [query.words, *(said.reply for said in query.said)]
    return tuple(dict.fromkeys(evaluation))


def split(text: str) -> list[str]:
    """Split a text into sentences."""
    return re.split(r"(?<=[.!?])\s+", text.strip())


def sentences(text: str) -> list[str]:
    """Return a text and its sentences, without those too short to compare."""
    parts = [text, *split(text)]
    return [part for part in dict.fromkeys(parts) if len(part.split()) >= LEAST]


def shared(texts: Iterable[str], embed: Embed | None, folder: Path | None = None) -> list[Shared]:
    """Return the texts that are too similar to the evaluation sets.

    Without an embedder, only words are compared. Similarities are stored in `folder`.
    """
    mine = list(dict.fromkeys(texts))
    runs = {run: text for text in reversed(theirs()) for run in runs_of(text)}
    overlaps: dict[str, Shared] = {}
    for text in mine:
        hit = next((run for run in sorted(runs_of(text)) if run in runs), None)
        if hit:
            overlaps[text] = Shared(text, runs[hit], f"both say {' '.join(hit)!r}")
    if embed is not None:
        near = _nearness(mine, embed, folder)
        for text in mine:
            worst = max((near[s] for s in _own(text)), key=lambda n: n.cosine, default=None)
            if text not in overlaps and worst is not None and worst.cosine >= NEAR:
                overlaps[text] = Shared(text, worst.theirs, f"cosine {worst.cosine:.3f}")
    return [overlaps[text] for text in mine if text in overlaps]


def _own(text: str) -> list[str]:
    """Return the parts of a text that are compared by meaning: a reply's sentences, or a whole question."""
    parts = sentences(text)
    return parts[1:] if len(parts) > 1 else parts


def _nearness(texts: Iterable[str], embed: Embed, folder: Path | None) -> dict[str, _Near]:
    their = list(dict.fromkeys(s for text in theirs() for s in sentences(text)))
    head = hashlib.sha256("\n".join(their).encode()).hexdigest()[:16]
    kept = _read(folder / KEPT, head) if folder else {}
    wanted = list(dict.fromkeys(s for text in texts for s in _own(text)))
    todo = [s for s in wanted if s not in kept]
    if todo:
        other = np.asarray(embed(their), np.float32)
        for start in range(0, len(todo), 2000):
            some = todo[start : start + 2000]
            cosine = np.asarray(embed(some), np.float32) @ other.T  # (ours, theirs)
            best = cosine.argmax(1)
            for row, at in enumerate(best.tolist()):
                kept[some[row]] = _Near(some[row], round(float(cosine[row, at]), 4), their[at])
            if folder:
                lines = [msgspec.json.encode(head), *(msgspec.json.encode(n) for n in kept.values())]
                write_whole(folder / KEPT, b"\n".join(lines) + b"\n")
    return {s: kept[s] for s in wanted}


def _read(path: Path, head: str) -> dict[str, _Near]:
    """Read stored similarities; {} if they belong to other evaluation texts."""
    try:
        first, *lines = path.read_bytes().splitlines()
        if msgspec.json.decode(first) != head:
            return {}
        decoder = msgspec.json.Decoder(_Near)
        return {near.sentence: near for near in map(decoder.decode, lines)}
    except (OSError, ValueError, msgspec.DecodeError):
        return {}  # missing or incomplete: compute again


def runs_of(text: str) -> set[tuple[str, ...]]:
    """Return every run of RUN words of a text."""
    words = re.findall(r"[\w']+", text.lower())
    return {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}
