"""No sentence of the evaluation sets is trained on: what shares six words in a row with one of theirs, or means nearly
the same, is dropped and reported. How near a text is to them is kept beside the set, so that it is asked once."""

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

from overtone.build import aeq_texts, echat_texts, rules
from overtone.build.script import read_collection
from overtone.paths import write_whole

NEAR = 0.9  # cosine of two sentences' embeddings from which on they are one
LEAST = rules.RUN  # words of a sentence that is compared: "Take your time." is nobody's
KEPT = "nearness.jsonl"

Embed = Callable[[Sequence[str]], NDArray[Any]]


class Shared(Struct, frozen=True):
    """A text of ours that an evaluation set has too."""

    text: str
    theirs: str
    why: str


class _Near(Struct, frozen=True, array_like=True):
    """How near a sentence is to the nearest of theirs."""

    sentence: str
    cosine: float
    theirs: str


@functools.cache
def theirs() -> tuple[str, ...]:
    """Every text of the evaluation sets that a model hears, reads or is compared with."""
    found: list[str] = []
    whole = read_collection("open")
    for script in (*whole.scripts, *whole.conflicts):
        found += [script.words, *script.reply.values()]
    for dialogue in whole.dialogues:
        found += [*(t.words for t in dialogue.turn), *(t.reply for t in dialogue.turn), dialogue.steady_reply]
    for group in aeq_texts.read():
        found += [group.words, *(v.reply for v in group.variant)]
    for query in echat_texts.read():
        found += [query.words, *(said.reply for said in query.said)]
    return tuple(dict.fromkeys(found))


def split(text: str) -> list[str]:
    """A text's sentences."""
    return re.split(r"(?<=[.!?])\s+", text.strip())


def sentences(text: str) -> list[str]:
    """A text and its sentences that are long enough to be somebody's."""
    parts = [text, *split(text)]
    return [part for part in dict.fromkeys(parts) if len(part.split()) >= LEAST]


def shared(texts: Iterable[str], embed: Embed | None, folder: Path | None = None) -> list[Shared]:
    """Which of some texts are too near to the evaluation sets. Without an embedder only words are compared; `folder`
    keeps what was embedded."""
    mine = list(dict.fromkeys(texts))
    known = {run: text for text in reversed(theirs()) for run in rules.runs(text)}
    found: dict[str, Shared] = {}
    for text in mine:
        hit = next((run for run in sorted(rules.runs(text)) if run in known), None)
        if hit:
            found[text] = Shared(text, known[hit], f"both say {' '.join(hit)!r}")
    if embed is not None:
        near = _nearness(mine, embed, folder)
        for text in mine:
            worst = max((near[s] for s in _own(text)), key=lambda n: n.cosine, default=None)
            if text not in found and worst is not None and worst.cosine >= NEAR:
                found[text] = Shared(text, worst.theirs, f"cosine {worst.cosine:.3f}")
    return [found[text] for text in mine if text in found]


def _own(text: str) -> list[str]:
    """Of a reply its sentences, of a question itself: what is compared by meaning."""
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
    """What was compared before, with the same texts of theirs."""
    try:
        first, *lines = path.read_bytes().splitlines()
        if msgspec.json.decode(first) != head:
            return {}
        decoder = msgspec.json.Decoder(_Near)
        return {near.sentence: near for near in map(decoder.decode, lines)}
    except (OSError, ValueError, msgspec.DecodeError):
        return {}  # not there, or cut off: asked again
