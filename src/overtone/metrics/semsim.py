"""Similarity in meaning: cosine of the sentence embeddings of a reply and its reference.

The embedder is the offline MiniLM, named in the signature (EchoMind uses another embedder, so its numbers are not
comparable). The value is the cosine: 1 for the same meaning, about 0 for unrelated texts. An empty reply scores 0; an
item without a reference is unscored; so is everything if the embedder is not installed, and an item in another
language, because the embedder knows only English.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from overtone.errors import MissingExtra
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._limits import english_only
from overtone.metrics._similarity import PAGE, SHARES, similarity
from overtone.schema import Item, Score
from overtone.scores import MeasureInfo, ScoreInfo

VERSION = 3
NAME = f"semsim|v{VERSION}|cosine|lang:en"
EMBEDDER = "the embedder all-MiniLM-L6-v2"
SCORES = {
    "semsim": ScoreInfo(
        "SemSim", tasks=("transcribe", "converse"), order=10, bounds=True, ranks=2,
        measures=(
            MeasureInfo(
                "semsim", "SemSim", "transcribe", 1, headline=True, column="SemSim", order=5, colours=(0.5, 1.0),
                help="Similarity in meaning of the transcript and the true words",
            ),
            MeasureInfo(
                "reply_semsim", "Reply SemSim", "converse", 3, headline=True, column="Reply SemSim", order=6,
                help="Similarity in meaning of the reply and the reference reply", colours=(0.5, 1.0),
                conflict="Reply SemSim",
            ),
        ),
    )
}  # fmt: skip

Vectors = dict[str, NDArray[np.float64]]


class EmbeddingMetric(ReplyMetric):
    """Base class of metrics that compare sentence embeddings. A subclass sets the name of its score, and defines
    `texts` and `compared`."""

    emits: str
    signed: str
    slow = True
    shares, page = SHARES, PAGE

    def texts(self, a: Answered) -> list[str]:
        """Return the texts that must be embedded to score a reply."""
        raise NotImplementedError

    def compared(self, a: Answered, signature: str, at: Vectors) -> Score:
        """Return the score of a reply, given the embeddings of all texts."""
        raise NotImplementedError

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        from overtone.embedded.embedder import identity

        reasons = [english_only(EMBEDDER, a.language) for a in answered]
        both = list(zip(answered, reasons, strict=True))
        try:
            signature = f"{self.signed}|embedder:{identity()}"
            at = vectors(sorted({text for a, reason in both if not reason for text in self.texts(a)}))
        except MissingExtra as missing:
            absent = f"{self.signed}|embedder:missing"
            return [[Score(self.emits, absent, None, reason or str(missing))] for reason in reasons]
        return [
            [Score(self.emits, signature, None, reason) if reason else self.compared(a, signature, at)]
            for a, reason in both
        ]


class SemanticSimilarity(EmbeddingMetric):
    """Scores replies to transcription and conversation items: `semsim`."""

    name = emits = "semsim"
    version = VERSION
    signed = NAME

    def applies(self, item: Item) -> bool:
        return item.task in ("transcribe", "converse")

    def texts(self, a: Answered) -> list[str]:
        reply, reference = a.text.strip(), a.reference.strip()
        return [reply, reference] if reply and reference else []

    def compared(self, a: Answered, signature: str, at: Vectors) -> Score:
        reply, reference = a.text.strip(), a.reference.strip()
        if not reference:
            return Score("semsim", signature, None, "no reference")
        if not reply:
            return Score("semsim", signature, 0.0, "", {"empty": 1})
        return Score("semsim", signature, similarity(float(at[reply] @ at[reference])))


def vectors(texts: Sequence[str]) -> Vectors:
    """Return each text's sentence embedding, of length 1. Raises MissingExtra without the embedder."""
    from overtone.embedded.embedder import embed

    rows = np.asarray(embed(texts), dtype=np.float64) if texts else np.zeros((0, 1))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return dict(zip(texts, rows / np.where(length > 0, length, 1.0), strict=True))


def load() -> SemanticSimilarity:
    return SemanticSimilarity()
