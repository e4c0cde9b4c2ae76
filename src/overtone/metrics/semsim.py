"""Meaning kept: cosine of the sentence embeddings of a reply and its reference, for transcripts and conversation.

The embedder is the offline MiniLM, named in the signature (EchoMind's own numbers come from another embedder and are
not comparable). The value is the plain cosine, 1 for the same meaning, about 0 for unrelated ones. An empty reply says
nothing and has 0; an item without a reference is unscored; so is everything where the embedder is not installed, and
an item in another language, because the embedder knows English alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from overtone.errors import MissingExtra
from overtone.metrics import Answered
from overtone.metrics._likeness import likeness
from overtone.metrics._limits import english_only
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
                help="Likeness in meaning of the transcript and the true words",
            ),
            MeasureInfo(
                "reply_semsim", "Reply SemSim", "converse", 3, headline=True, column="Reply SemSim", order=6,
                help="Likeness in meaning of the reply and the reference reply", colours=(0.5, 1.0),
                conflict="Reply SemSim",
            ),
        ),
    )
}  # fmt: skip


class SemanticSimilarity:
    """Scores replies to transcription and conversation items: `semsim`."""

    name = "semsim"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task in ("transcribe", "converse")

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        from overtone.embedded.embedder import identity

        foreign = [english_only(EMBEDDER, a.language) for a in answered]
        pairs = [
            ("", "") if reason else (a.text.strip(), a.reference.strip())
            for a, reason in zip(answered, foreign, strict=True)
        ]
        texts = sorted({text for reply, reference in pairs if reply and reference for text in (reply, reference)})
        try:
            signature = f"{NAME}|embedder:{identity()}"
            at = vectors(texts)
        except MissingExtra as missing:
            absent = f"{NAME}|embedder:missing"
            return [[Score("semsim", absent, None, reason or str(missing))] for reason in foreign]
        out: list[list[Score]] = []
        for (reply, reference), reason in zip(pairs, foreign, strict=True):
            if reason:
                out.append([Score("semsim", signature, None, reason)])
            elif not reference:
                out.append([Score("semsim", signature, None, "no reference")])
            elif not reply:
                out.append([Score("semsim", signature, 0.0, "", {"empty": 1})])
            else:
                out.append([Score("semsim", signature, likeness(float(at[reply] @ at[reference])))])
        return out


def vectors(texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Each text's sentence embedding, of length 1. MissingExtra without the embedder."""
    from overtone.embedded.embedder import embed

    rows = np.asarray(embed(texts), dtype=np.float64) if texts else np.zeros((0, 1))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return dict(zip(texts, rows / np.where(length > 0, length, 1.0), strict=True))


def load() -> SemanticSimilarity:
    return SemanticSimilarity()
