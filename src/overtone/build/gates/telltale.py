"""Find written options whose kind (harmful, words alone, …) a reader can identify, and the features that reveal it.

The right answer to most questions changes with the voice, so text alone cannot exceed the question's ceiling, whatever
the wording. But a reader who identifies the harmful option guesses among three options instead of four. A reader who
identifies the words-alone option knows the right answer for a plain voice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from overtone.build.gates._reader_view import Embed, describe, readings, surface_names
from overtone.build.gates._solvers import READS, folds, out_of_fold, weights
from overtone.build.questions import Question
from overtone.stats.cluster import proportion

KINDS = ("harmful", "words", "target", "alternative")


class Identified(Struct, frozen=True):
    """The rate at which a trained reader identifies the option of one kind, in one category."""

    category: str
    kind: str
    n: int
    accuracy: float
    low: float
    high: float
    chance: float


class Telltale(Struct, frozen=True):
    """One identified option, how clearly it was identified, and the features that revealed it.

    The margin is measured in standard deviations of the margins of all options.
    """

    script: str
    category: str
    kind: str
    option: str
    margin: float
    reason: str


def telltales(
    questions: Sequence[Question], seed: int, embed: Embed | None, most: int = 100
) -> tuple[list[Identified], list[Telltale]]:
    """Return how well each kind is identified in each category, and the `most` clearest options, the clearest first."""
    written = [q for q in questions if "harmful" in q.provenance]
    texts = readings(written)
    if not texts:
        return [], []
    features = describe(texts, embed)
    x = np.hstack([features.blocks[b] for b in READS["options only"]])
    face = features.blocks["surface"]
    fold = folds([r.script for r in texts], seed)
    table: list[Identified] = []
    clearest: list[Telltale] = []
    for kind in KINDS:
        goal = np.zeros(len(x))
        right: list[int] = []
        for r, low in zip(texts, features.start, strict=False):
            place = written[r.asked[0]].provenance.index(kind)
            right.append(place)
            goal[low : low + len(r.options)] = -1 / len(r.options)
            goal[low + place] += 1
        scores = out_of_fold(x, goal, features.start, fold)
        heavy = weights(face, goal)
        gaps = []
        for r, low, place in zip(texts, features.start, right, strict=False):
            mine = scores[low : low + len(r.options)]
            gaps.append(float(mine[place] - max(v for i, v in enumerate(mine) if i != place)))
        scale = float(np.std(gaps)) or 1.0
        for r, low, place, gap in zip(texts, features.start, right, gaps, strict=False):
            if gap > 0 and kind in ("harmful", "words"):
                reason = _reason(face[low + place] * heavy)
                clearest.append(Telltale(r.script, r.category, kind, r.options[place], gap / scale, reason))
        for category in sorted({r.category for r in texts}):
            places = [i for i, r in enumerate(texts) if r.category == category]
            rate = proportion([float(gaps[i] > 0) for i in places], [texts[i].script for i in places])
            chance = float(np.mean([1 / len(texts[i].options) for i in places]))
            table.append(Identified(category, kind, len(places), rate.value, rate.low, rate.high, chance))
    clearest.sort(key=lambda t: (-t.margin, t.script, t.category))
    return table, clearest[:most]


def _reason(shares: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """Name the surface features that favour an option most, or the choice of words if no feature favours it."""
    names = surface_names()
    summed = shares[: len(names)].copy()
    for at in range(len(names), len(shares), len(names)):  # the same features again, category by category
        summed += shares[at : at + len(names)]
    best = [i for i in np.argsort(-summed)[:3] if summed[i] > 0.02 and not names[i].startswith("position")]
    return "; ".join(names[i] for i in best[:2]) or "the choice of words"
