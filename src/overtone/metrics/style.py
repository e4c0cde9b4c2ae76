"""Whether a reply is nearer to the reference of its own style than to those of its script's other styles.

The similarities are cosines of sentence embeddings by the offline MiniLM. `style_margin` of one reply is for looking at
that reply, never a headline: a reference that suits everything attracts every reply. What replies owe to the voice is
worked out over a whole script, from the similarities in the detail: see `overtone.results.style_following`. None of it
compares with a model's judgement of speech relevance. The embedder knows English alone: other items are unscored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from overtone.errors import MissingExtra
from overtone.metrics import Answered
from overtone.metrics._likeness import likeness
from overtone.metrics._limits import english_only
from overtone.metrics.semsim import EMBEDDER, vectors
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 3
NAME = f"style_margin|v{VERSION}|cosine|lang:en"
STYLES = ("target", "alternative", "neutral")
SCORES = {
    "style_margin": of_replies(
        "Style margin", scale="plain", low=None, high=None, single=True, table="none", order=3, finding=True
    )
}


class Style:
    """Scores replies to conversation items of one turn that belong to a benchmark's core: `style_margin`."""

    name = "style"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse" and len(item.turns) <= 1 and not item.part and item.style in STYLES

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        from overtone.embedded.embedder import identity

        foreign = [english_only(EMBEDDER, a.language) for a in answered]
        given = [
            ("", {}) if reason else (a.text.strip(), {s: r for s in STYLES if (r := a.siblings.get(s, "").strip())})
            for a, reason in zip(answered, foreign, strict=True)
        ]
        texts = sorted({t for reply, siblings in given if reply for t in (reply, *siblings.values())})
        try:
            signature = f"{NAME}|embedder:{identity()}"
            at = vectors(texts)
        except MissingExtra as missing:
            absent = f"{NAME}|embedder:missing"
            return [[Score("style_margin", absent, None, reason or str(missing))] for reason in foreign]
        return [
            [
                Score("style_margin", signature, None, reason)
                if reason
                else _margin(
                    a.item.style, {s: _cosine(at, reply, r) for s, r in siblings.items()}, signature, not reply
                )
            ]
            for a, (reply, siblings), reason in zip(answered, given, foreign, strict=True)
        ]


def _cosine(at: dict[str, NDArray[np.float64]], reply: str, reference: str) -> float:
    # An empty reply is like no reference.
    return likeness(float(at[reply] @ at[reference])) if reply else 0.0


def _margin(style: str, similar: dict[str, float], signature: str, empty: bool) -> Score:
    detail: dict[str, float | int | str | None] = {f"sim_{name}": value for name, value in similar.items()}
    if empty:
        detail["empty"] = 1
    others = [value for name, value in similar.items() if name != style]
    if style not in similar:
        return Score("style_margin", signature, None, "no reference for the reply's own style", detail)
    if not others:
        return Score("style_margin", signature, None, "no reference of another style of the script", detail)
    return Score("style_margin", signature, similar[style] - sum(others) / len(others), "", detail)


def load() -> Style:
    return Style()
