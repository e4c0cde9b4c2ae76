"""BERTScore: how well each token of a reply finds its like in the reference (precision), and the reverse (recall).

The value is F1; precision and recall are in the detail. Token states are those of one layer of the offline MiniLM,
matched greedily by cosine as the bert_score library does it for one pair at a time: [CLS] and [SEP] may be matched but
have no weight of their own, no IDF, at most 512 tokens. (In a batch the library counts a best match below 0 as 0 where
a pair was padded; a value here does not depend on its company.) Values are raw, not rescaled with a baseline; another
model, layer or rescaling (EchoMind: bert-base-uncased, rescaled) gives numbers that are not comparable. An empty reply
has 0, as there; an item without a reference is unscored, and so is everything where the embedder is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.errors import MissingExtra
from overtone.metrics import Answered
from overtone.schema import Item, Score

VERSION = 1
LAYER = 6  # the last of MiniLM's six
LONGEST = 512  # tokens; what the tokenizer of these weights says, and the library therefore reads
NAME = f"bertscore|v{VERSION}|f1|layer:{LAYER}|idf:no|rescaled:no|tokens:{LONGEST}"

States = NDArray[np.float32]


class Match(Struct, frozen=True):
    """How the tokens of two texts match; all 0 where one of them has none. Token counts leave the markers out."""

    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    reply_tokens: int = 0
    reference_tokens: int = 0


def match(pairs: Sequence[tuple[str, str]], *, layer: int = LAYER) -> list[Match]:
    """BERTScore of each (reply, reference); a text that comes twice is read once. MissingExtra without the embedder."""
    from overtone.embedded.embedder import tokens

    texts = sorted({text for pair in pairs for text in pair})
    states = [_unit(found) for _, found in tokens(texts, layer=layer, longest=LONGEST)]
    at = {text: i for i, text in enumerate(texts)}
    return [_matched(states[at[reply]], states[at[reference]]) for reply, reference in pairs]


def _unit(states: States) -> States:
    unit: States = states / np.linalg.norm(states, axis=1, keepdims=True)
    return unit


def _matched(reply: States, reference: States) -> Match:
    """Greedy matching of unit states (T, 384). The first and last state are the markers'."""
    counts = len(reply) - 2, len(reference) - 2
    if not all(counts):
        return Match(0.0, 0.0, 0.0, *counts)
    alike = reply @ reference.T
    precision = float(alike[1:-1].max(axis=1).mean(dtype=np.float64))
    recall = float(alike[:, 1:-1].max(axis=0).mean(dtype=np.float64))
    both = precision + recall
    return Match(precision, recall, 2.0 * precision * recall / both if both else 0.0, *counts)


class BertScore:
    """Scores replies to conversation items: `bertscore`."""

    name = "bertscore"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        from overtone.embedded.embedder import identity

        pairs = [(a.text.strip(), a.reference.strip()) for a in answered]
        try:
            signature = f"{NAME}|model:{identity()}"
            found = iter(match([pair for pair in pairs if pair[1]]))
        except MissingExtra as missing:
            return [[Score("bertscore", f"{NAME}|model:missing", None, str(missing))] for _ in answered]
        return [[_score(signature, next(found) if reference else None)] for _, reference in pairs]


def _score(signature: str, found: Match | None) -> Score:
    if found is None:
        return Score("bertscore", signature, None, "no reference")
    if not found.reference_tokens:
        return Score("bertscore", signature, None, "no token in the reference")
    detail: dict[str, float | int | str | None] = {
        "precision": found.precision,
        "recall": found.recall,
        "reply_tokens": found.reply_tokens,
        "reference_tokens": found.reference_tokens,
    }
    if not found.reply_tokens:
        detail["empty"] = 1
    return Score("bertscore", signature, found.f1, "", detail)


def load() -> BertScore:
    return BertScore()
