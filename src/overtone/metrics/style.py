"""Whether a reply is more similar to the reference for its style than to those for the script's other styles.

The similarities are cosines of sentence embeddings by the offline MiniLM. `style_margin` of one reply is for inspecting
that reply, not for a headline, because a generic reference is similar to every reply. How much the voice influences
replies is computed over a whole script, from the similarities in the detail: see `overtone.results.style_following`.
Neither number is comparable with a judge's speech relevance. The embedder knows only English: other items are unscored.
"""

from __future__ import annotations

from overtone.metrics import Answered
from overtone.metrics._similarity import similarity
from overtone.metrics.semsim import EmbeddingMetric, Vectors
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


class Style(EmbeddingMetric):
    """Scores replies to one-turn conversation items of a benchmark's core: `style_margin`."""

    name = "style"
    version = VERSION
    emits = "style_margin"
    signed = NAME

    def applies(self, item: Item) -> bool:
        return item.task == "converse" and len(item.turns) <= 1 and not item.part and item.style in STYLES

    def texts(self, a: Answered) -> list[str]:
        return [reply, *_references(a).values()] if (reply := a.text.strip()) else []

    def compared(self, a: Answered, signature: str, at: Vectors) -> Score:
        reply = a.text.strip()
        similar = {  # an empty reply is similar to no reference
            style: similarity(float(at[reply] @ at[text])) if reply else 0.0 for style, text in _references(a).items()
        }
        return _margin(a.item.style, similar, signature, not reply)


def _references(a: Answered) -> dict[str, str]:
    return {style: text for style in STYLES if (text := a.siblings.get(style, "").strip())}


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
